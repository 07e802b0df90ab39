"""Ranked search and metadata listing: inside the caller's scope, verified in SQL, with citations."""
