"""Files cut off or with broken bytes: a text or a reason for each, and a worker that goes on to the next."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Iterator

import pytest

from shared.errors import PermanentError
from shared.ingest.convert.process import ConversionProcess
from tests.ingest.test_docx import PRICE, cell, document, p, run, sdt

PROSE = "Die Größe der Wohnung beträgt fünfzig Quadratmeter. " * 10
NOTES = (
    '<w:footnotes xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    '<w:footnote w:id="2"><w:p><w:r><w:t>Ohne Umsatzsteuer.</w:t></w:r></w:p></w:footnote></w:footnotes>'
)
RELS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes" Target="footnotes.xml"/></Relationships>'
)
WHOLE = {
    "docx": document(
        PRICE + p(run(PROSE)) + f"<w:tbl><w:tr>{cell('Miete')}{sdt(cell('1.200'))}</w:tr></w:tbl>",
        **{"word/footnotes.xml": NOTES.encode(), "word/_rels/document.xml.rels": RELS.encode()},
    ),
    "html": f"<html lang='de'><head><title>Größe</title></head><body><h1>Miete</h1><table><tr><td>{PROSE}</table></html>".encode(),
    "json_text": json.dumps({"title": "Größe", "content": f"<p>{PROSE}</p>", "date": "2024-02-29"}).encode(),
    "plain": f"# Größe\n\n{PROSE}".encode("cp1252"),
}


def broken(content: bytes, chance: random.Random) -> bytes:
    made = bytearray(content)
    for _ in range(4):
        made[chance.randrange(len(made))] = chance.randrange(256)
    return bytes(made)


def within(package: bytes, chance: random.Random) -> bytes:
    """Return a package that is whole, but for broken bytes in one of its parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(made, "w") as new:
        victim = chance.choice(sorted(old.namelist()))
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, broken(content, chance) if name == victim else content)
    return made.getvalue()


def variants(name: str) -> Iterator[bytes]:
    whole = WHOLE[name]
    for share in range(20):
        yield whole[: len(whole) * share // 20]
    for seed in range(100):
        chance = random.Random(seed)
        yield within(whole, chance) if name == "docx" and seed % 2 else broken(whole, chance)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_broken_file_has_a_text_or_a_reason(converter: ConversionProcess, name: str) -> None:
    reasons, texts = [], 0
    for content in variants(name):
        try:
            texts += bool(converter.convert(name, content, timeout_s=30).text.text)
        except PermanentError as error:
            reasons.append(error.message)
    assert all(reasons)
    assert converter.convert(name, WHOLE[name], timeout_s=30).text.text
    assert name == "docx" or texts > 0
