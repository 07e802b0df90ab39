"""What was decided: between two drafts and by the text's own words; shown to those who see both drafts."""

from __future__ import annotations

import io
import random
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from shared.access.predicate import EVERYTHING, Viewer
from shared.catalog.decisions import visible_decisions
from shared.db.tables.access import source_object_grants
from shared.db.tables.catalog import document_versions
from shared.db.tables.ingest import ingest_state
from shared.db.tables.sources import source_objects, version_sources
from shared.db.tables.structure import decisions
from shared.ingest.decisions.align import differences, paragraphs
from shared.ingest.decisions.changes import MAX_RECORDS, changes
from shared.ingest.decisions.resolved import resolved
from shared.text.converted import ConvertedText
from tests.ingest.conftest import World
from tests.ingest.test_members import mail
from tests.ingest.test_relations import ADMIN, STAFF, allow_staff, in_every_order, versions, viewer

FIRST = """Kaufvertrag

§ 1 Kaufgegenstand
Die Verkäuferin Nord GmbH verkauft die Anteile an der Werft.

§ 2 Kaufpreis
Der Kaufpreis beträgt 50.000 EUR und ist am 1. März 2024 fällig.

§ 3 Gewährleistung
Die Verkäuferin haftet nach den gesetzlichen Vorschriften für 12 Monate.

§ 4 Schluss
Änderungen bedürfen der Schriftform.
"""
SECOND = (
    FIRST.replace("50.000 EUR", "75.000 EUR").replace("1. März 2024", "1. April 2024").replace("Nord GmbH", "Süd GmbH")
)
THIRD = SECOND.replace(
    "\n§ 3 Gewährleistung\nDie Verkäuferin haftet nach den gesetzlichen Vorschriften für 12 Monate.\n", ""
) + ("\n§ 5 Gerichtsstand\nGerichtsstand ist Hamburg.\n")
DRAFTS = {"a/SPA_Entwurf_v1.txt": FIRST, "a/SPA_Entwurf_v2.txt": SECOND, "a/SPA_Entwurf_v3.txt": THIRD}


def seen(world: World, who: Viewer = ADMIN) -> list:
    return world.rows(visible_decisions(who, among=EVERYTHING))


def between(world: World, who: Viewer = ADMIN) -> set[tuple[str, str, str, str | None]]:
    """Return the decisions as (kind, from path, to path, locus)."""
    paths = {version: path for path, version in versions(world).items()}
    return {(row.kind, paths.get(row.from_version_id), paths[row.to_version_id], row.locus) for row in seen(world, who)}


V1, V2, V3 = DRAFTS
ALL = {
    ("changed", V1, V2, "§ 1 Kaufgegenstand"),
    ("changed", V1, V2, "§ 2 Kaufpreis"),
    ("removed", V2, V3, "§ 3 Gewährleistung"),
    ("added", V2, V3, "§ 5 Gerichtsstand"),
}


def test_the_differences_of_neighbours_are_the_same_in_every_order(world: World) -> None:
    expected = set()
    for folder in in_every_order(world, {path.removeprefix("a/"): text for path, text in DRAFTS.items()}):
        expected |= {(kind, *(f"{folder}/{one[2:]}" for one in ends), locus) for kind, *ends, locus in ALL}
    assert between(world) == expected


def test_a_change_says_what_where_and_in_which_words(world: World) -> None:
    world.ingest({V1: FIRST, V2: SECOND})
    [party, price] = seen(world)
    assert price.summary == "„50.000“ → „75.000“; „März“ → „April“"
    assert price.evidence["values"] == [
        {"what": "amount", "from": "50.000 EUR", "to": "75.000 EUR"},
        {"what": "date", "from": "1. März 2024", "to": "1. April 2024"},
    ]
    assert (
        FIRST[price.from_start : price.from_end] == "Der Kaufpreis beträgt 50.000 EUR und ist am 1. März 2024 fällig."
    )
    assert "75.000 EUR" in SECOND[price.to_start : price.to_end]
    assert {"what": "party", "from": "Verkäuferin Nord GmbH", "to": "Verkäuferin Süd GmbH"} in party.evidence["values"]
    assert (price.author, price.author_version_id) == (None, None)


