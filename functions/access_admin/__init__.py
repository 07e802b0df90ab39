"""GET, PUT and DELETE of grants and aliases."""
