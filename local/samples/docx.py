"""Prose as a DOCX file, the same bytes on every machine.

Members are stored, not deflated: zlib's output differs between builds of Python.
"""

import io
import zipfile
from collections.abc import Iterator
from itertools import count
from xml.sax.saxutils import escape, quoteattr

from local.samples.prose import Block, Heading, PageBreak, Paragraph, Prose, Run, RunKind, Table

_STAMP = (2024, 1, 2, 3, 4, 0)
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PARTS = ("document.main", "styles", "footnotes", "header", "footer")


def docx(prose: Prose) -> bytes:
    """Return a DOCX package: headings, lists, tables, footnotes, tracked changes, header and footer."""
    body = _Body(prose)
    document = f"{_HEAD}<w:document {_W}><w:body>{body.xml()}{_section(prose)}</w:body></w:document>"
    members = {
        "[Content_Types].xml": _content_types(),
        "_rels/.rels": _package_relations(),
        "docProps/core.xml": _core(prose),
        "word/document.xml": document,
        "word/_rels/document.xml.rels": _document_relations(),
        "word/styles.xml": _styles(),
        "word/footnotes.xml": body.footnotes(),
        "word/header1.xml": _margin("hdr", prose.facts.get("header", "")),
        "word/footer1.xml": _margin("ftr", prose.facts.get("footer", "")),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date_time=_STAMP)
            info.create_system = 0
            archive.writestr(info, content.encode())
    return buffer.getvalue()


class _Body:
    """The body's XML; it numbers footnotes and revisions as it goes."""

    def __init__(self, prose: Prose) -> None:
        self._prose = prose
        self._notes: list[str] = []
        self._revisions = count(1)

    def xml(self) -> str:
        return "".join(self._block(block) for block in self._prose.blocks)

    def footnotes(self) -> str:
        notes = "".join(
            f'<w:footnote w:id="{number}"><w:p><w:pPr><w:pStyle w:val="FootnoteText"/></w:pPr>'
            f"<w:r><w:footnoteRef/></w:r>{_text_run(' ' + note)}</w:p></w:footnote>"
            for number, note in enumerate(self._notes, start=1)
        )
        separators = "".join(
            f'<w:footnote w:type="{kind}" w:id="{number}"><w:p><w:r><w:{kind}/></w:r></w:p></w:footnote>'
            for number, kind in ((-1, "separator"), (0, "continuationSeparator"))
        )
        return f"{_HEAD}<w:footnotes {_W}>{separators}{notes}</w:footnotes>"

    def _block(self, block: Block) -> str:
        match block:
            case Heading(level, text):
                return _styled(f"Heading{level}", _text_run(text))
            case Paragraph(runs, bullet):
                return _styled("ListBullet" if bullet else "Normal", "".join(map(self._run, runs)))
            case Table(rows):
                return _table(rows)
            case PageBreak():
                return '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'

    def _run(self, run: Run) -> str:
        match run.kind:
            case RunKind.TEXT:
                return _text_run(run.text)
            case RunKind.NOTE:
                self._notes.append(run.text)
                return f'<w:r><w:footnoteReference w:id="{len(self._notes)}"/></w:r>'
            case RunKind.INSERTED:
                return f"<w:ins {self._revision()}>{_text_run(run.text)}</w:ins>"
            case RunKind.DELETED:
                return f"<w:del {self._revision()}>{_text_run(run.text, tag='delText')}</w:del>"

    def _revision(self) -> str:
        author, date = self._prose.facts["markup_author"], self._prose.facts["markup_date"]
        return f'w:id="{next(self._revisions)}" w:author={quoteattr(author)} w:date={quoteattr(date)}'


def _text_run(text: str, *, tag: str = "t") -> str:
    return f'<w:r><w:{tag} xml:space="preserve">{escape(text)}</w:{tag}></w:r>'


def _styled(style: str, inner: str) -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{inner}</w:p>'


def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    grid = "".join('<w:gridCol w:w="2400"/>' for _ in rows[0])
    body = "".join(f"<w:tr>{''.join(_cells(row))}</w:tr>" for row in rows)
    style = '<w:tblPr><w:tblStyle w:val="TableGrid"/></w:tblPr>'
    return f"<w:tbl>{style}<w:tblGrid>{grid}</w:tblGrid>{body}</w:tbl>"


def _cells(row: tuple[str, ...]) -> Iterator[str]:
    for cell in row:
        yield f'<w:tc><w:tcPr><w:tcW w:w="2400" w:type="dxa"/></w:tcPr>{_styled("Normal", _text_run(cell))}</w:tc>'


def _section(prose: Prose) -> str:
    references = "".join(
        f'<w:{kind}Reference w:type="default" r:id="{relation}"/>'
        for kind, relation in (("header", "rId3"), ("footer", "rId4"))
        if prose.facts.get(kind)
    )
    return f'<w:sectPr>{references}<w:pgSz w:w="11906" w:h="16838"/></w:sectPr>'


def _margin(tag: str, text: str) -> str:
    return f"{_HEAD}<w:{tag} {_W}>{_styled('Normal', _text_run(text))}</w:{tag}>"


def _styles() -> str:
    names = {
        "Normal": "Normal",
        "Heading1": "heading 1",
        "Heading2": "heading 2",
        "Heading3": "heading 3",
        "ListBullet": "List Bullet",
        "FootnoteText": "footnote text",
    }
    paragraphs = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in names.items()
    )
    table = '<w:style w:type="table" w:styleId="TableGrid"><w:name w:val="Table Grid"/></w:style>'
    return f"{_HEAD}<w:styles {_W}>{paragraphs}{table}</w:styles>"


def _core(prose: Prose) -> str:
    created = f"{prose.facts['created']}T08:00:00Z"
    dates = "".join(
        f'<dcterms:{name} xsi:type="dcterms:W3CDTF">{created}</dcterms:{name}>' for name in ("created", "modified")
    )
    return (
        f'{_HEAD}<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(prose.title)}</dc:title>"
        f"<dc:creator>{escape(prose.facts.get('author', ''))}</dc:creator>"
        f"{dates}</cp:coreProperties>"
    )


def _content_types() -> str:
    files = ("document", "styles", "footnotes", "header1", "footer1")
    overrides = "".join(
        f'<Override PartName="/word/{file}.xml" ContentType="{_WORD_TYPE}.{part}+xml"/>'
        for file, part in zip(files, _PARTS, strict=True)
    )
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/docProps/core.xml" '
        'ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        f"{overrides}</Types>"
    )


def _package_relations() -> str:
    return _relations(
        (f"{_OFFICE}/officeDocument", "word/document.xml"),
        (f"{_PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml"),
    )


def _document_relations() -> str:
    return _relations(
        (f"{_OFFICE}/styles", "styles.xml"),
        (f"{_OFFICE}/footnotes", "footnotes.xml"),
        (f"{_OFFICE}/header", "header1.xml"),
        (f"{_OFFICE}/footer", "footer1.xml"),
    )


def _relations(*targets: tuple[str, str]) -> str:
    entries = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{entries}</Relationships>'
