"""Text as it is stored and as it is searched: the one normaliser."""
