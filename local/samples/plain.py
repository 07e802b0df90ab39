"""Prose as the simple text formats: Markdown, plain text and HTML."""

from html import escape

from local.samples.prose import Block, Heading, PageBreak, Paragraph, Prose, Table, accepted


def markdown(prose: Prose) -> bytes:
    """Return the text as Markdown in UTF-8."""
    return ("\n\n".join(filter(None, map(_markdown, prose.blocks))) + "\n").encode()


def text(prose: Prose) -> bytes:
    """Return the text without any marks, with the encoding and line ends of its `encoding` fact (UTF-8)."""
    encoding = prose.facts.get("encoding", "utf-8")
    newline = "\r\n" if encoding == "cp1252" else "\n"
    plain = "\n\n".join(filter(None, map(_text, prose.blocks))) + "\n"
    return plain.replace("\n", newline).encode(encoding)


def html(prose: Prose) -> bytes:
    """Return the text as an HTML 5 page in UTF-8, with navigation and script that are no content."""
    body = "\n".join(filter(None, map(_html, prose.blocks)))
    language = prose.facts.get("language", "de")
    page = (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(prose.title)}</title>\n<style>body {{ font-family: sans-serif }}</style>\n"
        "<script>window.printed = false;</script>\n</head>\n"
        f"<body>\n<nav>Akte &gt; Vermerke</nav>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return page.encode()


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, words):
            return f"{'#' * level} {words}"
        case Paragraph(runs, bullet):
            return f"{'- ' if bullet else ''}{accepted(runs)}"
        case Table(rows):
            lines = [f"| {' | '.join(row)} |" for row in rows]
            return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])
        case PageBreak():
            return ""


def _text(block: Block) -> str:
    match block:
        case Heading(_, words):
            return words
        case Paragraph(runs, bullet):
            return f"{'- ' if bullet else ''}{accepted(runs)}"
        case Table(rows):
            return "\n".join("\t".join(row) for row in rows)
        case PageBreak():
            return ""


def _html(block: Block) -> str:
    match block:
        case Heading(level, words):
            return f"<h{level}>{escape(words)}</h{level}>"
        case Paragraph(runs, bullet):
            inner = escape(accepted(runs))
            return f"<ul><li>{inner}</li></ul>" if bullet else f"<p>{inner}</p>"
        case Table(rows):
            return "<table>" + "".join(map(_html_row, rows)) + "</table>"
        case PageBreak():
            return ""


def _html_row(row: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
