"""A result list as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_INDENT = "     "


def as_text(answer: Mapping[str, Any], *, offset: int) -> str:
    """Return one paragraph a result: title, facts, passage, and where it can be found again."""
    results = answer["results"]
    if not results:
        return "Nothing found that you may see."
    shown = [_result(number, result) for number, result in enumerate(results, start=offset + 1)]
    page = answer["page"]
    total = page.get("total")
    tail = f"{page['returned']} shown" + (f" of {total}" if total is not None else "")
    if page["has_more"]:
        further = f"--cursor {page['next_cursor']}" if page.get("next_cursor") else f"--offset {page['next_offset']}"
        tail += f"; more with {further}"
    return "\n\n".join([*shown, tail])


def _result(number: int, result: Mapping[str, Any]) -> str:
    matter = result.get("matter") or {}
    facts = [
        result.get("doc_type_label"),
        result.get("doc_date"),
        f"version {result['version_ordinal']} ({result['version_status']})",
        matter.get("title"),
    ]
    lines = [f"{number:>3}. {result['title']}", _INDENT + " · ".join(str(fact) for fact in facts if fact)]
    if result.get("excerpt"):
        lines.append(f"{_INDENT}“{marked(result['excerpt'], result.get('highlights') or [])}”")
    lines.extend(_INDENT + line for line in citation_lines(result["citation"]))
    lines.append(f"{_INDENT}document {result['document_id']}")
    return "\n".join(lines)


def citation_lines(citation: Mapping[str, Any]) -> list[str]:
    """Return where the passage stands: each citable path, then page and characters."""
    lines = [f"{source['source']}/{source['path']}" for source in citation["sources"]]
    for chunk in citation.get("chunks") or []:
        place = [f"page {chunk['page']}" if chunk.get("page") else None, chunk.get("locus")]
        if chunk.get("char_start") is not None:
            place.append(f"characters {chunk['char_start']} to {chunk['char_end']}")
        lines.append(", ".join(str(part) for part in place if part))
    return [line for line in lines if line]


def marked(excerpt: str, highlights: Sequence[Sequence[int]]) -> str:
    """Return the excerpt on one line with its highlights, [start, end) each, between asterisks."""
    pieces, at = [], 0
    for start, end in highlights:
        pieces += [excerpt[at:start], "*", excerpt[start:end], "*"]
        at = end
    return " ".join("".join([*pieces, excerpt[at:]]).split())
