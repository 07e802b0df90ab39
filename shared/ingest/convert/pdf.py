"""PDF: the text of each page, read from its text layer or its picture, form values, and the files that are embedded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pypdfium2 as pdfium
from PIL import Image
from pypdfium2 import raw

from shared.errors import EncryptedFileError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert import pdf_forms
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion, Member
from shared.ingest.convert.ocr import MAX_PIXELS, NotReadError, PageReader, Reading
from shared.ingest.convert.pdf_legible import Legibility, legibility
from shared.ingest.convert.pdf_text import Layer, layer_of

_POINTS_PER_INCH = 72
# A picture over most of a page with a line or two of text on it is a scan with a stamp, a page number or a mark.
_SCAN_SHARE = 0.5
_STAMP_CHARS = 400
# Of the words of a recognised line: so many that stand in the page's own text, and it is a line of that.
_SAME_LINE = 0.6
_NO_ENGINE = "no text recognition is installed"


def convert(content: bytes, reader: PageReader | None = None) -> Conversion:
    """Return the text of a PDF by pages; its embedded files are members.

    Each page is decided by itself: what has text is taken as it is, what has none, or none that can be read, is drawn
    and recognised by `reader`. A document that only restricts printing or copying opens with the empty password.
    """
    document = _opened(content)
    try:
        return _converted(document, reader)
    finally:
        document.close()


def _opened(content: bytes) -> Any:
    try:
        return pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise EncryptedFileError("the PDF needs a password to open; store a copy without one") from error
        raise UnreadableFileError(f"the PDF is broken: {error}") from error


@dataclass(slots=True)
class _Findings:
    """Numbers of pages by what was found of them."""

    bare: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    invisible: list[int] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    partly: list[int] = field(default_factory=list)
    read: dict[int, Reading] = field(default_factory=dict)
    blank: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)


def _converted(document: Any, reader: PageReader | None) -> Conversion:
    kind = document.get_formtype()
    if kind != raw.FORMTYPE_NONE:
        document.init_forms()
    builder = TextBuilder()
    found = _Findings()
    for number in range(1, len(document) + 1):
        builder.page(number)
        try:
            page = document[number - 1]
            text, fields = _page(document, page, number, found, reader)
            page.close()
        except pdfium.PdfiumError:
            found.damaged.append(number)
            continue
        builder.add(text)
        builder.add(fields)
    is_xfa = kind == raw.FORMTYPE_XFA_FULL
    if is_xfa:
        builder.page(None, locus="form data")
        builder.add("\n".join(pdf_forms.xfa_lines(document)))
    embedded = _files(document.get_attachment(position) for position in range(document.count_attachments()))
    members = (*embedded, *found.members)
    meta = {**_meta(document, found, reader), **({"xfa_only": True} if is_xfa else {})}
    if builder.is_empty:
        none = f"none of the {len(document)} pages holds text that can be read"
        if found.unread and not members:
            raise UnsupportedFileError(f"{none}: {'; '.join(found.reasons)}")
        if found.damaged and not members:
            raise UnreadableFileError(f"{none}: {len(found.damaged)} are damaged")
        meta["no_text"] = True
    return Conversion(builder.build(title=_title(document), meta=meta), members)


def _page(document: Any, page: Any, number: int, found: _Findings, reader: PageReader | None) -> tuple[str, str]:
    layer = layer_of(page)
    fields = "\n".join([*pdf_forms.field_lines(document, page), *pdf_forms.typed_lines(page)])
    found.members += _files(pdf_forms.attached(document, page))
    for note in pdf_forms.notes(page):
        found.notes.append({"page": number, **note})
    if layer.has_invisible:
        found.invisible.append(number)
    if not layer.text.strip():
        found.bare.append(number)
    legible = legibility(layer.text, layer.unmapped)
    if legible is Legibility.UNREADABLE:
        found.unreadable.append(number)
    elif legible is Legibility.PARTLY:
        found.partly.append(number)
    text = layer.text
    if _needs_recognition(layer, legible):
        recognised = _recognised(page, number, found, reader)
        if recognised:
            text = recognised if legible is Legibility.UNREADABLE else beside(layer.text, recognised)
    return text, fields


def _needs_recognition(layer: Layer, legible: Legibility) -> bool:
    if legible is not Legibility.READABLE or not layer.text.strip():
        return True
    is_stamped = len(layer.text) < _STAMP_CHARS and layer.picture_share >= _SCAN_SHARE
    return is_stamped and not layer.has_invisible


def _recognised(page: Any, number: int, found: _Findings, reader: PageReader | None) -> str:
    try:
        reading = _read(page, reader)
    except NotReadError as error:
        found.unread.append(number)
        found.reasons[str(error)] = found.reasons.get(str(error), 0) + 1
        return ""
    if reading.text:
        found.read[number] = reading
    else:
        found.blank.append(number)
    return reading.text


def _read(page: Any, reader: PageReader | None) -> Reading:
    if reader is None:
        raise NotReadError(_NO_ENGINE)
    dpi = reader.rules.dpi
    return reader.read(lambda: _drawn(page, dpi))


def _drawn(page: Any, dpi: int) -> Image.Image:
    """Return the page as it is printed, in grey; a huge one in a lower resolution. Fields are left out."""
    pdf_forms.remove_fields(page)
    area = page.get_width() * page.get_height()
    scale = min(dpi / _POINTS_PER_INCH, (MAX_PIXELS / max(1.0, area)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False)
    try:
        picture: Image.Image = bitmap.to_pil().convert("L")
    finally:
        bitmap.close()
    return picture


def beside(layer: str, recognised: str) -> str:
    """Return a page's own text, and below it what was recognised and does not stand in it."""
    known = {_plain(word) for word in layer.split()}
    more = []
    for line in recognised.split("\n"):
        words = [_plain(word) for word in line.split()]
        words = [word for word in words if word]
        if not words or sum(word in known for word in words) < _SAME_LINE * len(words):
            more.append(line)
    return "\n".join([layer.strip("\n"), *more]).strip("\n")


