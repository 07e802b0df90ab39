"""Where original bytes and converted texts lie: one protocol, a folder or a bucket behind it."""

from shared.providers.storage.base import ObjectStore, derived_key, original_key
from shared.providers.storage.files import FileStore
from shared.providers.storage.s3 import S3Store

__all__ = ["FileStore", "ObjectStore", "S3Store", "derived_key", "original_key"]
