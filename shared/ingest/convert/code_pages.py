"""Code pages by the numbers that Windows gives them, and the one that a language of Windows uses."""

from __future__ import annotations

import codecs

UTF8 = 65001
_WESTERN = "cp1252"
_NAMED = {
    # ASCII and Latin-1 are read as cp1252, which holds them and what mailers really send.
    20127: _WESTERN,
    28591: _WESTERN,
    UTF8: "utf-8",
    65000: "utf-7",
    1200: "utf-16-le",
    1201: "utf-16-be",
    10000: "mac_roman",
    10007: "mac_cyrillic",
    10029: "mac_latin2",
    20866: "koi8-r",
    21866: "koi8-u",
    50220: "iso2022_jp",
    50221: "iso2022_jp",
    51932: "euc_jp",
    51949: "euc_kr",
    54936: "gb18030",
}
_ISO_8859 = range(28592, 28606)
# The low ten bits of a locale are its language.
_LANGUAGES = {
    **dict.fromkeys((0x05, 0x0E, 0x15, 0x18, 0x1A, 0x1B, 0x1C, 0x24), "cp1250"),
    **dict.fromkeys((0x02, 0x19, 0x22, 0x23, 0x2F), "cp1251"),
    0x08: "cp1253",
    0x1F: "cp1254",
    0x0D: "cp1255",
    0x01: "cp1256",
    **dict.fromkeys((0x25, 0x26, 0x27), "cp1257"),
    0x2A: "cp1258",
    0x1E: "cp874",
    0x11: "cp932",
    0x12: "cp949",
    0x04: "cp936",
}


def codec_of(code_page: int | None) -> str | None:
    """Return the codec of a code page; None when there is none of that number."""
    if code_page is None:
        return None
    name = _NAMED.get(code_page)
    if name is None:
        name = f"iso8859_{code_page - 28590}" if code_page in _ISO_8859 else f"cp{code_page}"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def codec_of_locale(locale: int | None) -> str | None:
    """Return the codec of the ANSI code page that Windows uses under a locale."""
    return None if locale is None else _LANGUAGES.get(locale & 0x3FF, _WESTERN)
