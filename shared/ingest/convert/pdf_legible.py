"""Whether what a PDF gives as text can be read, or is the codes of a font that does not say which letters they are.

A font without a map to Unicode shows the right shapes and gives anything as text: every letter shifted by a constant
("7KHGDQFHUV" for "The dancers"), names of glyphs, control characters. Such text is told from language by what all text
in Latin letters has in common: words like "der" and "of", and pairs of letters like "en", "ch" and "th".
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

# The words that every German or English page is full of.
_FUNCTION_WORDS = frozenset(
    """
    der die das den dem des ein eine einen einem einer eines und oder nicht ist sind war wird werden wurde hat haben
    von vom zu zum zur mit auf aus bei nach für im in an am als auch es er sie ich wir sich dass wenn nur noch kann
    über durch gegen um bis wie so aber ihr ihre dieser diese dieses sowie the of and to a that is was be for on with
    as by at this it or not are from has have shall any such which his but an he they we you
    """.split()  # noqa: SIM905 - words are easier to read than a list of them
)
# The most frequent pairs of letters in German and English running text; half of what is written consists of them.
_PAIRS = frozenset(
    """
    en er ch de ei ie in te ge un nd st ic es be re an he th is ne se sc di on at or ar al ti nt ng it ed hi as et ha
    ou to io le ve co me us ra ss el li ri au we
    """.split()  # noqa: SIM905 - words are easier to read than a list of them
)
_WORD = re.compile(r"[^\W\d_]+")
_GLYPH_NAMES = re.compile(r"\(cid:\d+\)|(?:/(?:g|a|c|uni|glyph|index|cid|char)[0-9A-Fa-f]{1,6}(?![a-z]))|\bglyph\d+\b")
_FILLING = re.compile(r"[\s.·…_=*\-\u2013\u2014]+")
# German and English have 0.4 and more, Polish 0.2, a list of abbreviations less than that, a shifted text 0.04.
_MIN_PAIR_SHARE, _MIN_SUSPECT_PAIR_SHARE = 0.08, 0.25
_MIN_WORD_SHARE = 0.05
# Less than this says nothing about language: a number, a name, a heading.
_MIN_LETTERS = 60
_MIN_SIGNS = 60
_MAX_UNKNOWN_SHARE = 0.2
_MIN_ALNUM_SHARE = 0.35
_MIN_DIGIT_SHARE = 0.3
# Of the text of a page whose fonts lack their maps: from here on the page as a whole is in question.
_MOSTLY = 0.5
_MIN_RUN = 4


class Legibility(StrEnum):
    """How much of a page's text can be read."""

    READABLE = "readable"
    PARTLY = "partly"
    UNREADABLE = "unreadable"


def legibility(text: str, unmapped: str) -> Legibility:
    """Return how a page's text can be read. `unmapped` is the part for which the fonts have no map to Unicode.

    A bullet, a rule made of one sign or a formula is no matter: the part counts if somewhere several different signs
    without a map follow each other.
    """
    shown = _signs(text)
    if not shown:
        return Legibility.READABLE
    runs = "\n".join(run for run in unmapped.split("\n") if len(_signs(run)) >= _MIN_RUN and len(set(_signs(run))) > 1)
    if runs and not is_language(runs, suspect=True):
        mostly = len(_signs(unmapped)) >= _MOSTLY * len(shown)
        return Legibility.UNREADABLE if mostly else Legibility.PARTLY
    return Legibility.READABLE if is_language(text, suspect=False) else Legibility.UNREADABLE


def is_language(text: str, *, suspect: bool) -> bool:
    """Return whether `text` can be what somebody wrote.

    What is not `suspect` has the benefit of the doubt: short texts, numbers and other scripts are taken as they are.
    """
    signs = _signs(_FILLING.sub(" ", text))
    if _GLYPH_NAMES.search(text) and len(_signs(_GLYPH_NAMES.sub("", text))) < _MOSTLY * len(signs):
        return False
    unknown = sum(unicodedata.category(sign) in {"Cc", "Co", "Cn", "Cs"} or sign == "\ufffd" for sign in signs)
    if signs and unknown > _MAX_UNKNOWN_SHARE * len(signs):
        return False
    letters = [sign for sign in signs if sign.isalpha()]
    if suspect and sum(sign.isdecimal() for sign in signs) > max(len(letters), _MIN_DIGIT_SHARE * len(signs)):
        # Numbers that come out as numbers: what stands for digits in a shifted font are no digits.
        return True
    latin = sum(sign.casefold() <= "\u024f" for sign in letters)
    if not suspect:
        if len(signs) >= _MIN_SIGNS and sum(sign.isalnum() for sign in signs) < _MIN_ALNUM_SHARE * len(signs):
            return False
        if len(letters) < _MIN_LETTERS or latin < _MOSTLY * len(letters):
            return True
    return _has_the_ways_of_language(text, _MIN_SUSPECT_PAIR_SHARE if suspect else _MIN_PAIR_SHARE)


def _has_the_ways_of_language(text: str, min_pair_share: float) -> bool:
    words = _WORD.findall(text.casefold())
    pairs = [word[at : at + 2] for word in words for at in range(len(word) - 1)]
    if not pairs:
        return False
    common_words = sum(word in _FUNCTION_WORDS for word in words if len(word) > 1) / len(words)
    common_pairs = sum(pair in _PAIRS for pair in pairs) / len(pairs)
    return common_words >= _MIN_WORD_SHARE or common_pairs >= min_pair_share


def _signs(text: str) -> str:
    return "".join(text.split())
