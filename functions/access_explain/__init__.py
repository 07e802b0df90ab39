"""POST /access/explain and POST /access/who."""
