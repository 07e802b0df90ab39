"""All that one version says of others and is called by them, read from its text, its file's name and its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.ingest.facts import Reading
from shared.ingest.objects import MemberRow, ObjectRow
from shared.ingest.relations.annexes import annex_intents, annex_keys, folder_key
from shared.ingest.relations.borne import own_keys
from shared.ingest.relations.cited import OWN_WORDS_CHARS, dated_papers, numbered_papers
from shared.ingest.relations.redline_signs import signs_of
from shared.ingest.relations.said import Intent, Key, key_of
from shared.ingest.threads import is_mail, mail_of
from shared.text.converted import ConvertedText
from shared.types import RelationKind


def read_said(
    text: ConvertedText, row: ObjectRow, reading: Reading, *, mime: str, sha256: str, members: Sequence[MemberRow]
) -> tuple[list[Intent], list[Key]]:
    """Return the intents and the keys of a version as this object shows it, one each, in a fixed order."""
    keys = {key.key: key for key in _keys(text, row, reading, mime=mime, sha256=sha256)}
    own = {key.key for key in keys.values() if not key.by_name}
    intents = {
        (intent.kind, intent.key): intent
        for intent in _intents(text, row, reading, mime=mime, sha256=sha256, members=members)
        # What it bears itself is not another one's.
        if intent.key not in own
    }
    return sorted(intents.values(), key=lambda one: (one.kind, one.key)), sorted(keys.values(), key=lambda one: one.key)


def _keys(text: ConvertedText, row: ObjectRow, reading: Reading, *, mime: str, sha256: str) -> Iterator[Key]:
    ancestors = reading.content.doc_type_ancestors
    yield from annex_keys(row.source_id, row.path, text.text, root_type=ancestors[-1] if ancestors else None)
    yield from own_keys(text.text, reading)
    if row.parent_id is not None:
        yield Key(_member_key(str(row.parent_id), sha256), {"source": "container"}, by_name=True)
    if is_mail(mime) and (own := mail_of(text).message_id) is not None:
        yield Key(key_of("mail", own), {"source": "message_id"})


def _intents(
    text: ConvertedText, row: ObjectRow, reading: Reading, *, mime: str, sha256: str, members: Sequence[MemberRow]
) -> Iterator[Intent]:
    facts = reading.content
    is_pleading = "pleading" in facts.doc_type_ancestors
    yield from numbered_papers(text.text, facts.identifiers, own_words_chars=OWN_WORDS_CHARS if is_pleading else 0)
    yield from dated_papers(text.text)
    yield from annex_intents(row.source_id, row.path, text.text)
    for member in members:
        if member.sha256 is not None and member.sha256 != sha256:
            yield Intent(
                RelationKind.CONTAINS,
                _member_key(str(row.id), member.sha256),
                1.0,
                {"source": "container"},
                by_name=True,
            )
    if is_mail(mime) and (answered := mail_of(text).answers) is not None:
        yield Intent(RelationKind.RESPONDS_TO, key_of("mail", answered), 1.0, {"source": "in_reply_to"})
    signs = signs_of(text, row.name)
    if signs is not None:
        key = folder_key(row.source_id, row.path)
        yield Intent(RelationKind.REDLINE_OF, key, signs.confidence, signs.evidence, by_name=True)


def _member_key(holder: str, sha256: str) -> str:
    return key_of("member", f"{holder}:{sha256}")
