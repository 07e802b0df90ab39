"""XJustiz, the messages of German courts: file numbers, court, parties and the files that come with them.

Elements are found by their names, which hardly changed from version 2 to 3. Of a code the code is kept: its list
differs from version to version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from shared.ingest.convert.docx_inline import local
from shared.ingest.convert.xml_reading import Finder, Reading
from shared.text.normalise import single_line

_NAMESPACE = "http://www.xjustiz.de"
_NUMBERS = {
    "aktenzeichen.absender": "Aktenzeichen Absender",
    "aktenzeichen.empfaenger": "Aktenzeichen Empfänger",
    "aktenzeichen": "Aktenzeichen",
    "aktenzeichen.freitext": "Aktenzeichen",
    "verfahrensnummer": "Verfahrensnummer",
}
_SUBJECTS = {
    "kurzrubrum": "Kurzrubrum",
    "gegenstand": "Gegenstand",
    "sachgebietszusatz": "Sachgebiet",
    "betreff": "Betreff",
    "anzeigename": "Dokument",
}
_NAME_PARTS = ("titel", "vorname", "namensvorsatz", "nachname", "namenszusatz")
_MESSAGE = re.compile(r"^nachricht\.(?P<kind>.+?)(?:\.\d+)?$")
_DATE_CHARS = 10


def read(root: etree._Element) -> Reading | None:
    """Return the message; None when it is none."""
    message = _MESSAGE.match(local(root))
    if message is None or etree.QName(root).namespace != _NAMESPACE:
        return None
    return _Message(root).reading(message["kind"])


class _Message:
    def __init__(self, root: etree._Element) -> None:
        self._root = root
        self._used: set[etree._Element] = set()
        self._find = Finder()

    def reading(self, kind: str) -> Reading:
        numbers, identifiers = self._numbers()
        subjects = list(self._leaves(_SUBJECTS))
        created = next(self._values("erstellungszeitpunkt"), None)
        courts = list(dict.fromkeys(self._codes("gericht")))
        parties = list(self._parties())
        files = list(dict.fromkeys(self._values("dateiname")))
        head = [
            f"XJustiz-Nachricht: {kind}",
            *numbers,
            *([f"Erstellt: {created}"] if created else []),
            *(f"Gericht: {code}" for code in courts),
            *(f"{label}: {text}" for label, text in subjects),
        ]
        people = [f"Beteiligte: {party['name']}" + (f" ({party['as']})" if party["as"] else "") for party in parties]
        about = next((text for label, text in subjects if label == "Kurzrubrum"), None) or next(
            (one["canonical"] for one in identifiers), None
        )
        return Reading(
            title=f"XJustiz-Nachricht {about}" if about else "XJustiz-Nachricht",
            parts=(("message", head), ("parties", people), ("files", [f"Datei: {name}" for name in files])),
            meta={
                "xjustiz": kind,
                "doc_date": created[:_DATE_CHARS] if created else None,
                "identifiers": identifiers,
                "courts": courts,
                "parties": parties,
                "files": files,
            },
            used=self._used | self._find.used,
        )

    def _numbers(self) -> tuple[list[str], list[dict[str, str]]]:
        """Return the file numbers as lines, as they are written, and as identifiers without a trailing sign."""
        lines: dict[str, None] = {}
        found: dict[tuple[str, str], None] = {}
        for label, raw in self._leaves(_NUMBERS):
            lines[f"{label}: {raw}"] = None
            canonical = single_line(raw).rstrip("# ")
            if any(c.isdigit() for c in canonical):
                found[raw, canonical] = None
        return list(lines), [{"kind": "file_number", "raw": raw, "canonical": plain} for raw, plain in found]

    def _parties(self) -> Iterator[dict[str, str | None]]:
        for taking_part in self._root.iter("{*}beteiligung"):
            roles = [
                *self._find.texts(taking_part, "rolle/naehereBezeichnung"),
                *self._find.texts(taking_part, "rolle/rollenbezeichnung/code"),
            ]
            for person in taking_part.iter("{*}beteiligter"):
                if name := self._name(person):
                    yield {"name": name, "as": ", ".join(roles) or None}

    def _name(self, person: etree._Element) -> str | None:
        """Return the name of a person, a firm or an authority: the first that is given."""
        for element in person.iter("{*}vollerName", "{*}bezeichnung.aktuell", "{*}bezeichnung"):
            if local(element) == "vollerName":
                words = [text for part in _NAME_PARTS for text in self._find.texts(element, part)]
                if words:
                    return " ".join(words)
            elif text := " ".join((element.text or "").split()):
                self._used.add(element)
                return text
        return None

    def _codes(self, name: str) -> Iterator[str]:
        """Yield the codes of elements that are called so, or end so, as in "empfaenger_Gericht"."""
        for element in self._root.iter():
            if local(element).lower().endswith(name):
                yield from self._find.texts(element, "code")

    def _values(self, name: str) -> Iterator[str]:
        for element in self._root.iter(f"{{*}}{name}"):
            if text := " ".join((element.text or "").split()):
                self._used.add(element)
                yield text

    def _leaves(self, labels: dict[str, str]) -> Iterator[tuple[str, str]]:
        for element in self._root.iter():
            label = labels.get(local(element))
            if label and len(element) == 0 and (text := " ".join((element.text or "").split())):
                self._used.add(element)
                yield label, text
