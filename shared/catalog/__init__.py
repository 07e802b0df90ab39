"""Authorised reads: documents, their text and bytes, and what a caller searches in."""
