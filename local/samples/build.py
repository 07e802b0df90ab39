"""The firm's files, written to a folder with the same bytes every time."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath

from local.samples.docx import docx
from local.samples.mail import Attachment, eml
from local.samples.manifest import ENTRIES, Damage, Entry
from local.samples.pdf import pdf
from local.samples.plain import html, markdown, text
from local.samples.prose import parse

_WRITERS = {".docx": docx, ".pdf": pdf, ".md": markdown, ".html": html, ".txt": text}
_DRAWING = b"AC1032" + bytes(range(256)) * 16


def build(target: Path) -> list[Path]:
    """Return the paths written below `target`, as `<source>/<matter folder>/...`, in a fixed order.

    A file that already has the right bytes is left alone, so that its time of change stays true.
    """
    contents = render()
    paths = [target / name for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return paths


def render() -> dict[str, bytes]:
    """Return the bytes of each file by its path below the target."""
    contents: dict[str, bytes] = {}
    for entry in ENTRIES:
        contents[entry.path] = _content(entry, contents)
    return contents


def _content(entry: Entry, earlier: Mapping[str, bytes]) -> bytes:
    if entry.damage is Damage.UNSUPPORTED:
        return _DRAWING
    prose = parse(_source(entry.text), variant=entry.variant, values=entry.values)
    suffix = PurePosixPath(entry.path).suffix
    content = eml(prose, _attachments(entry, earlier)) if suffix == ".eml" else _WRITERS[suffix](prose)
    return content[: len(content) // 2] if entry.damage is Damage.TRUNCATED else content


def _attachments(entry: Entry, earlier: Mapping[str, bytes]) -> list[Attachment]:
    return [Attachment(item.name, earlier[item.path], item.disposition, item.name_style) for item in entry.enclosures]


def _source(name: str) -> str:
    return files("local.samples").joinpath("sources", *f"{name}.md".split("/")).read_text(encoding="utf-8")
