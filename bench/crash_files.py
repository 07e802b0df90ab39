"""Generated files of mixed kinds, whole and broken ones, the same on every run."""

from __future__ import annotations

import io
import random
import zipfile
from email.message import EmailMessage
from pathlib import Path

MATTERS = 10
_WORDS = (
    *("Vertrag", "Frist", "Kündigung", "Schaden", "Mangel", "Lieferung", "Klage", "Antrag", "Bescheid", "Haftung"),
    *("Zahlung", "Verzug", "Urteil", "Berufung", "Vollmacht", "Grundbuch", "Erbschein", "Pfand", "Zins", "Bürgschaft"),
)
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)


def generate(folder: Path, count: int) -> None:
    """Write `count` files below `folder`: of twelve files, three are text, and one each is of another kind.

    Markdown, a page, a Word file, a mail with a letter and a page, a mail with a mail, a copy of an earlier file, a
    Word file that is cut off, a drawing that nobody reads, a file without bytes.
    """
    makers = (_text, _markdown, _text, _page, _word, _post, _text, _forwarded, _copy, _cut, _drawing, _empty)
    for number in range(count):
        chance = random.Random(number)
        name, content = makers[number % len(makers)](number, chance)
        path = folder / f"matter{number % MATTERS}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _prose(number: int, chance: random.Random) -> str:
    paragraphs = [" ".join(chance.choices(_WORDS, k=40)) + "." for _ in range(chance.randint(1, 6))]
    return f"Schreiben {number}\n\nAz. {number % 13 + 1} O {number}/{number % 20 + 2000}\n\n" + "\n\n".join(paragraphs)


def _text(number: int, chance: random.Random) -> tuple[str, bytes]:
    return f"Schreiben {number}.txt", _prose(number, chance).encode()


def _markdown(number: int, chance: random.Random) -> tuple[str, bytes]:
    return f"Vermerk {number}.md", f"# Vermerk {number}\n\n{_prose(number, chance)}".encode()


def _page(number: int, chance: random.Random) -> tuple[str, bytes]:
    return f"Seite {number}.html", f"<html><body><p>{_prose(number, chance)}</p></body></html>".encode()


def _word(number: int, chance: random.Random) -> tuple[str, bytes]:
    paragraphs = "".join(f"<w:p><w:r><w:t>{one}</w:t></w:r></w:p>" for one in _prose(number, chance).split("\n\n"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("[Content_Types].xml"), _TYPES)
        archive.writestr(zipfile.ZipInfo("_rels/.rels"), _RELATIONS)
        document = f"<w:document {_W}><w:body>{paragraphs}</w:body></w:document>"
        archive.writestr(zipfile.ZipInfo("word/document.xml"), document)
    return f"Entwurf {number}.docx", buffer.getvalue()


def _mail(number: int, subject: str, chance: random.Random) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "anna@kanzlei.example", "ben@mandant.example"
    message["Subject"] = f"{subject} {number}"
    message["Date"] = "Mon, 12 Feb 2024 09:30:00 +0100"
    message["Message-ID"] = f"<{subject}.{number}@kanzlei.example>"
    message.set_content(_prose(number, chance))
    return message


def _post(number: int, chance: random.Random) -> tuple[str, bytes]:
    message = _mail(number, "Post", chance)
    for name, content in (_text(number + 10**6, chance), _page(number + 10**6, chance), _drawing(number, chance)):
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    message.set_boundary(f"grenze{number}")
    return f"Post {number}.eml", message.as_bytes()


def _forwarded(number: int, chance: random.Random) -> tuple[str, bytes]:
    inner = _mail(number, "Innen", chance)
    message = _mail(number, "Weiter", chance)
    message.add_attachment(inner)
    message.set_boundary(f"grenze{number}")
    return f"Weiter {number}.eml", message.as_bytes()


def _copy(number: int, _: random.Random) -> tuple[str, bytes]:
    # Now and then in the same matter, mostly in another.
    earlier = number - 8
    return f"Kopie {number}.txt", _text(earlier, random.Random(earlier))[1]


def _cut(number: int, chance: random.Random) -> tuple[str, bytes]:
    whole = _word(number, chance)[1]
    return f"Kaputt {number}.docx", whole[: len(whole) // 2]


def _drawing(number: int, _: random.Random) -> tuple[str, bytes]:
    return f"Plan {number}.dwg", b"AC1032" + number.to_bytes(100)


def _empty(number: int, _: random.Random) -> tuple[str, bytes]:
    return f"Leer {number}.txt", b""
