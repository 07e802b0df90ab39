"""HTML: the text a reader sees, in reading order; no scripts, no styles, no addresses."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.encoding import Decoded, decode
from shared.ingest.convert.formats import Conversion

_SKIPPED = frozenset(
    [
        "script",
        "style",
        "template",
        "noscript",
        "iframe",
        "object",
        "embed",
        "svg",
        "math",
        "canvas",
        "head",
        "select",
        "datalist",
        "audio",
        "video",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
        "caption",
    ]
)
_CELLS = frozenset({"td", "th"})
_SPACE = re.compile(r"[ \t\r\n\f]+")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{2,40})", re.IGNORECASE)
_HEADINGS = ("h1", "h2")
# The parser's time grows with the square of the depth; no document for people is nested like this.
_MAX_DEPTH = 1000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*?(/?)>")
_ANY_TAG = re.compile(r"<[^>]*>")
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
        "p",
        "li",
        "td",
        "th",
        "tr",
    ]
)


def convert(content: bytes) -> Conversion:
    """Return the text of an HTML file, its title and the language that it declares."""
    decoded = _decoded(content)
    meta = {"encoding": decoded.encoding, "encoding_confidence": decoded.confidence}
    builder = TextBuilder()
    if _depth(decoded.text) > _MAX_DEPTH:
        builder.add(_SPACE.sub(" ", _ANY_TAG.sub(" ", decoded.text)).strip())
        return Conversion(builder.build(meta={**meta, "too_deep": True}))
    tree = LexborHTMLParser(decoded.text)
    for block in blocks(tree.body or tree.root):
        builder.add(block)
    title = tree.css_first("title")
    heading = next((found for tag in _HEADINGS if (found := tree.css_first(tag)) is not None), None)
    if heading is not None:
        meta["heading"] = _SPACE.sub(" ", heading.text()).strip()
    language = (tree.root.attributes.get("lang") if tree.root is not None else None) or ""
    if language:
        meta["language"] = language
    return Conversion(builder.build(title=_SPACE.sub(" ", title.text()) if title is not None else None, meta=meta))


def text_of(markup: str) -> str:
    """Return the text of a piece of HTML that stands in another format."""
    if _depth(markup) > _MAX_DEPTH:
        return _SPACE.sub(" ", _ANY_TAG.sub(" ", markup)).strip()
    tree = LexborHTMLParser(markup)
    return "\n".join(block for block in blocks(tree.body or tree.root) if block)


def blocks(root: LexborNode | None) -> Iterator[str]:
    """Yield the text of each block; the cells of a row are one block, set apart by " | "."""
    pieces: list[str] = []
    for event, node in _walk(root):
        tag = node.tag or ""
        if event == "text":
            text = node.text_content or ""
            pieces.append(text if _in_pre(node) else _SPACE.sub(" ", text))
        elif tag == "br":
            if event == "start":
                pieces.append("\n")
        elif tag in _CELLS:
            if event == "start" and "".join(pieces).strip():
                pieces.append(" | ")
        elif tag in _BLOCKS and not (_in_cell(node) and tag != "table"):
            yield _flushed(pieces)
            if tag == "li" and event == "start":
                pieces.append("- ")
        elif tag in _BLOCKS and pieces:
            pieces.append(" ")
    yield _flushed(pieces)


def _walk(root: LexborNode | None) -> Iterator[tuple[str, LexborNode]]:
    """Walk without recursion: the depth is whatever a stranger wrote."""
    node = root
    while node is not None and root is not None:
        tag = node.tag or ""
        if tag == "-text":
            yield "text", node
        elif not tag.startswith("-") and tag not in _SKIPPED:
            yield "start", node
            if node.child is not None:
                node = node.child
                continue
            yield "end", node
        while node is not None and node.next is None:
            parent = node.parent
            if parent is None or node.mem_id == root.mem_id:
                return
            node = parent
            yield "end", node
            if node.mem_id == root.mem_id:
                return
        node = node.next if node is not None else None


def _flushed(pieces: list[str]) -> str:
    lines = "".join(pieces).split("\n")
    pieces.clear()
    text = "\n".join(re.sub(r" {2,}", " ", line).strip(" ") for line in lines).strip("\n")
    return "" if text == "-" else text


def _in_pre(node: LexborNode) -> bool:
    return node.parent is not None and node.parent.tag in {"pre", "textarea"}


def _in_cell(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag != "table":
        if parent.tag in _CELLS:
            return True
        parent = parent.parent
    return False


def _decoded(content: bytes) -> Decoded:
    decoded = decode(content)
    declared = _META_CHARSET.search(content[:4096])
    if decoded.confidence != "assumed" or declared is None:
        return decoded
    try:
        name = codecs.lookup(declared.group(1).decode("ascii")).name
        # What calls itself Latin-1 is cp1252, as every browser reads it.
        if name not in {"iso8859-1", "ascii", "utf-8"}:
            return Decoded(content.decode(name), name, "declared")
    except (LookupError, UnicodeDecodeError, ValueError):
        pass
    return decoded


def _depth(markup: str) -> int:
    depth = deepest = 0
    for match in _TAG.finditer(markup):
        closing, tag, empty = match.groups()
        if tag.lower() in _VOID or empty:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        deepest = max(deepest, depth)
    return deepest