def test_a_second_run_adds_nothing(world: World) -> None:
    world.ingest(DRAFTS)
    before = world.rows(sa.select(decisions).order_by(decisions.c.id))
    with world.engine.begin() as connection:
        connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage == "extract_decisions"))
    world.ingest(DRAFTS)
    assert world.rows(sa.select(decisions).order_by(decisions.c.id)) == before


def test_workers_at_neighbouring_drafts_at_once_write_the_same(world: World) -> None:
    world.ingest(DRAFTS)
    for _ in range(3):
        with world.engine.begin() as connection:
            connection.execute(sa.delete(decisions))
            connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage == "extract_decisions"))
        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(world.ingest, {path: DRAFTS[path]}) for path in DRAFTS]:
                assert done.result(timeout=120).complete
        assert between(world) == ALL


def test_who_may_not_see_one_of_the_drafts_is_told_nothing(world: World) -> None:
    world.ingest(DRAFTS)
    allow_staff(world)
    anna, ben = viewer("user:anna", STAFF), viewer("user:ben", STAFF)
    assert between(world, anna) == ALL
    with world.engine.begin() as connection:
        [place] = connection.execute(sa.select(source_objects.c.id).where(source_objects.c.path == V1)).scalars()
        connection.execute(sa.update(source_objects).where(source_objects.c.id == place).values(acl_state="known"))
        values = {"source_object_id": place, "principal": "user:ben", "effect": "allow"}
        connection.execute(sa.insert(source_object_grants).values(values))
    assert between(world, anna) == {one for one in ALL if one[1] == V2}
    assert between(world, ben) == ALL
    assert between(world, viewer("user:nobody")) == set()


def test_the_mail_that_carried_a_draft_names_the_author_to_those_who_may_see_it(world: World) -> None:
    first, second = mail("Entwurf", ("SPA_Entwurf_v1.txt", FIRST.encode())), mail("Neu", body="Anbei.")
    world.ingest({"a/post.eml": first.as_bytes()})
    second.replace_header("Message-ID", "<2@kanzlei.example>")
    second.add_attachment(SECOND.encode(), maintype="text", subtype="plain", filename="SPA_Entwurf_v1.txt")
    world.ingest({"a/post.eml": second.as_bytes()})
    allow_staff(world)
    rows = [row for row in seen(world, viewer("user:anna", STAFF)) if row.from_version_id]
    assert {(row.author, row.decided_at.isoformat()) for row in rows} == {
        ("anna@kanzlei.example", "2024-02-12T23:30:00+00:00")
    }
    carrier = rows[0].author_version_id
    assert carrier == versions(world)["a/post.eml"]
    # The mail is seen nowhere any more; the drafts lie at another place as well.
    with world.engine.begin() as connection:
        members = connection.execute(
            sa.select(version_sources.c.version_id)
            .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
            .where(source_objects.c.parent_id.is_not(None))
        ).scalars().all()  # fmt: skip
        source = connection.execute(sa.select(source_objects.c.source_id).limit(1)).scalar_one()
        place = connection.execute(
            sa.insert(source_objects)
            .values(source_id=source, external_id="x", path="a/x", name="x")
            .returning(source_objects.c.id)
        ).scalar_one()
        links = [{"version_id": one, "source_object_id": place} for one in members]
        connection.execute(sa.insert(version_sources), links)
        gone = source_objects.c.path == "a/post.eml"
        connection.execute(sa.update(source_objects).where(gone).values(deleted_at=sa.func.now()))
    rows = [row for row in seen(world, viewer("user:anna", STAFF)) if row.from_version_id]
    assert len(rows) == 2
    assert {(row.author, row.author_version_id, row.decided_at) for row in rows} == {(None, None, None)}


def test_a_change_at_the_end_of_a_long_paragraph_is_named_by_its_words() -> None:
    long = f"1. {words(1, 900)} Der Preis beträgt"
    [found], _ = changes(ConvertedText(f"{long} 50 EUR."), ConvertedText(f"{long} 75 EUR."))
    assert found.summary == "„50“ → „75“"
    assert found.evidence["values"] == [{"what": "amount", "from": "50 EUR", "to": "75 EUR"}]


