"""The edge of the core: composition root, requests, identity, errors, observability."""
