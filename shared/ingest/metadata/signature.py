"""How far a text has come: draft, final or executed, by its own marks, each kept as evidence.

Marks in the text count before the signature fields of a PDF, which may also hold one party's signature only. Marks that
contradict each other say nothing: a text that calls itself a draft and is signed, a block that only some have signed.
What the file's name says counts before all of this (`metadata.names`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.text.normalise import single_line
from shared.types import VersionStatus

Evidence = tuple[Mapping[str, str], ...]

_HEAD_CHARS = 2000
_TAIL_CHARS = 6000
_MAX_VALUE_CHARS = 120
_DRAFT_HEAD = re.compile(r"^[\W_]*(?:entwurf|draft)\b(?!\w)[^\n]{0,80}", re.IGNORECASE | re.MULTILINE)
# A stamp across a page comes out as a line of its own, on any page.
_WATERMARK = re.compile(
    r"^[^\S\n]{0,40}(?:E\s?N\s?T\s?W\s?U\s?R\s?F|D\s?R\s?A\s?F\s?T|Entwurf|Draft)[^\S\n]{0,40}$", re.MULTILINE
)
_FINAL = re.compile(r"\b(?:execution version|execution copy|endfassung|finale fassung)\b", re.IGNORECASE)
_SIGNED = re.compile(
    r"(?:^|[\s:(])(?P<mark>gez\.(?:[^\S\n]Unterschrift)?|/s/|(?:elektronisch|digital)[^\S\n](?:signiert|unterzeichnet)[^\S\n]von"
    r"|(?:Digitally|Electronically)[^\S\n]signed[^\S\n]by|DocuSigned[^\S\n]by:?)[^\S\n]{0,3}(?:\n[^\S\n]{0,3})?"
    r"(?P<who>[A-ZÄÖÜ(][^\n_]{1,60})",
)
_LABEL = re.compile(
    r"^[^\S\n]{0,60}(?P<label>\(?(?:(?:Ort|Place)[^\S\n]?[,/][^\S\n]?(?:Datum|Date)(?:[^\S\n]?[,/][^\S\n]?(?:Unterschrift|Signature))?"
    r"|Unterschrift(?:en)?(?:[^\S\n](?:des|der)[^\S\n][\w-]{3,30})?|Signature|By|Signed)\)?)[^\S\n]?(?P<colon>:?)"
    r"(?P<same>[^\n]{0,120})$",
    re.MULTILINE,
)
_BLANK = re.compile(r"[\s_.…\u2026\-\u2013\u2014|]*\Z")
_WRITTEN = re.compile(r"[^\W\d_]{2}")
_PLACEHOLDER = re.compile(r"\[[^\]\n]{0,40}\]|<[^>\n]{0,40}>|X{2,}")


def text_status(text: str, meta: Mapping[str, Any]) -> tuple[VersionStatus, Evidence]:
    """Return the status that a text and its file say, with everything that it was read from."""
    found = [*_draft_marks(text), *_final_marks(text), *_signature_marks(text)]
    statuses = {status for status, _ in found}
    evidence = tuple(dict.fromkeys((mark["kind"], mark["value"]) for _, mark in found))
    as_rows = tuple({"kind": kind, "value": value} for kind, value in evidence)
    if found:
        # A final that is signed has been executed; every other mixture is ambiguous.
        agreed = statuses - {VersionStatus.FINAL} if VersionStatus.EXECUTED in statuses else statuses
        return agreed.pop() if len(agreed) == 1 else VersionStatus.UNKNOWN, as_rows
    signatures = meta.get("signatures")
    if isinstance(signatures, int) and signatures > 0:
        return VersionStatus.EXECUTED, ({"kind": "pdf_signature", "value": str(signatures)},)
    return VersionStatus.UNKNOWN, ()


_Mark = tuple[VersionStatus, Mapping[str, str]]


def _draft_marks(text: str) -> Iterator[_Mark]:
    found = _DRAFT_HEAD.search(text[:_HEAD_CHARS]) or _WATERMARK.search(text)
    if found is not None:
        yield VersionStatus.DRAFT, {"kind": "text", "value": _short(found.group(0))}


def _final_marks(text: str) -> Iterator[_Mark]:
    found = _FINAL.search(text[:_HEAD_CHARS])
    if found is not None:
        yield VersionStatus.FINAL, {"kind": "text", "value": _short(found.group(0))}


def _signature_marks(text: str) -> Iterator[_Mark]:
    """Yield the signatures at the end of a text, and the places for one that are empty."""
    tail = text[-_TAIL_CHARS:]
    for signed in _SIGNED.finditer(tail):
        yield VersionStatus.EXECUTED, {"kind": "signature", "value": _short(signed.group(0))}
    for label in _LABEL.finditer(tail):
        is_filled = _is_filled(tail, label)
        if is_filled is None:
            continue
        name = single_line(label["label"]).strip("()")
        if is_filled:
            yield VersionStatus.EXECUTED, {"kind": "signature_block", "value": f"{name}: filled in"}
        else:
            yield VersionStatus.UNKNOWN, {"kind": "signature_block", "value": f"{name}: empty"}


def _is_filled(tail: str, label: re.Match[str]) -> bool | None:
    """Tell whether a place for a signature has one; None for a line that is no such place.

    Behind the label stands the value after a colon, else it stands on the line above, over a rule.
    """
    same = label["same"].strip()
    if label["colon"]:
        return _is_written(same)
    is_sentence = same and not _BLANK.match(same)
    if is_sentence or label["label"].strip("()") in {"By", "Signed"}:
        return None
    return _is_filled_above(tail[: label.start()].rstrip("\n").rsplit("\n", 2))


def _is_filled_above(before: list[str]) -> bool | None:
    above = before[-1] if before else ""
    if not _BLANK.match(above):
        return _is_written(above)
    # A rule: what is written on it stands over it, and may as well be the end of the text.
    return _SIGNED.search(before[-2]) is not None if above.strip() and len(before) > 1 else None


def _is_written(value: str) -> bool:
    plain = _PLACEHOLDER.sub(" ", value)
    return _WRITTEN.search(plain.replace("_", " ")) is not None


def _short(value: str) -> str:
    return single_line(value)[:_MAX_VALUE_CHARS]
