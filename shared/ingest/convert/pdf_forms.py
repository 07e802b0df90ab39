"""What a PDF says beside its pages' text: values of form fields, XFA data, and notes that readers have attached."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2 as pdfium
from lxml import etree
from pypdfium2 import raw

from shared.text.normalise import stored

_BUTTONS = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})
_NO_NOTES = frozenset({raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_FREETEXT})
_MAX_ANNOTATIONS = 10_000
_MAX_XFA_BYTES = 20 * 1024 * 1024


def field_lines(document: Any, page: Any) -> Iterator[str]:
    """Yield "name: value" for every filled field of the page, each once."""
    if document.formenv is None:
        return
    seen: set[str] = set()
    for annotation, kind in _annotations(page):
        if kind != raw.FPDF_ANNOT_WIDGET:
            continue
        line = _field(document.formenv.raw, annotation)
        if line and line not in seen:
            seen.add(line)
            yield line


def typed_lines(page: Any) -> Iterator[str]:
    """Yield what was typed onto the page as free text: no field, no part of the page's text, and seen by everyone."""
    for annotation, kind in _annotations(page):
        if kind == raw.FPDF_ANNOT_FREETEXT and (text := _entry(annotation, b"Contents").strip()):
            yield text


def notes(page: Any) -> Iterator[dict[str, str | None]]:
    """Yield what readers have attached to the page as a note, a mark or a stamp, if it says something."""
    for annotation, kind in _annotations(page):
        if kind not in _NO_NOTES and (text := _entry(annotation, b"Contents").strip()):
            author, date = _entry(annotation, b"T"), _entry(annotation, b"M")
            yield {"author": author or None, "date": date or None, "text": text}


def attached(document: Any, page: Any) -> Iterator[pdfium.PdfAttachment]:
    """Yield the files that are pinned to the page, which the document's own list of files leaves out."""
    for annotation, kind in _annotations(page):
        if kind == raw.FPDF_ANNOT_FILEATTACHMENT and (file := raw.FPDFAnnot_GetFileAttachment(annotation)):
            yield pdfium.PdfAttachment(file, document)


def remove_fields(page: Any) -> None:
    """Take fields and typed text off the page in memory: a drawing of it must not show them a second time."""
    for position in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MAX_ANNOTATIONS) - 1, -1, -1):
        annotation = raw.FPDFPage_GetAnnot(page.raw, position)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        raw.FPDFPage_CloseAnnot(annotation)
        if kind in {raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT}:
            raw.FPDFPage_RemoveAnnot(page.raw, position)


def xfa_lines(document: Any) -> Iterator[str]:
    """Yield "name: value" for the data of an XFA form, which no page of the file shows."""
    for position in range(raw.FPDF_GetXFAPacketCount(document.raw)):
        size = raw.FPDF_GetXFAPacketName(document.raw, position, None, 0)
        name = ctypes.create_string_buffer(max(1, size))
        raw.FPDF_GetXFAPacketName(document.raw, position, name, size)
        if name.value == b"datasets":
            yield from _data_lines(_packet(document, position))


def _packet(document: Any, position: int) -> bytes:
    length = ctypes.c_ulong()
    raw.FPDF_GetXFAPacketContent(document.raw, position, None, 0, length)
    if not 0 < length.value <= _MAX_XFA_BYTES:
        return b""
    buffer = ctypes.create_string_buffer(length.value)
    raw.FPDF_GetXFAPacketContent(document.raw, position, buffer, length.value, length)
    return bytes(buffer.raw[: length.value])


def _data_lines(content: bytes) -> Iterator[str]:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError:
        return
    for element in root.iter("{*}*"):
        value = (element.text or "").strip()
        if value and len(element) == 0:
            yield f"{etree.QName(element).localname}: {stored(value)}"


def _annotations(page: Any) -> Iterator[tuple[Any, int]]:
    for position in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MAX_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, position)
        if not annotation:
            continue
        try:
            yield annotation, raw.FPDFAnnot_GetSubtype(annotation)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _field(form: Any, annotation: Any) -> str | None:
    name = _wide(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    value = _wide(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if raw.FPDFAnnot_GetFormFieldType(form, annotation) in _BUTTONS:
        value = (value or "on") if raw.FPDFAnnot_IsChecked(form, annotation) else ""
    return f"{name}: {value}" if value.strip() else None


def _entry(annotation: Any, key: bytes) -> str:
    return _wide(raw.FPDFAnnot_GetStringValue, annotation, key)


def _wide(call: Any, first: Any, second: Any) -> str:
    size = call(first, second, None, 0)
    if size <= 2:  # noqa: PLR2004 - only the closing NUL
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(first, second, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return stored(buffer.raw[: size - 2].decode("utf-16-le", "ignore"))
