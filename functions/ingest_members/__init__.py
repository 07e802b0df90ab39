"""The files in an object, page by page."""
