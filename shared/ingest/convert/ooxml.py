"""An Office package: its parts by relationship, read within limits, parsed without entities and network."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from lxml import etree

from shared.errors import EncryptedFileError, LimitExceededError, UnreadableFileError
from shared.ingest.convert.formats import Member

MAX_PARTS = 20_000
MAX_PART_BYTES = 200 * 1024 * 1024
MAX_TOTAL_BYTES = 500 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_OFFICE_ENDINGS = (".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm", ".odt", ".ods", ".odp", ".pdf")
_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True)
class Relationship:
    """A link from a part: the last word of its type ("header", "altChunk"), and the part it leads to."""

    id: str
    kind: str
    target: str


class Package:
    """A package in memory; what is unpacked counts against one limit for the whole file."""

    def __init__(self, content: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, OSError, NotImplementedError) as error:
            raise UnreadableFileError(f"the document is no whole ZIP package: {error}") from error
        if len(self._archive.infolist()) > MAX_PARTS:
            raise LimitExceededError(f"the package has more than {MAX_PARTS} parts")
        self._names = {info.filename.lstrip("/").lower(): info for info in self._archive.infolist()}
        self._read_bytes = 0

    def has(self, name: str) -> bool:
        """Return whether there is such a part."""
        return name.lower() in self._names

    def read(self, name: str) -> bytes:
        """Return a part's bytes, counted while they are unpacked: a declared size is only a claim."""
        info = self._names.get(name.lower())
        if info is None:
            raise UnreadableFileError(f"the package lacks its part {name}")
        if info.flag_bits & _ENCRYPTED:
            raise EncryptedFileError(f"the part {name} is encrypted")
        pieces: list[bytes] = []
        size = 0
        try:
            with self._archive.open(info) as part:
                while piece := part.read(_PIECE_BYTES):
                    size += len(piece)
                    if size > MAX_PART_BYTES or self._read_bytes + size > MAX_TOTAL_BYTES:
                        raise LimitExceededError(f"the package unpacks to more than {MAX_TOTAL_BYTES} bytes")
                    pieces.append(piece)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise UnreadableFileError(f"the part {name} is damaged: {error}") from error
        self._read_bytes += size
        return b"".join(pieces)

    def xml(self, name: str) -> etree._Element:
        """Return a part's root element. Entities stay what they are written as; nothing is fetched."""
        return parse(self.read(name), name)

    def relationships(self, part: str) -> dict[str, Relationship]:
        """Return the relationships of a part ("" for the package) that lead to a part that is there, by id."""
        folder, _, base = part.rpartition("/")
        rels = posixpath.join(folder, "_rels", f"{base}.rels")
        if not self.has(rels):
            return {}
        found: dict[str, Relationship] = {}
        for element in self.xml(rels).iter("{*}Relationship"):
            target = element.get("Target") or ""
            if (element.get("TargetMode") or "").lower() == "external" or not target:
                continue
            path = unquote(target.partition("#")[0])
            name = path.lstrip("/") if path.startswith("/") else posixpath.normpath(posixpath.join(folder, path))
            kind = (element.get("Type") or "").rpartition("/")[2]
            if self.has(name):
                identifier = element.get("Id") or f"#{len(found)}"
                found[identifier] = Relationship(identifier, kind, name)
        return found

    def title(self) -> str | None:
        """Return the title among the properties of the document."""
        for relationship in self.relationships("").values():
            if relationship.kind == "core-properties":
                try:
                    found = self.xml(relationship.target).findtext("{*}title")
                except UnreadableFileError:
                    return None
                return str(found) if found else None
        return None

    def embedded(self) -> list[Member]:
        """Return the Office files that lie in the document; other objects are in no form that is read."""
        return [
            Member(info.filename.rpartition("/")[2], self.read(name))
            for name, info in self._names.items()
            if "/embeddings/" in name and name.endswith(_OFFICE_ENDINGS)
        ]

    def elements(self, name: str, *tags: str) -> Iterator[etree._Element]:
        """Yield the elements of a long part one after the other, each gone when the next one comes."""
        content = io.BytesIO(self.read(name).lstrip(b"\r\n\t "))
        try:
            walk = etree.iterparse(
                content, tag=[f"{{*}}{tag}" for tag in tags], resolve_entities=False, no_network=True, load_dtd=False,
                huge_tree=False, remove_comments=True, remove_pis=True,
            )  # fmt: skip
            for _, element in walk:
                yield element
                element.clear(keep_tail=False)
                while (before := element.getprevious()) is not None:
                    before.getparent().remove(before)
        except etree.XMLSyntaxError as error:
            raise UnreadableFileError(f"the part {name} is no well-formed XML: {error}") from error

    def main_part(self) -> str:
        """Return the part that the package's own relationships call the document, whatever its name is."""
        for relationship in self.relationships("").values():
            if relationship.kind == "officeDocument":
                return relationship.target
        raise UnreadableFileError("the package says nowhere which part is the document")


def relation_id(element: etree._Element) -> str | None:
    """Return the relationship that an element names, in either namespace; its plain `id` is of another kind."""
    return next(
        (str(value) for key, value in element.attrib.items() if key.startswith("{") and key.endswith("}id")), None
    )


def parse(content: bytes, name: str) -> etree._Element:
    """Return the root of an XML part."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(content.lstrip(b"\r\n\t "), parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableFileError(f"the part {name} is no well-formed XML: {error}") from error
    return root
