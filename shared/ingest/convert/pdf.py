"""PDF: the text of each page, form values, and the files that are embedded."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from shared.errors import EncryptedFileError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion, Member
from shared.ingest.convert.hyphens import join_cut_words
from shared.text.normalise import stored

_INVISIBLE = 3
_MAX_INSPECTED_OBJECTS = 5000
_BUTTONS = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})


def convert(content: bytes) -> Conversion:
    """Return the text of a PDF by pages; its embedded files are members.

    A document that only restricts printing or copying opens with the empty password and is read. A PDF in which no
    page has text is a scan.
    """
    document = _opened(content)
    try:
        return _converted(document)
    finally:
        document.close()


def _opened(content: bytes) -> Any:
    try:
        return pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise EncryptedFileError("the PDF needs a password to open; store a copy without one") from error
        raise UnreadableFileError(f"the PDF is broken: {error}") from error


def _converted(document: Any) -> Conversion:
    if document.get_formtype() != raw.FORMTYPE_NONE:
        document.init_forms()
    builder = TextBuilder()
    bare: list[int] = []
    damaged: list[int] = []
    invisible: list[int] = []
    for number in range(1, len(document) + 1):
        builder.page(number)
        try:
            page = document[number - 1]
        except pdfium.PdfiumError:
            damaged.append(number)
            continue
        text = _page_text(page)
        fields = "\n".join(_form_lines(document, page))
        if text.strip() and _has_invisible_text(page):
            invisible.append(number)
        page.close()
        if not (text.strip() or fields):
            bare.append(number)
        builder.add(text)
        builder.add(fields)
    members = tuple(_members(document))
    if len(bare) + len(damaged) == len(document) and not members:
        raise UnsupportedFileError(
            f"none of the {len(document)} pages holds text: a scan, or pages that cannot be read; "
            "text recognition comes with a later stage"
        )
    meta = {
        "page_count": len(document),
        "pages_without_text": bare,
        "damaged_pages": damaged,
        "invisible_text_pages": invisible,
        **_protection(document),
    }
    return Conversion(builder.build(title=_title(document), meta=meta), members)


def _page_text(page: Any) -> str:
    text_page = page.get_textpage()
    try:
        text = str(text_page.get_text_range(errors="ignore"))
    finally:
        text_page.close()
    # PDFium writes U+FFFE (or U+0002) where it takes a hyphen at a line's end for a cut.
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    for mark in ("\ufffe", "\x02"):
        plain = plain.replace(f"-{mark}", "-").replace(f"{mark}\n", "-\n").replace(mark, "-\n")
    return join_cut_words(plain)


def _has_invisible_text(page: Any) -> bool:
    """Return whether the page carries a text layer that is not painted, as text recognition leaves it."""
    for position, item in enumerate(page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=2)):
        if raw.FPDFTextObj_GetTextRenderMode(item.raw) == _INVISIBLE:
            return True
        if position >= _MAX_INSPECTED_OBJECTS:
            return False
    return False


def _form_lines(document: Any, page: Any) -> Iterator[str]:
    """Yield "name: value" for every filled field of the page, each once."""
    if document.formenv is None:
        return
    seen: set[str] = set()
    for position in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, position)
        if not annotation:
            continue
        try:
            if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
                continue
            line = _field(document.formenv.raw, annotation)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
        if line and line not in seen:
            seen.add(line)
            yield line


def _field(form: Any, annotation: Any) -> str | None:
    name = _wide(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    value = _wide(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if raw.FPDFAnnot_GetFormFieldType(form, annotation) in _BUTTONS:
        value = (value or "on") if raw.FPDFAnnot_IsChecked(form, annotation) else ""
    return f"{name}: {value}" if value.strip() else None


def _wide(call: Any, form: Any, annotation: Any) -> str:
    size = call(form, annotation, None, 0)
    if size <= 2:  # noqa: PLR2004 - only the closing NUL
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(form, annotation, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return stored(buffer.raw[: size - 2].decode("utf-16-le", "ignore"))


def _members(document: Any) -> Iterator[Member]:
    for position in range(document.count_attachments()):
        attachment = document.get_attachment(position)
        try:
            content = bytes(attachment.get_data())
        except pdfium.PdfiumError:
            continue
        yield Member(attachment.get_name() or f"file {position + 1}", content)


def _protection(document: Any) -> dict[str, Any]:
    revision = raw.FPDF_GetSecurityHandlerRevision(document.raw)
    if revision < 0:
        return {}
    return {"encryption_revision": revision, "permissions": raw.FPDF_GetDocPermissions(document.raw) & 0xFFFFFFFF}


def _title(document: Any) -> str | None:
    title = document.get_metadata_dict().get("Title")
    return str(title) if title else None
