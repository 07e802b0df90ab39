"""The pipeline: from an object at a source to versions, chunks and the index's outbox."""
