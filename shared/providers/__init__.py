"""The outside world, a small protocol each: models, storage, secrets."""
