"""POST /search/filter."""
