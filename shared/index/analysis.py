"""How text becomes terms: the analysers, as index settings.

German keeps *nicht, ohne, gegen, kein*: a clause that excludes a liability must not look like one that accepts it. The
engine's own `german` analyser drops them. `german_normalization` folds ae, oe, ue and umlauts, so that "Müller" and
"Mueller" are one name; the exact form beside it keeps "Uber" apart from "über".

An identifier is cut into runs of letters and runs of digits. Joined, the runs are one token in which only two numbers
keep a mark between them: spacing, slashes and dots stop mattering, and "1 C 41/6" still differs from "1 C 4/16".
"""

from __future__ import annotations

from typing import Any, Final

GERMAN: Final = "ki_german"
ENGLISH: Final = "ki_english"
EXACT: Final = "ki_exact"
NAMES: Final = "ki_names"
IDENTIFIER_PARTS: Final = "ki_identifier_parts"
IDENTIFIER_JOINED: Final = "ki_identifier_joined"
IDENTIFIER_JOINED_SEARCH: Final = "ki_identifier_joined_search"

_GERMAN_STOP_WORDS: Final = """
    der die das den dem des ein eine einer eines einem einen
    bin bist ist sind seid war warst waren wart sei seien wäre wären gewesen sein
    habe hast hat haben habt hatte hattest hatten hattet hätte hätten gehabt
    werde wirst wird werden werdet wurde wurdest wurden wurdet würde würden worden
"""
_ENGLISH_STOP_WORDS: Final = "a an the am is are was were be been being has have had do does did"

# The longest identifier in use, an ECLI, has nine or ten runs.
_LONGEST_IDENTIFIER_RUNS: Final = 10
# From this length on an identifier is unambiguous without any mark (IBAN, ECLI, VAT number written in groups).
_UNAMBIGUOUS_CHARS: Final = 12
_RUNS: Final = r"(\p{L}+|\p{N}+)"

# Repeats the normaliser of `shared.text` for what reaches the engine past it.
_SAFETY_NET: Final = ["ki_marks"]


def analysis_settings() -> dict[str, Any]:
    """Return the `index.analysis` settings."""
    return {
        "char_filter": {
            "ki_marks": {"type": "mapping", "mappings": _marks()},
            "ki_separators": {"type": "pattern_replace", "pattern": r"[^\p{L}\p{N}]+", "replacement": "_"},
        },
        "tokenizer": {"ki_runs": {"type": "pattern", "pattern": _RUNS, "group": 1}},
        "filter": _filters(),
        "analyzer": {
            GERMAN: _analyser("standard", "lowercase", "ki_german_stop", "german_normalization", "ki_german_stem"),
            ENGLISH: _analyser("standard", "ki_possessive", "lowercase", "ki_english_stop", "ki_english_stem"),
            EXACT: _analyser("standard", "lowercase"),
            NAMES: _analyser("standard", "lowercase", "german_normalization"),
            IDENTIFIER_PARTS: _analyser("ki_runs", "lowercase"),
            IDENTIFIER_JOINED: {
                "type": "custom",
                "char_filter": [*_SAFETY_NET, "ki_separators"],
                "tokenizer": "keyword",
                "filter": ["lowercase", "ki_trim_marks", "ki_joined_forms", "ki_each_once"],
            },
            IDENTIFIER_JOINED_SEARCH: _analyser(
                "ki_runs", "lowercase", "ki_run_shingles", "ki_trim_marks", "ki_joined_forms", "ki_each_once"
            ),
        },
    }


def _filters() -> dict[str, Any]:
    return {
        "ki_german_stop": {"type": "stop", "stopwords": _GERMAN_STOP_WORDS.split()},
        "ki_german_stem": {"type": "stemmer", "language": "light_german"},
        "ki_english_stop": {"type": "stop", "stopwords": _ENGLISH_STOP_WORDS.split()},
        "ki_english_stem": {"type": "stemmer", "language": "english"},
        "ki_possessive": {"type": "stemmer", "language": "possessive_english"},
        "ki_run_shingles": {
            "type": "shingle",
            "min_shingle_size": 2,
            "max_shingle_size": _LONGEST_IDENTIFIER_RUNS,
            "token_separator": "_",
            "output_unigrams": True,
        },
        "ki_trim_marks": {"type": "pattern_replace", "pattern": "^_+|_+$", "replacement": ""},
        # A mark stays between two numbers only.
        "ki_inner_marks": {"type": "pattern_replace", "pattern": r"(?<!\p{N})_|_(?!\p{N})", "replacement": ""},
        "ki_no_marks": {"type": "pattern_replace", "pattern": "_", "replacement": ""},
        "ki_unambiguous": {"type": "length", "min": _UNAMBIGUOUS_CHARS},
        "ki_joined_forms": {
            "type": "multiplexer",
            "filters": ["ki_inner_marks", "ki_no_marks, ki_unambiguous"],
            "preserve_original": False,
        },
        "ki_each_once": {"type": "remove_duplicates"},
    }


def _analyser(tokenizer: str, *filters: str) -> dict[str, Any]:
    return {"type": "custom", "char_filter": _SAFETY_NET, "tokenizer": tokenizer, "filter": list(filters)}


def _marks() -> list[str]:
    nothing = (0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)
    spaces = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
    dashes = (*range(0x2010, 0x2016), 0x2043, 0x2212, 0xFE58, 0xFE63, 0xFF0D)
    return [
        *(rf"\u{code:04X}=>" for code in nothing),
        *(rf"\u{code:04X}=>\u0020" for code in spaces),
        *(rf"\u{code:04X}=>-" for code in dashes),
    ]
