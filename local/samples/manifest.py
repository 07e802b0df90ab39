"""Which files the firm has: where each lies, which source text it is made of, what it carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from local.samples.mail import NameStyle

NORDLICHT = "10001_Nordlicht_Brandt"
WESTERKAMP = "20002_Westerkamp_Brandt"
HAFENKONTOR = "30003_Hafenkontor_Mietstreit"
HELIX = "40004_Helix_Meridian"
INTERN = "00_Kanzlei_intern"


class Damage(StrEnum):
    """What is wrong with a file on purpose."""

    NONE = "none"
    TRUNCATED = "truncated"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file of the firm attached to a mail, under the name that the mail gives it."""

    path: str
    name: str
    disposition: str = "attachment"
    name_style: NameStyle = NameStyle.RFC2231


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path below the target, and the text, variant and values that it is made of."""

    path: str
    text: str
    variant: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    enclosures: Sequence[Enclosure] = ()
    damage: Damage = Damage.NONE


def _spa(path: str, variant: str, **values: str) -> Entry:
    return Entry(f"ablage/{NORDLICHT}/Verträge/{path}", "nordlicht/spa", variant, values)


def _akv(path: str, variant: str, values: Mapping[str, str], *, damage: Damage = Damage.NONE) -> Entry:
    full = f"ablage/{WESTERKAMP}/Verträge/{path}"
    return Entry(full, "westerkamp/akv", variant, values, damage=damage)


_SIGNED = {
    "bar": "44.750.000",
    "escrow": "2.500.000",
    "monate": "12",
    "longstop": "30.09.2024",
    "cap": "15",
}
_OFFER_2 = {"stand": "Entwurf 2 vom 14.02.2024", "datum": "2024-02-14", "bar": "45.750.000", "rest": "8.000.000"}
_SECOND_DRAFT = f"ablage/{NORDLICHT}/Verträge/SPA_Entwurf_v2.docx"
_SIGNED_LICENCE = f"ablage/{HELIX}/Licence/Patent_Licence_Agreement_executed.pdf"
_SUMMONS = f"post/{HAFENKONTOR}/2022-03-04_Terminsladung_Übersendung.eml"

_NORDLICHT = (
    _spa(
        "SPA_Entwurf_v1.docx",
        "v1",
        stand="Entwurf 1 vom 22.01.2024",
        datum="2024-01-22",
        bar="44.500.000",
        escrow="4.000.000",
        monate="18",
        longstop="31.07.2024",
        cap="30",
    ),
    _spa(
        "SPA_Entwurf_v2.docx",
        "v2",
        stand="Entwurf 2 vom 12.02.2024",
        datum="2024-02-12",
        bar="42.000.000",
        escrow="4.000.000",
        monate="18",
        longstop="31.08.2024",
        cap="25",
    ),
    _spa("SPA_Entwurf_v3_Markup.docx", "v3", stand="Entwurf 3 vom 11.03.2024", datum="2024-03-11", **_SIGNED),
    _spa("SPA_final.docx", "final", stand="Endfassung vom 25.03.2024", datum="2024-03-25", **_SIGNED),
    _spa(
        "SPA_unterzeichnet_2024-03-28.pdf",
        "signed",
        stand="beurkundet am 28.03.2024",
        datum="2024-03-28",
        **_SIGNED,
    ),
    _spa(
        "Vollzug/Kopie_SPA_unterzeichnet.pdf",
        "signed",
        stand="beurkundet am 28.03.2024",
        datum="2024-03-28",
        **_SIGNED,
    ),
    Entry(f"ablage/{NORDLICHT}/Vermerke/Due_Diligence_Bericht_Legal.docx", "nordlicht/dd_bericht"),
    Entry(f"ablage/{NORDLICHT}/Vermerke/Vermerk_Kaufpreismechanik.md", "nordlicht/kaufpreismechanik"),
    Entry(f"ablage/{NORDLICHT}/Vermerke/Bieterstrategie_persönlich.docx", "nordlicht/bieterstrategie"),
    Entry(f"ablage/{NORDLICHT}/Korrespondenz/LOI_Nordlicht_2023-11-06.pdf", "nordlicht/loi"),
    Entry(f"ablage/{NORDLICHT}/Handelsregister/HRB_78214_Brandt.pdf", "nordlicht/registerauszug"),
    Entry(f"ablage/{NORDLICHT}/Datenraum/Lageplan_Werk_Stade.dwg", "", damage=Damage.UNSUPPORTED),
    Entry(
        f"post/{NORDLICHT}/2024-02-12_AW_Kaufpreisanpassung.eml",
        "nordlicht/mail_anpassung",
        enclosures=(
            Enclosure(_SECOND_DRAFT, "SPA_Entwurf_v2.docx"),
            Enclosure(f"ablage/{NORDLICHT}/Korrespondenz/LOI_Nordlicht_2023-11-06.pdf", "Absichtserklärung.pdf"),
        ),
    ),
    Entry(f"post/{NORDLICHT}/2024-02-13_AW_AW_Kaufpreisanpassung.eml", "nordlicht/mail_antwort"),
)
_WESTERKAMP = (
    _akv(
        "Anteilskaufvertrag_Entwurf_v1.docx",
        "v1",
        {"stand": "Entwurf 1 vom 10.01.2024", "datum": "2024-01-10", "bar": "40.000.000", "rest": "12.000.000"},
    ),
    _akv("Anteilskaufvertrag_Entwurf_v2.docx", "v2", _OFFER_2),
    _akv("Anteilskaufvertrag_Entwurf_v2_defekt.docx", "defekt", _OFFER_2, damage=Damage.TRUNCATED),
    _akv(
        "Anteilskaufvertrag_final.docx",
        "final",
        {"stand": "Endfassung vom 18.03.2024", "datum": "2024-03-18", "bar": "54.900.000", "rest": "0"},
    ),
    Entry(f"ablage/{WESTERKAMP}/Vermerke/Vermerk_Fusionskontrolle.docx", "westerkamp/fusionskontrolle"),
    Entry(f"ablage/{WESTERKAMP}/Vermerke/Bewertung_Kaufpreis.html", "westerkamp/bewertung"),
    Entry(f"ablage/{WESTERKAMP}/Korrespondenz/Indikatives_Angebot_2023-12-01.pdf", "westerkamp/angebot"),
    Entry(f"ablage/{WESTERKAMP}/Handelsregister/HRB_78214_Brandt.pdf", "nordlicht/registerauszug"),
    Entry(
        f"post/{WESTERKAMP}/2024-02-15_Gegenangebot.eml",
        "westerkamp/mail_gegenangebot",
        enclosures=(
            Enclosure(
                f"ablage/{WESTERKAMP}/Verträge/Anteilskaufvertrag_Entwurf_v2.docx",
                "Entwurf Kaufvertrag für Verwaltungsrat.docx",
                name_style=NameStyle.RFC2047,
            ),
            Enclosure(
                f"ablage/{WESTERKAMP}/Korrespondenz/Indikatives_Angebot_2023-12-01.pdf",
                "Indikatives Angebot.pdf",
                disposition="inline",
            ),
        ),
    ),
)
_HAFENKONTOR = (
    Entry(f"ablage/{HAFENKONTOR}/Schriftsätze/Klageschrift_12_O_345-21.docx", "hafenkontor/klage"),
    Entry(f"ablage/{HAFENKONTOR}/Schriftsätze/Klageerwiderung_12_O_345-21.docx", "hafenkontor/erwiderung"),
    Entry(f"ablage/{HAFENKONTOR}/Schriftsätze/Replik_12_O_345-21.pdf", "hafenkontor/replik"),
    Entry(f"ablage/{HAFENKONTOR}/Schriftsätze/Berufungsbegründung_2_U_88-22.docx", "hafenkontor/berufung"),
    Entry(f"ablage/{HAFENKONTOR}/Gericht/Urteil_LG_12_O_345-21.pdf", "hafenkontor/urteil"),
    Entry(f"ablage/{HAFENKONTOR}/Gericht/Hinweisbeschluss_OLG_2_U_88-22.pdf", "hafenkontor/hinweis"),
    Entry(f"ablage/{HAFENKONTOR}/Vertrag/Gewerbemietvertrag_2016.pdf", "hafenkontor/mietvertrag"),
    Entry(f"ablage/{HAFENKONTOR}/Vermerke/Übersicht_Rechtsprechung.md", "hafenkontor/rechtsprechung"),
    Entry(f"ablage/{HAFENKONTOR}/Vermerke/Telefonnotiz_2023-01-11.txt", "hafenkontor/telefonnotiz"),
    Entry(f"ablage/{HAFENKONTOR}/Vermerke/Zeugenvorbereitung.docx", "hafenkontor/zeugen"),
    Entry(
        _SUMMONS,
        "hafenkontor/mail_ladung",
        enclosures=(
            Enclosure(
                f"ablage/{HAFENKONTOR}/Schriftsätze/Klageschrift_12_O_345-21.docx",
                "Klageschrift Hafenkontor-Brückner.docx",
            ),
            Enclosure(f"ablage/{HAFENKONTOR}/Vertrag/Gewerbemietvertrag_2016.pdf", "Anlage K1.pdf"),
        ),
    ),
    Entry(
        f"post/{HAFENKONTOR}/2022-03-07_WG_Terminsladung.eml",
        "hafenkontor/mail_weiterleitung",
        enclosures=(Enclosure(_SUMMONS, "Terminsladung 12 O 345-21.eml"),),
    ),
)
_HELIX = (
    Entry(
        f"ablage/{HELIX}/Licence/Patent_Licence_Agreement_draft_1.docx",
        "helix/licence",
        "draft",
        {
            "stand": "draft 1 of 12 February 2019",
            "datum": "2019-02-12",
            "scope": "a non-exclusive",
            "royalty": "8",
            "minimum": "400,000",
        },
    ),
    Entry(
        _SIGNED_LICENCE,
        "helix/licence",
        "executed",
        {
            "stand": "executed 9 May 2019",
            "datum": "2019-05-09",
            "scope": "an exclusive",
            "royalty": "6.5",
            "minimum": "650,000",
        },
    ),
    Entry(f"ablage/{HELIX}/Pleadings/Request_for_Arbitration.docx", "helix/request"),
    Entry(f"ablage/{HELIX}/Pleadings/Statement_of_Defence.docx", "helix/defence"),
    Entry(f"ablage/{HELIX}/Tribunal/Procedural_Order_No_1.pdf", "helix/order"),
    Entry(f"ablage/{HELIX}/Notes/Witness_interview_Achterberg.txt", "helix/interview"),
    Entry(f"ablage/{HELIX}/Notes/Timeline.html", "helix/timeline"),
    Entry(
        f"post/{HELIX}/2023-06-05_Re_Settlement_offer.eml",
        "helix/mail_settlement",
        enclosures=(
            Enclosure(_SIGNED_LICENCE, "Patent_Licence_Agreement_executed.pdf"),
            Enclosure(f"ablage/{HELIX}/Pleadings/Request_for_Arbitration.docx", "Request_for_Arbitration.docx"),
        ),
    ),
)
_INTERN = (
    Entry(f"ablage/{INTERN}/Wissen/Checkliste_Unternehmenskauf.md", "intern/checkliste"),
    Entry(f"ablage/{INTERN}/Personal/Vermerk_Gehaltsrunde_2024.docx", "intern/gehaltsrunde"),
)

# A mail stands after the files that it carries.
ENTRIES: tuple[Entry, ...] = _NORDLICHT + _WESTERKAMP + _HAFENKONTOR + _HELIX + _INTERN