def test_a_clause_that_only_moved_was_not_decided() -> None:
    blocks = [f"§ {n} Klausel\nDer Wortlaut der Nummer {n} steht hier." for n in range(1, 6)]
    moved = [blocks[4], *blocks[:4]]
    assert differences(paragraphs("\n".join(blocks)), paragraphs("\n".join(moved))) == []


def test_spaces_and_line_ends_are_no_change() -> None:
    assert changes(ConvertedText(FIRST), ConvertedText(FIRST.replace(" ", "\u00a0  ").replace("\n\n", "\n"))) == ([], 0)


def tracked(**lists) -> ConvertedText:
    return ConvertedText(SECOND, meta=lists)


def test_who_tracked_the_change_is_its_author() -> None:
    inserted = [
        {"author": "Dr. Weber", "date": "2024-02-01T10:00:00Z", "text": "75.000"},
        {"author": "Klein", "date": "2024-02-02T10:00:00Z", "text": "Verkäuferin"},
    ]
    found, _ = changes(ConvertedText(FIRST), tracked(insertions=inserted))
    assert [(one.locus, one.author) for one in found] == [("§ 1 Kaufgegenstand", None), ("§ 2 Kaufpreis", "Dr. Weber")]
    assert found[1].decided_at is not None
    assert found[1].decided_at.isoformat() == "2024-02-01T10:00:00+00:00"
    deleted = [{"author": "Klein", "date": "soon", "text": "50.000"}]
    found, _ = changes(ConvertedText(FIRST), tracked(insertions=inserted, deletions=deleted))
    assert [one.author for one in found] == [None, None], "two people changed the same words"


@pytest.mark.parametrize(
    "text",
    [
        "Die Parteien haben sich darauf geeinigt, dass der Mietzins sinkt.",
        "Am Ende haben die Parteien sich geeinigt. Die Parteien sind sich einig, dass nichts mehr offen ist.",
        "Wir haben entschieden, die Berufung nicht einzulegen.",
        "Protokoll\nBeschluss: Die Kündigung wird ausgesprochen.",
        "Agreed: the closing date moves to May.",
        "It is hereby resolved that the shares be transferred.",
        "The parties have agreed that the price is fixed.",
        "Der Aufsichtsrat hat in der Sitzung die Bestellung beschlossen.",
    ],
)
def test_what_a_text_says_was_settled(text: str) -> None:
    [found] = resolved(ConvertedText(text), author="Anna", decided_at=None)
    assert found.kind == "resolved"
    assert found.to_span is not None
    start, end = found.to_span
    assert found.summary == text[start:end]
    assert found.author == "Anna"


@pytest.mark.parametrize(
    "text",
    [
        "Die Parteien haben sich nicht darauf geeinigt.",
        "Wenn die Parteien sich geeinigt haben, endet der Streit.",
        "Ob wir haben entschieden?",
        "Haben wir nicht gesagt, wir haben entschieden?",
        "> Wir haben entschieden, zu zahlen.",
        "It was not agreed that the price falls.",
        "If the parties have agreed that the price falls, it falls.",
        "Der Beschluss des Landgerichts ist falsch.",
    ],
)
def test_what_is_denied_asked_or_quoted_was_not_settled(text: str) -> None:
    assert list(resolved(ConvertedText(text), author=None, decided_at=None)) == []


def test_a_decision_in_a_mail_has_its_sender_and_one_in_a_paper_its_day(world: World) -> None:
    world.ingest({"a/post.eml": mail("Ergebnis", body="Wir haben entschieden, zu zahlen.").as_bytes()})
    world.ingest({"a/Vermerk.txt": "Vermerk\n\nBerlin, den 3. Mai 2023\n\nBeschluss: Es wird gezahlt."})
    rows = {row.summary: row for row in seen(world)}
    sent = rows["Wir haben entschieden, zu zahlen."]
    assert (sent.kind, sent.author, sent.from_version_id) == ("resolved", "anna@kanzlei.example", None)
    noted = rows["Beschluss: Es wird gezahlt."]
    assert (noted.author, noted.evidence["day"]) == (None, "2023-05-03")