def _plain(word: str) -> str:
    return "".join(sign for sign in word.casefold() if sign.isalnum())


def _meta(document: Any, found: _Findings, reader: PageReader | None) -> dict[str, Any]:
    count = len(document)
    meta: dict[str, Any] = {
        "page_count": count,
        "coverage": f"{len(found.bare)} of {count} pages without text",
        "pages_without_text": found.bare,
        "damaged_pages": found.damaged,
        "invisible_text_pages": found.invisible,
        "unreadable_pages": found.unreadable,
        "partly_readable_pages": found.partly,
        "ocr_pages": sorted(found.read),
        "blank_pages": found.blank,
        "unread_pages": found.unread,
    }
    if found.reasons:
        meta["unread_reasons"] = found.reasons
    if reader is not None and found.read:
        meta |= reader.account(found.read)
    if found.notes:
        meta["notes"] = found.notes
    fields = (raw.FPDF_GetSignatureObject(document.raw, at) for at in range(raw.FPDF_GetSignatureCount(document.raw)))
    # A field that nobody has signed yet is empty.
    signatures = sum(raw.FPDFSignatureObj_GetContents(field, None, 0) > 0 for field in fields)
    if signatures > 0:
        # Present, and not checked: whether it is valid is not ours to say.
        meta["signatures"] = signatures
    return meta | _protection(document)


def _files(attachments: Iterable[Any]) -> Iterator[Member]:
    for position, attachment in enumerate(attachments, start=1):
        try:
            content = bytes(attachment.get_data())
        except pdfium.PdfiumError:
            continue
        yield Member(attachment.get_name() or f"file {position}", content)


def _protection(document: Any) -> dict[str, Any]:
    revision = raw.FPDF_GetSecurityHandlerRevision(document.raw)
    if revision < 0:
        return {}
    return {"encryption_revision": revision, "permissions": raw.FPDF_GetDocPermissions(document.raw) & 0xFFFFFFFF}


def _title(document: Any) -> str | None:
    title = document.get_metadata_dict().get("Title")
    return str(title) if title else None
