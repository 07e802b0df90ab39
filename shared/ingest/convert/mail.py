"""A mail as a text: the headers that people read in a part of their own, then what was written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion, Member

SHOWN = ("From", "To", "Cc", "Bcc", "Date", "Subject")
# Not shown, but kept: what ties mails to a thread.
KEPT = ("Message-ID", "In-Reply-To", "References")
_STROKES = re.compile(r"[/\\]")
# Whether a signature is good is not said: nothing here knows whom the reader trusts.
SIGNED = "present, not checked"


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail of any format. `headers` go by lower-case name; `notes` are what else the reader found worth keeping."""

    headers: Mapping[str, str]
    texts: Sequence[str]
    members: Sequence[Member]
    is_signed: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)


def file_name(subject: str | None, ending: str) -> str:
    """Return the file name of a mail that lies in another: its subject, whose strokes are no folders ("345/21")."""
    name = _STROKES.sub("-", subject or "") or "message"
    return name if name.lower().endswith(ending) else f"{name}{ending}"


def conversion(mail: Mail) -> Conversion:
    """Return the text and the members of a mail."""
    builder = TextBuilder()
    builder.page(None, locus="mail header")
    for name in SHOWN:
        if value := mail.headers.get(name.lower()):
            builder.add(f"{name}: {value}")
    builder.page(None, locus="body")
    for text in mail.texts:
        builder.add(text, gap=2)
    names = {name.lower() for name in (*SHOWN, *KEPT)}
    meta = {name: value for name, value in mail.headers.items() if name in names and value}
    notes = {name: value for name, value in mail.notes.items() if value}
    signed = {"signed": SIGNED} if mail.is_signed else {}
    return Conversion(
        builder.build(title=mail.headers.get("subject"), meta={**meta, **notes, **signed}), tuple(mail.members)
    )
