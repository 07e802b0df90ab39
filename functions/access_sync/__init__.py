"""POST /search and GET /access/scope."""
