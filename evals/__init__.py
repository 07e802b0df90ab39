"""Retrieval quality: loaders, runs, expected figures."""
