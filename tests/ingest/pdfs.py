"""PDFs made by hand, byte by byte, so that a test says exactly what is wrong with one."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Sequence
from functools import cache

import pypdfium2 as pdfium
from PIL import Image, ImageFont

HELVETICA = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")


class Pdf:
    """Objects in the order in which they are added; 1 is the catalog and 2 the page tree."""

    def __init__(self, *, width: int = 400, height: int = 120) -> None:
        self.objects: list[bytes] = [b"", b""]
        self.kids: list[int] = []
        self.size = (width, height)
        self.catalog = ""
        self.trailer = ""

    def add(self, content: str | bytes) -> int:
        self.objects.append(content.encode("cp1252") if isinstance(content, str) else content)
        return len(self.objects)

    def stream(self, data: bytes, entries: str = "") -> int:
        return self.add(f"<<{entries}/Length {len(data)}>>\nstream\n".encode() + data + b"\nendstream")

    def page(self, drawn: bytes, *, resources: str = "", entries: str = "") -> int:
        content = self.stream(drawn)
        width, height = self.size
        number = self.add(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {width} {height}]/Contents {content} 0 R"
            f"/Resources<</Font<</F1 {HELVETICA}>>{resources}>>{entries}>>"
        )
        self.kids.append(number)
        return number

    def text(self, lines: Sequence[str], **more: str) -> int:
        return self.page(shown(lines, top=self.size[1] - 30), **more)

    def scan(self, lines: Sequence[str], *, over: bytes = b"", entries: str = "") -> int:
        """Add a page that is a picture of these lines; `over` is drawn on top of it."""
        width, height = self.size
        picture = scanned(tuple(lines), width=width, height=height)
        jpeg = io.BytesIO()
        picture.save(jpeg, "JPEG", quality=90)
        form = f"/Type/XObject/Subtype/Image/Width {picture.width}/Height {picture.height}"
        image = self.stream(jpeg.getvalue(), f"{form}/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode")
        drawn = f"q {width} 0 0 {height} 0 0 cm /Im1 Do Q ".encode() + over
        return self.page(drawn, resources=f"/XObject<</Im1 {image} 0 R>>", entries=entries)

    def build(self) -> bytes:
        self.objects[0] = f"<</Type/Catalog/Pages 2 0 R{self.catalog}>>".encode("cp1252")
        kids = " ".join(f"{kid} 0 R" for kid in self.kids)
        self.objects[1] = self.objects[1] or f"<</Type/Pages/Count {len(self.kids)}/Kids[{kids}]>>".encode()
        return assembled(self.objects, self.trailer)


def assembled(objects: Sequence[bytes], trailer: str = "") -> bytes:
    """Return a file of these objects with a cross-reference table."""
    body, offsets = bytearray(b"%PDF-1.6\n"), []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(f"{at:010d} 00000 n \n" for at in offsets)
    end = f"trailer<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{len(body)}\n%%EOF"
    return bytes(body) + table.encode() + end.encode()


def shown(lines: Sequence[str], *, top: int, left: int = 20, size: int = 14) -> bytes:
    """Return the drawing of lines in Helvetica."""
    body = "".join(f"({line}) Tj 0 -{size + 6} Td\n" for line in lines)
    return f"BT /F1 {size} Tf {left} {top} Td\n{body}ET\n".encode("cp1252")


@cache
def scanned(lines: tuple[str, ...], *, width: int = 400, height: int = 120, dpi: int = 200) -> Image.Image:
    """Return a picture of lines of text, as a scanner makes it."""
    paper = Pdf(width=width, height=height)
    paper.text(lines)
    document = pdfium.PdfDocument(paper.build())
    picture = document[0].render(scale=dpi / 72, grayscale=True).to_pil().copy()
    document.close()
    return picture


def unmapped_font(pdf: Pdf) -> tuple[str, dict[str, int]]:
    """Add a TrueType font that says nowhere which letters its shapes are; return it and the number of each shape."""
    font = ImageFont.load_default(12).font_bytes
    file = pdf.stream(font, f"/Length1 {len(font)}")
    about = pdf.add(
        "<</Type/FontDescriptor/FontName/AAAAAA+A/Flags 4/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 900"
        f"/Descent -200/CapHeight 700/StemV 80/FontFile2 {file} 0 R>>"
    )
    shapes = _shapes(font)
    widths = " ".join(f"{number} [{width}]" for number, width in sorted(_widths(font, shapes).items()))
    inner = pdf.add(
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/AAAAAA+A/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)"
        f"/Supplement 0>>/FontDescriptor {about} 0 R/W[{widths}]/CIDToGIDMap/Identity>>"
    )
    entry = f"<</Type/Font/Subtype/Type0/BaseFont/AAAAAA+A/Encoding/Identity-H/DescendantFonts[{inner} 0 R]>>"
    return entry, shapes


def by_shapes(lines: Sequence[str], shapes: dict[str, int], *, top: int, name: str = "F1", size: int = 14) -> bytes:
    """Return the drawing of lines by the numbers of their shapes."""
    coded = ["".join(f"{shapes[sign]:04X}" for sign in line) for line in lines]
    body = "".join(f"<{line}> Tj 0 -{size + 6} Td\n" for line in coded)
    return f"BT /{name} {size} Tf 20 {top} Td\n{body}ET\n".encode()


def _table(font: bytes, tag: bytes) -> int:
    for position in range(struct.unpack(">H", font[4:6])[0]):
        name, _, offset, _ = struct.unpack(">4sIII", font[12 + 16 * position : 28 + 16 * position])
        if name == tag:
            return offset
    raise LookupError(tag)


def _shapes(font: bytes) -> dict[str, int]:
    table = _table(font, b"cmap")
    start = table + struct.unpack(">I", font[table + 8 : table + 12])[0]
    span = struct.unpack(">H", font[start + 6 : start + 8])[0]
    count = span // 2

    def row(at: int, kind: str = "H") -> tuple[int, ...]:
        return struct.unpack(f">{count}{kind}", font[at : at + span])

    ends, begins = row(start + 14), row(start + 16 + span)
    deltas, ranges = row(start + 16 + 2 * span, "h"), row(start + 16 + 3 * span)
    found = {}
    for segment in range(count):
        for code in range(begins[segment], min(ends[segment], 0x7E) + 1):
            shape = code
            if ranges[segment]:
                at = start + 16 + 3 * span + 2 * segment + ranges[segment] + 2 * (code - begins[segment])
                shape = struct.unpack(">H", font[at : at + 2])[0]
            found[chr(code)] = (shape + deltas[segment]) & 0xFFFF
    return found


def _widths(font: bytes, shapes: dict[str, int]) -> dict[int, int]:
    unit = struct.unpack(">H", font[_table(font, b"head") + 18 :][:2])[0]
    metrics, measured = _table(font, b"hmtx"), struct.unpack(">H", font[_table(font, b"hhea") + 34 :][:2])[0]
    return {
        shape: struct.unpack(">H", font[metrics + 4 * min(shape, measured - 1) :][:2])[0] * 1000 // unit
        for shape in shapes.values()
    }


def encrypted(pdf: Pdf, *, user: bytes, owner: bytes, permissions: int) -> bytes:
    """Return the file encrypted as the first PDF readers did it (RC4 with 40 bits); streams only, no strings."""

    def padded(password: bytes) -> bytes:
        return (password + _PADDING)[:32]

    identifier = b"0123456789abcdef"
    owned = _rc4(hashlib.md5(padded(owner)).digest()[:5], padded(user))
    basis = padded(user) + owned + struct.pack("<i", permissions) + identifier
    key = hashlib.md5(basis).digest()[:5]
    for position, content in enumerate(pdf.objects):
        head, mark, rest = content.partition(b"\nstream\n")
        if mark:
            data, end = rest[: -len(b"\nendstream")], b"\nendstream"
            own = hashlib.md5(key + struct.pack("<I", position + 1)[:3] + b"\x00\x00").digest()[:10]
            pdf.objects[position] = head + mark + _rc4(own, data) + end
    proof = _rc4(key, _PADDING)
    pdf.trailer = (
        f"/ID[<{identifier.hex()}><{identifier.hex()}>]/Encrypt<</Filter/Standard/V 1/R 2"
        f"/O<{owned.hex()}>/U<{proof.hex()}>/P {permissions}>>"
    )
    return pdf.build()


def _rc4(key: bytes, data: bytes) -> bytes:
    box = list(range(256))
    at = 0
    for position in range(256):
        at = (at + box[position] + key[position % len(key)]) % 256
        box[position], box[at] = box[at], box[position]
    first = second = 0
    out = bytearray()
    for byte in data:
        first = (first + 1) % 256
        second = (second + box[first]) % 256
        box[first], box[second] = box[second], box[first]
        out.append(byte ^ box[(box[first] + box[second]) % 256])
    return bytes(out)
