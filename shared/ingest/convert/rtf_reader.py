"""RTF as text: what a reader of the document sees, part by part, and apart from it what is deleted or hidden.

RTF 1.9.1 (Microsoft, 2008); HTML that is wrapped in RTF by [MS-OXRTFEX]. One pass over the bytes, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeAlias

from shared.errors import LimitExceededError, UnreadableFileError
from shared.ingest.convert.code_pages import codec_of

BODY, HEADER, FOOTER, NOTES = "body", "header", "footer", "notes"
PARTS = (BODY, HEADER, FOOTER, NOTES)
_MAX_GROUPS = 5000
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|[\r\n\0]+|([^\\{}\r\n\0]+)", re.DOTALL
)
_HTML_MARK = re.compile(rb"\\fromhtml1?(?![0-9a-zA-Z])")
_HEAD_BYTES = 4096
_TITLE, _FONTS, _AUTHORS, _AUTHOR, _COMMENT, _TAG = "title", "fonts", "authors", "author", "comment", "tag"
# Groups with text of their own, by the word that they begin with, and where it goes.
_OWN = {
    "header": HEADER, "headerl": HEADER, "headerr": HEADER, "headerf": HEADER,
    "footer": FOOTER, "footerl": FOOTER, "footerr": FOOTER, "footerf": FOOTER,
    "footnote": NOTES, "title": _TITLE, "fonttbl": _FONTS, "revtbl": _AUTHORS, "atnauthor": _AUTHOR,
    "annotation": _COMMENT, "htmltag": _TAG,
}  # fmt: skip
# Text boxes, and the Unicode form of a text: they stand in groups that are dropped, and belong to the part around.
_RETURNING = frozenset({"shptxt", "dptxbxtext", "ud"})
# A drawing once more, for readers that know no shapes.
_COPY = "shprslt"
_STAYING = frozenset({"shppict", "nesttableprops"})
_DROPPED_WORDS = """
    aftncn aftnsep aftnsepc atnicn atnid atnparent atnref atntime atrfend atrfstart author background bkmkend
    bkmkstart blipuid buptim category colorschememapping colortbl comment company creatim datafield datastore defchp
    defpap do doccomm docvar falt fchars ffdeftext ffentrymcr ffexitmcr ffformat ffhelptext ffl ffname ffstattext file
    filetbl fldinst fldtype fname fontemb fontfile formfield ftncn ftnsep ftnsepc generator gridtbl hlinkbase hlsrc
    info keywords latentstyles lchars levelnumbers leveltext lfolevel list listlevel listname listoverride
    listoverridetable listpicture liststylename listtable manager mhtmltag nextfile nonesttables nonshppict objalias
    objclass objdata objname objsect objtime oldcprops oldpprops oldsprops oldtprops operator panose password
    passwordhash pgp pgptbl picprop pict pn pnseclvl pntxta pntxtb printim propname protend protstart protusertbl
    revtim rsidtbl rxe shpinst shprslt sn sp staticval stylesheet subject sv tc template themedata txe upr userprops
    wgrffmtfilter windowcaption writereservation writereservhash xe xmlnstbl