def test_a_decision_that_is_read_no_more_goes(world: World) -> None:
    world.ingest({"a/Vermerk.txt": "Beschluss: Es wird gezahlt."})
    with world.engine.begin() as connection:
        found = connection.execute(sa.select(decisions)).one()
        other = {**found._mapping, "id": versions(world)["a/Vermerk.txt"], "ordinal": 1}
        connection.execute(sa.insert(decisions).values(other))
        connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage == "extract_decisions"))
    world.ingest({"a/Vermerk.txt": "Beschluss: Es wird gezahlt."})
    assert [row.id for row in seen(world)] == [found.id]


def words(seed: int, count: int) -> str:
    source = random.Random(seed)
    return " ".join(source.choice(VOCABULARY) for _ in range(count))


VOCABULARY = [f"wort{n}" for n in range(3000)]


@pytest.mark.parametrize("shape", ["few changes", "nothing alike", "all alike", "one word", "alternating"])
def test_long_drafts_are_compared_in_bounded_time(shape: str) -> None:
    lines = [f"{n}. {words(n, 40)}" for n in range(2000)]
    old, new = {
        "few changes": (lines, [f"{line} neu" if n % 50 == 0 else line for n, line in enumerate(lines)]),
        "nothing alike": (lines, [words(n + 9000, 40) for n in range(2000)]),
        "all alike": (["Seite"] * 2000, ["Seite"] * 1500 + ["Blatt"] * 500),
        "one word": ([f"{n} " + "x " * 300 for n in range(2000)], [f"{n} " + "x " * 299 + "y" for n in range(2000)]),
        "alternating": (
            [f"{n} " + "a b " * 120 for n in range(2000)],
            [f"{n + 1} " + "b a " * 120 for n in range(2000)],
        ),
    }[shape]
    started = time.perf_counter()
    found, left_out = changes(ConvertedText("\n".join(old)), ConvertedText("\n".join(new)))
    took = time.perf_counter() - started
    assert took < 20, f"{shape}: {took:.1f} s"
    assert len(found) <= MAX_RECORDS
    if shape == "few changes":
        assert (len(found), left_out) == (40, 0)
    if shape == "nothing alike":
        assert left_out > 1000


def test_what_is_left_out_is_counted_at_the_last_record(world: World) -> None:
    old, new = ("\n".join(f"{n}. {words(n + shift, 12)}" for n in range(400)) for shift in (0, 9000))
    world.ingest({"a/Plan_v1.txt": old, "a/Plan_v2.txt": new})
    rows = seen(world)
    assert len(rows) == MAX_RECORDS
    assert rows[-1].evidence["left_out"] > 0


def docx(*paragraphs_xml: str) -> bytes:
    """Return a small Word document of these paragraphs, each the inner XML of a `w:p`."""
    w = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    package = "http://schemas.openxmlformats.org/package/2006"
    body = "".join(f"<w:p>{one}</w:p>" for one in paragraphs_xml)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{w}"><w:body>{body}</w:body></w:document>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_tracked_changes_of_a_word_file_name_their_author(world: World) -> None:
    plain = ["Kaufvertrag", "§ 2 Kaufpreis", "Der Kaufpreis für die Anteile an der Werft in Kiel beträgt 50.000 EUR."]
    change = (
        run("Der Kaufpreis für die Anteile an der Werft in Kiel beträgt ")
        + '<w:del w:author="Weber" w:date="2024-02-01T10:00:00Z"><w:r><w:delText>50.000</w:delText></w:r></w:del>'
        + f'<w:ins w:author="Weber" w:date="2024-02-01T10:00:00Z">{run("75.000")}</w:ins>'
        + run(" EUR.")
    )
    world.ingest({"a/SPA_v1.docx": docx(*map(run, plain))})
    world.ingest({"a/SPA_v2.docx": docx(run(plain[0]), run(plain[1]), change)})
    [row] = seen(world)
    assert (row.kind, row.author, row.evidence["author"]) == ("changed", "Weber", "tracked_changes")
    assert row.author_version_id is None
    assert world.scalar(sa.select(sa.func.count()).select_from(document_versions)) == 2
