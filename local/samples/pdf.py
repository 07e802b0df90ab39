"""Prose as a text PDF of A4 pages, the same bytes on every machine.

The two fonts are standard ones in WinAnsiEncoding (cp1252), so nothing is embedded; a character that
cp1252 does not have is an error, never a question mark. Streams are not compressed (see docx.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local.samples.prose import Block, Heading, PageBreak, Paragraph, Prose, Table, accepted

_WIDTH, _HEIGHT, _MARGIN = 595, 842, 70
_LEADING = 1.4
# Advance widths of Helvetica for the characters 32 to 126, in thousandths of the font size (its AFM file).
_ASCII_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 "
    "278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 "
    "611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 "
    "556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_WIDTHS = {chr(32 + index): int(width) for index, width in enumerate(_ASCII_WIDTHS.split())}
_OTHER_WIDTH = 600


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    size: int = 11
    bold: bool = False
    gap: int = 0


def pdf(prose: Prose) -> bytes:
    """Return the text as a PDF with the header and the page number on each page."""
    pages = list(_pages(prose.blocks))
    streams = [_page_stream(prose, page, number, len(pages)) for number, page in enumerate(pages, start=1)]
    first_page = 5
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode("ascii"),
        _font("Helvetica"),
        _font("Helvetica-Bold"),
    ]
    for index, stream in enumerate(streams):
        objects.append(_page(first_page + 2 * index + 1))
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    objects.append(_info(prose))
    return _assemble(objects)


def _pages(blocks: Sequence[Block]) -> Iterator[list[_Line]]:
    """Yield the lines of each page."""
    room = float(_HEIGHT - 2 * _MARGIN)
    left, page = room, list[_Line]()
    for line in _lines(blocks):
        if line is None or left < _advance(line):
            yield page
            left, page = room, []
        if line is not None:
            page.append(line)
            left -= _advance(line)
    yield page


def _lines(blocks: Sequence[Block]) -> Iterator[_Line | None]:
    """Yield each line; None ends the page."""
    for block in blocks:
        match block:
            case Heading(level, text):
                yield from _wrap(text, size=15 if level == 1 else 12, bold=True)
            case Paragraph(runs, bullet):
                yield from _wrap(("\N{BULLET} " if bullet else "") + accepted(runs))
            case Table(rows):
                for row in rows:
                    yield from _wrap("   ".join(row), size=10, bold=row is rows[0])
            case PageBreak():
                yield None


def _wrap(text: str, *, size: int = 11, bold: bool = False) -> Iterator[_Line]:
    words, gap, line = text.split(" "), 6, ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and _text_width(longer, size) > _WIDTH - 2 * _MARGIN:
            yield _Line(line, size, bold, gap)
            gap, line = 0, word
        else:
            line = longer
    yield _Line(line, size, bold, gap)


def _text_width(text: str, size: int) -> float:
    return sum(_WIDTHS.get(letter, _OTHER_WIDTH) for letter in text) * size / 1000


def _advance(line: _Line) -> float:
    return line.size * _LEADING + line.gap


def _page_stream(prose: Prose, lines: Sequence[_Line], number: int, total: int) -> bytes:
    word = "Page {} of {}" if prose.facts.get("language") == "en" else "Seite {} von {}"
    top = _HEIGHT - _MARGIN
    parts = [_show(prose.facts.get("header", prose.title), x=_MARGIN, y=top + 30, size=8)]
    y = float(top)
    for line in lines:
        y -= _advance(line)
        parts.append(_show(line.text, x=_MARGIN, y=y, size=line.size, bold=line.bold))
    parts.append(_show(word.format(number, total), x=_WIDTH - _MARGIN - 60, y=_MARGIN - 30, size=8))
    return b"\n".join(parts)


def _show(text: str, *, x: float, y: float, size: int, bold: bool = False) -> bytes:
    font = "F2" if bold else "F1"
    return f"BT /{font} {size} Tf {x:.1f} {y:.1f} Td ".encode("ascii") + _string(text) + b" Tj ET"


def _string(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return b"(" + escaped.encode("cp1252") + b")"


def _font(name: str) -> bytes:
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>".encode("ascii")


def _page(content: int) -> bytes:
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_WIDTH} {_HEIGHT}] "
        f"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents {content} 0 R >>"
    ).encode("ascii")


def _info(prose: Prose) -> bytes:
    stamp = prose.facts["created"].replace("-", "")
    author = prose.facts.get("author", "")
    dates = f"/CreationDate (D:{stamp}080000Z)".encode("ascii")
    return b"<< /Title %b /Author %b %b >>" % (_string(prose.title), _string(author), dates)


def _assemble(objects: Sequence[bytes]) -> bytes:
    """Return header, objects, cross-reference table and trailer; the last object is the information."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        len(objects),
        start,
    )
    return bytes(out)