"""
_DROPPED = frozenset(_DROPPED_WORDS.split())
_SYMBOLS = {
    "par": "\n", "line": "\n", "sect": "\n", "page": "\n", "column": "\n", "softline": "\n", "softpage": "\n",
    "row": "\n", "nestrow": "\n", "cell": " | ", "nestcell": " | ", "tab": "\t", "emdash": "\u2014",
    "endash": "\u2013", "emspace": "\u2003", "enspace": "\u2002", "qmspace": "\u2005", "bullet": "\u2022",
    "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d",
}  # fmt: skip
_ROWS = frozenset({"row", "nestrow"})
_ESCAPED = {b"\\": "\\", b"{": "{", b"}": "}", b"~": "\u00a0", b"-": "\u00ad", b"_": "\u2011", b"\n": "\n", b"\r": "\n"}
_CHARSETS = {
    77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255,
    178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}  # fmt: skip
_DEFAULT_PAGES = {"ansi": 1252, "mac": 10000, "pc": 437, "pca": 850}
_ANSI_CHARSET, _SYMBOL_CHARSET = 0, 2
_SYMBOL_CODEC = "symbol"
_FIRST_HIGH_BYTE = 0x80
# The bullets of the fonts Symbol and Wingdings, as they stand in the private area.
_BULLETS = str.maketrans(
    {"\uf0b7": "\u2022", "\uf0a7": "\u25aa", "\uf0d8": "\u27a2", "\uf02d": "-", "\uf0fc": "\u2713"}
)


@dataclass(slots=True)
class RtfText:
    """What an RTF document holds. `html` is set when the RTF only wraps a page of HTML."""

    parts: dict[str, str] = field(default_factory=dict)
    title: str | None = None
    html: str | None = None
    insertions: list[dict[str, str | None]] = field(default_factory=list)
    deletions: list[dict[str, str | None]] = field(default_factory=list)
    comments: list[dict[str, str | None]] = field(default_factory=list)
    hidden: str = ""
    pictures: int = 0
    objects: int = 0
    # The file ends within a group: what comes before is all that there is.
    breaks_off: bool = False


# The number of the author of a change, and when it was made.
_Mark: TypeAlias = tuple[int | None, str | None]


class _State(NamedTuple):
    """What a group inherits and gives back at its end.

    Text goes to `target`, and nobody reads it where that is None; `part` is where a text box in it would go.
    """

    target: str | None = None
    part: str | None = BODY
    uc: int = 1
    font: int | None = None
    hidden: bool = False
    inserted: bool = False
    deleted: bool = False
    insertion: _Mark = (None, None)
    deletion: _Mark = (None, None)
    only_rtf: bool = False


def read(content: bytes) -> RtfText:
    """Return what an RTF document says."""
    start = content.find(b"{\\rtf")
    if start < 0:
        raise UnreadableFileError("the file is no RTF document")
    reader = _Reader(is_html=_HTML_MARK.search(content, start, start + _HEAD_BYTES) is not None)
    return reader.run(content, start)


class _Reader:
    def __init__(self, *, is_html: bool) -> None:
        self._is_html = is_html
        self._state = _State()
        self._stack: list[_State] = []
        self._sinks: dict[str, list[str]] = {}
        self._hidden: list[str] = []
        self._pending = bytearray()
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._defined_font = 0
        self._default_font: int | None = None
        self._authors: list[str] = []
        self._comment_author: str | None = None
        self._inserted: list[tuple[_Mark, list[str]]] = []
        self._deleted: list[tuple[_Mark, list[str]]] = []
        self._skip = 0
        self._starred = False
        self._opens = False
        self._found = RtfText()

    def run(self, content: bytes, start: int) -> RtfText:
        at, size, match = start, len(content), _TOKEN.match
        self._found.breaks_off = True
        while at < size and (token := match(content, at)) is not None:
            at = token.end()
            word, number, hexed, escaped, brace, plain = token.groups()
            if plain is not None:
                self._plain(plain)
            elif hexed is not None:
                self._plain(bytes.fromhex(hexed.decode("ascii")))
            elif word == b"bin":
                at += max(0, int(number or 0))
            elif word is not None:
                self._word(word.decode("ascii"), None if number is None else int(number))
            elif brace == b"{":
                self._open()
            elif brace is not None:
                self._close()
                if not self._stack:
                    self._found.breaks_off = False
                    break
            elif escaped is not None:
                self._escape(escaped)
        self._flush()
        return self._result()

    def _result(self) -> RtfText:
        found = self._found
        found.parts = {name: _whole(self._sinks[name]) for name in PARTS if name in self._sinks}
        for name in (HEADER, FOOTER, NOTES):
            # A mark and a blank stand before a note; left, right and first pages mostly have the same header.
            lines = [line.strip() for line in found.parts.get(name, "").split("\n")]
            if name in found.parts:
                found.parts[name] = "\n".join(lines if name == NOTES else dict.fromkeys(lines))
        if self._is_html:
            found.html = found.parts.pop(BODY, "")
        found.title = _whole(self._sinks.get(_TITLE, [])).strip() or None
        found.hidden = _whole(self._hidden).strip()
        found.insertions = self._changes(self._inserted)
        found.deletions = self._changes(self._deleted)
        return found

    def _changes(self, made: list[tuple[_Mark, list[str]]]) -> list[dict[str, str | None]]:
        changes: list[dict[str, str | None]] = []
        for (number, day), pieces in made:
            author = self._authors[number] if number is not None and 0 <= number < len(self._authors) else None
            if text := _whole(pieces).strip():
                changes.append({"text": text, "author": author, "date": day})
        return changes

    def _open(self) -> None:
        self._flush()
        self._skip, self._starred, self._opens = 0, False, True
        if len(self._stack) >= _MAX_GROUPS:
            raise LimitExceededError(f"groups of the RTF document lie in one another more than {_MAX_GROUPS} deep")
        self._stack.append(self._state)
        if len(self._stack) == 1:
            self._state = self._state._replace(target=BODY)

    def _close(self) -> None:
        self._flush()
        self._skip, self._starred, self._opens = 0, False, False
        closed, self._state = self._state, self._stack.pop()
        if closed.target == _AUTHORS == self._state.target:
            self._authors.append(self._taken(_AUTHORS).rstrip(";"))
        elif closed.target == self._state.target:
            return
        elif closed.target in {HEADER, FOOTER, NOTES}:
            self._sinks.setdefault(closed.target, []).append("\n")
        elif closed.target == _AUTHOR:
            self._comment_author = self._taken(_AUTHOR) or None
        elif closed.target == _COMMENT:
            if text := self._taken(_COMMENT):
                self._found.comments.append({"text": text, "author": self._comment_author, "date": None})
            self._comment_author = None

    def _taken(self, target: str) -> str:
        return _whole(self._sinks.pop(target, [])).strip()

    def _escape(self, escaped: bytes) -> None:
        if escaped == b"*":
            self._starred = True
            return
        self._opens = False
        if self._skip:
            self._skip -= 1
        elif escaped in _ESCAPED:
            self._put(_ESCAPED[escaped])

    def _word(self, word: str, number: int | None) -> None:
        opens, starred = self._opens, self._starred
        self._opens = self._starred = False
        if self._skip:
            self._skip -= 1
            return
        if opens:
            self._begin(word, starred=starred)
        if word == "u":
            if number is not None:
                # The two halves of a character beyond the first 65,536 are joined at the end.
                self._put(chr(number & 0xFFFF))
            self._skip = self._state.uc
        elif word in _SYMBOLS:
            if word in _ROWS:
                self._end_row()
            self._put(_SYMBOLS[word])
        elif word in _CHANGES:
            self._flush()
            self._state = _CHANGES[word](self, self._state, number)

    def _begin(self, word: str, *, starred: bool) -> None:
        """Decide by its first word where the text of a group goes."""
        state = self._state
        if state.target is not None:
            self._found.pictures += word == "pict"
            self._found.objects += word == "object"
        if word in _STAYING:
            return
        if word in _RETURNING:
            self._state = state._replace(target=state.part)
        elif word in _OWN:
            target = _OWN[word]
            if target in {HEADER, FOOTER, NOTES}:
                self._state = state._replace(target=target, part=target)
            elif target == _TAG:
                self._state = state._replace(target=BODY if self._is_html else None)
            else:
                self._state = state._replace(target=target)
        elif word == _COPY:
            self._state = state._replace(target=None, part=None)
        elif starred or word in _DROPPED:
            self._state = state._replace(target=None)

    def _plain(self, piece: bytes) -> None:
        self._opens = False
        if self._skip:
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            piece = piece[skipped:]
        if self._state.target is not None:
            self._pending += piece

    def _flush(self) -> None:
        """Decode the bytes collected so far: two of them can be one character, so they wait for one another."""
        if not self._pending:
            return
        piece = bytes(self._pending)
        self._pending.clear()
        font = self._state.font
        codec = self._codec if font is None else self._fonts.get(font, self._codec)
        if codec == _SYMBOL_CODEC:
            self._store("".join(chr(0xF000 + b) if b >= _FIRST_HIGH_BYTE else chr(b) for b in piece))
            return
        try:
            self._store(piece.decode(codec))
        except UnicodeDecodeError:
            self._store(piece.decode("cp1252", "replace"))

    def _put(self, text: str) -> None:
        self._flush()
        self._store(text)

    def _store(self, text: str) -> None:
        state = self._state
        if state.target in {None, _FONTS}:
            return
        if self._is_html:
            if state.only_rtf:
                return
        elif state.target in PARTS:
            if state.deleted:
                _note(self._deleted, state.deletion, text)
                return
            if state.hidden:
                self._hidden.append(text)
                return
            if state.inserted:
                _note(self._inserted, state.insertion, text)
        self._sinks.setdefault(state.target or BODY, []).append(text)

    def _end_row(self) -> None:
        self._flush()
        sink = self._sinks.get(self._state.target or "")
        if sink and sink[-1] == _SYMBOLS["cell"]:
            sink.pop()

    def set_code_page(self, state: _State, number: int | None) -> _State:
        self._codec = codec_of(number) or self._codec
        return state

    def set_default_font(self, state: _State, number: int | None) -> _State:
        self._default_font = number
        return state._replace(font=number)

    def set_font(self, state: _State, number: int | None) -> _State:
        if state.target == _FONTS:
            self._defined_font = number or 0
            return state
        return state._replace(font=number)

    def set_charset(self, state: _State, number: int | None) -> _State:
        if number == _SYMBOL_CHARSET:
            self._fonts[self._defined_font] = _SYMBOL_CODEC
        elif number == _ANSI_CHARSET and self._codec.startswith("cp125"):
            self._fonts[self._defined_font] = "cp1252"
        elif (codec := codec_of(_CHARSETS.get(number or 0))) is not None:
            self._fonts[self._defined_font] = codec
        return state

    def set_font_code_page(self, state: _State, number: int | None) -> _State:
        if state.target == _FONTS and (codec := codec_of(number)) is not None:
            self._fonts[self._defined_font] = codec
        return state

    def set_plain(self, state: _State, _: int | None) -> _State:
        return state._replace(font=self._default_font, hidden=False, inserted=False, deleted=False)


_CHANGES: dict[str, Callable[[_Reader, _State, int | None], _State]] = {
    **{
        word: lambda reader, state, _, page=page: reader.set_code_page(state, page)  # type: ignore[misc] # a default is bound
        for word, page in _DEFAULT_PAGES.items()
    },
    "ansicpg": _Reader.set_code_page,
    "deff": _Reader.set_default_font,
    "f": _Reader.set_font,
    "fcharset": _Reader.set_charset,
    "cpg": _Reader.set_font_code_page,
    "plain": _Reader.set_plain,
    "uc": lambda _, state, number: state._replace(uc=max(0, 1 if number is None else number)),
    "v": lambda _, state, number: state._replace(hidden=number != 0),
    "deleted": lambda _, state, number: state._replace(deleted=number != 0),
    "revised": lambda _, state, number: state._replace(inserted=number != 0),
    "revauth": lambda _, state, number: state._replace(insertion=(number, state.insertion[1])),
    "revdttm": lambda _, state, number: state._replace(insertion=(state.insertion[0], _moment(number))),
    "revauthdel": lambda _, state, number: state._replace(deletion=(number, state.deletion[1])),
    "revdttmdel": lambda _, state, number: state._replace(deletion=(state.deletion[0], _moment(number))),
    "htmlrtf": lambda _, state, number: state._replace(only_rtf=number != 0),
}


def _note(changes: list[tuple[_Mark, list[str]]], mark: _Mark, text: str) -> None:
    """Add a text to the change that it continues, else as a change of its own."""
    if changes and changes[-1][0] == mark:
        changes[-1][1].append(text)
    else:
        changes.append((mark, [text]))


def _moment(packed: int | None) -> str | None:
    """Return the date of a change: minute, hour, day, month and year since 1900 in 6, 5, 5, 4 and 9 bits."""
    if packed is None:
        return None
    minute, hour, day = packed & 0x3F, packed >> 6 & 0x1F, packed >> 11 & 0x1F
    month, year = packed >> 16 & 0xF, 1900 + (packed >> 20 & 0x1FF)
    try:
        return datetime(year, month, day, hour, minute).isoformat()  # noqa: DTZ001 - RTF keeps no zone
    except ValueError:
        return None


def _whole(pieces: list[str]) -> str:
    joined = "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.translate(_BULLETS)
