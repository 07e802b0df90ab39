"""The lexical query: most of the query's content words must be there, in whichever field, and exact forms weigh more.

The gate works across fields. A row passes when enough words are found in its German fields taken together (text and
title share one analyser), or in its English ones, or among its parties; a word in the title and another in the text
count as two. Passing with the help of parts of compounds counts less: "Verbot" in "Wettbewerbsverbot" is weaker
evidence than the word itself. A gate for each field alone would drop the chunk whose title says "Mietvertrag" and whose
text says "Kündigung"; no gate ranks whatever shares one frequent word, which fusion then takes for evidence. What was
tried stands in docs/measurements.md.
"""

from __future__ import annotations

from typing import Any, Final

from shared.index import fields
from shared.search.function_words import content_words
from shared.search.words import first_terms

TEXT_WEIGHT: Final = 1.0
TITLE_WEIGHT: Final = 1.0
PARTS_WEIGHT: Final = 0.3
"""Weight of a row that passes the gate only with parts of compounds, and of the parts in it."""
PARTIES_WEIGHT: Final = 0.5
EXACT_WEIGHT: Final = 0.2
"""Added for a word in its very spelling: "Uber" stands above "über"."""
OTHER_FIELDS_SHARE: Final = 0.1
"""What a further field adds for a word that is found in several."""

MAX_TERMS: Final = 80
"""A term costs at most eleven clauses; the engine refuses a query with more than 1,024."""

_GERMAN: Final = (f"{fields.TEXT}^{TEXT_WEIGHT}", f"{fields.TITLE}^{TITLE_WEIGHT}")
_GERMAN_WITH_PARTS: Final = (*_GERMAN, f"{fields.TEXT_PARTS}^{PARTS_WEIGHT}")
_ENGLISH: Final = (f"{fields.TEXT_EN}^{TEXT_WEIGHT}", f"{fields.TITLE_EN}^{TITLE_WEIGHT}")
_PARTIES: Final = (f"{fields.PARTIES}^{PARTIES_WEIGHT}",)


def lexical_query(query: str, *, minimum_should_match: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what must match and what adds to the score of rows that do."""
    terms = content_words(first_terms(query, limit=MAX_TERMS))
    groups = [_across(terms, group, minimum_should_match) for group in (_GERMAN, _ENGLISH, _PARTIES)]
    groups.append(_across(terms, _GERMAN_WITH_PARTS, minimum_should_match, boost=PARTS_WEIGHT))
    must = {"dis_max": {"queries": groups, "tie_breaker": OTHER_FIELDS_SHARE}}
    exact = {"match": {fields.TEXT_EXACT: {"query": terms, "boost": EXACT_WEIGHT}}}
    exact_title = {"match": {fields.TITLE_EXACT: {"query": terms, "boost": EXACT_WEIGHT}}}
    return must, [exact, exact_title]


def _across(
    terms: str, group: tuple[str, ...], minimum_should_match: str | None, *, boost: float | None = None
) -> dict[str, Any]:
    """Return a match that treats the fields of `group` as one: each word counts once, wherever it stands."""
    body: dict[str, Any] = {
        "query": terms,
        "type": "cross_fields",
        "fields": list(group),
        "tie_breaker": OTHER_FIELDS_SHARE,
    }
    if minimum_should_match is not None:
        body["minimum_should_match"] = minimum_should_match
    if boost is not None:
        body["boost"] = boost
    return {"multi_match": body}
