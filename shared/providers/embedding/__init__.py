"""Embedding models: one protocol, and the adapters that fulfil it."""
