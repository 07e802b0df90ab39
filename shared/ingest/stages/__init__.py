"""The stages, one module each, in the order of `shared.ingest.pipeline`."""
