"""GET /health and GET /openapi.json."""
