"""What versions are to one another: found whichever came first, shown only to those who may see both ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from uuid import UUID

import pytest
import sqlalchemy as sa

from shared.access.predicate import Viewer
from shared.access.principals import normalise_all
from shared.catalog.relations import Relation, relations_of
from shared.db.tables.access import document_grants, project_grants, source_object_grants
from shared.db.tables.catalog import document_versions, projects
from shared.db.tables.ingest import ingest_state
from shared.db.tables.sources import source_objects, version_sources
from shared.db.tables.structure import relation_intents, relation_keys
from shared.ingest.relations import rows
from shared.ingest.relations.cited import dated_papers, numbered_papers
from shared.ingest.relations.rows import Realms
from shared.ingest.relations.said import Intent
from shared.sources.config import MatterRef, PlaceRule, ProjectRef, SourceConfig
from shared.types import AclMode, RelationKind, VersionId
from tests.ingest.conftest import World
from tests.ingest.test_members import mail
from tests.statements import counted

STAFF = "group:staff"
ADMIN = Viewer(normalise_all(["role:admin"]), AclMode.SUFFICIENT)

CONTRACT = "Mietvertrag\n\nBerlin, den 1. März 2024\n\nzwischen der Nord GmbH und der Süd AG über die Halle.\n"
AMENDMENT = "Nachtrag Nr. 1 zum Mietvertrag vom 1. März 2024\n\nBerlin, den 5. Mai 2025\n\nDie Miete wird erhöht.\n"
NEWER = "Mietvertrag\n\nBerlin, den 7. Juli 2026\n\nDieser Vertrag ersetzt den Mietvertrag vom 1. März 2024 ganz.\n"
BRIEF = "Klageschrift\n\nHamburg, den 12. März 2021\n\nBeweis: Anlage K 1 und Anlage K 2.\n"
ANNEX = "Anlage K 1 zum Schriftsatz vom 12. März 2021\n\nDer Lieferschein.\n"
LETTER = "Schreiben\n\nBerlin, den 3. April 2021\n\nWir mahnen die Zahlung an.\n"
ANSWER = "Schreiben\n\nBonn, den 9. April 2021\n\nAuf Ihr Schreiben vom 3.4.2021 teilen wir mit, dass gezahlt ist.\n"
JUDGMENT = "Urteil\n\nVI ZR 194/17\n\nvom 20. Februar 2018\n\nDie Revision wird zurückgewiesen.\n"
OPINION = "Vermerk\n\nNach BGH, VI ZR 194/17, haftet der Halter. Siehe auch § 823 BGB.\n"


def viewer(*principals: str) -> Viewer:
    return Viewer(normalise_all([*principals]), AclMode.SUFFICIENT)


def versions(world: World) -> dict[str, VersionId]:
    """Return the newest version that each path shows."""
    found = world.rows(
        sa.select(source_objects.c.path, document_versions.c.id)
        .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
        .order_by(document_versions.c.seq)
    )
    return {row.path: VersionId(row.id) for row in found}


def seen(world: World, who: Viewer = ADMIN, of: Sequence[str] | None = None) -> set[tuple[str, str, str]]:
    """Return the relations as (kind, from path, to path)."""
    by_path = versions(world)
    paths = {version: path for path, version in by_path.items()}
    with world.engine.connect() as connection:
        asked = [by_path[path] for path in of] if of is not None else list(by_path.values())
        found = relations_of(connection, who, asked)
    return {(one.kind.value, paths[one.from_version], paths[one.to_version]) for one in found}


def full(world: World, who: Viewer = ADMIN) -> list[Relation]:
    with world.engine.connect() as connection:
        return relations_of(connection, who, list(versions(world).values()))


def rows_of(world: World) -> tuple[list, list]:
    return tuple(
        world.rows(sa.select(table).order_by(table.c.version_id, table.c.key, *extra))
        for table, extra in ((relation_intents, (relation_intents.c.kind,)), (relation_keys, ()))
    )


MATTERS = SourceConfig(
    project=ProjectRef(key="nord", title="Projekt Nord"),
    places=tuple(PlaceRule(prefix=f"o{n}", matter=MatterRef(key=f"O-{n}", title=f"Akte {n}")) for n in range(6)),
)


def in_every_order(world: World, files: Mapping[str, bytes | str]) -> list[str]:
    """Take three files in one by one, in each of the six orders in a matter of its own; return the folders."""
    folders = []
    for turn, order in enumerate(permutations(files)):
        for name in order:
            world.ingest({f"o{turn}/{name}": files[name]}, config=MATTERS)
        folders.append(f"o{turn}")
    return folders


def allow_staff(world: World) -> None:
    with world.engine.begin() as connection:
        found = connection.execute(sa.select(projects.c.id)).scalars().all()
        values = [{"project_id": one, "principal": STAFF, "effect": "allow"} for one in found]
        connection.execute(sa.insert(project_grants), values)


def deny_document(world: World, path: str, principal: str) -> None:
    document = sa.select(document_versions.c.document_id).where(document_versions.c.id == versions(world)[path])
    with world.engine.begin() as connection:
        values = {"document_id": document.scalar_subquery(), "principal": principal, "effect": "deny"}
        connection.execute(sa.insert(document_grants).values(values))


PAIRS = [
    (AMENDMENT, CONTRACT, RelationKind.AMENDS),
    (NEWER, CONTRACT, RelationKind.SUPERSEDES),
    (ANNEX, BRIEF, RelationKind.ANNEX_OF),
    (ANSWER, LETTER, RelationKind.RESPONDS_TO),
    (OPINION, JUDGMENT, RelationKind.REFERENCES),
]


@pytest.mark.parametrize("says_first", [True, False])
def test_a_relation_is_there_whichever_end_comes_first(world: World, says_first: bool) -> None:
    says = {f"a/{n}/sagt.txt": pair[0] for n, pair in enumerate(PAIRS)}
    meant = {f"a/{n}/gemeint.txt": f"{pair[1]}\n{n}" for n, pair in enumerate(PAIRS)}
    for files in (says, meant) if says_first else (meant, says):
        world.ingest(files)
    found = seen(world)
    for n, (_, _, kind) in enumerate(PAIRS):
        assert (kind.value, f"a/{n}/sagt.txt", f"a/{n}/gemeint.txt") in found


def test_evidence_quotes_the_end_it_was_read_from(world: World) -> None:
    world.ingest({"a/sagt.txt": AMENDMENT, "a/gemeint.txt": CONTRACT})
    [found] = [one for one in full(world) if one.kind is RelationKind.AMENDS]
    assert found.evidence["text"] == "Nachtrag Nr. 1 zum Mietvertrag vom 1. März 2024"
    assert AMENDMENT[found.evidence["char_start"] : found.evidence["char_end"]] == found.evidence["text"]
    assert found.target_evidence == {"source": "date", "text": "1. März 2024"}
    assert 0 < found.confidence <= 1


def test_an_annex_beside_the_brief_that_names_it(world: World) -> None:
    world.ingest({"a/Klage.txt": BRIEF, "a/Anlage K1.txt": "Der Lieferschein.", "a/Anlagen/Anlage_K_2.txt": "Foto."})
    assert seen(world) == {
        ("annex_of", "a/Anlage K1.txt", "a/Klage.txt"),
        ("annex_of", "a/Anlagen/Anlage_K_2.txt", "a/Klage.txt"),
    }
    assert "Lieferschein" not in str([one.evidence for one in full(world)])


def test_nothing_is_related_across_projects_nor_weakly_across_matters(world: World) -> None:
    world.ingest({"a/sagt.txt": AMENDMENT, "b/gemeint.txt": CONTRACT, "c/gemeint.txt": CONTRACT})
    world.ingest({"a/v.txt": OPINION, "c/urteil.txt": JUDGMENT})
    assert seen(world) == set()
    world.ingest({"b/urteil.txt": JUDGMENT})
    assert seen(world) == {("references", "a/v.txt", "b/urteil.txt")}


def test_mail_and_attachment_and_the_mail_that_is_answered(world: World) -> None:
    first, answer = mail("Vertrag", ("Anlage.txt", b"Der Vertragstext.")), mail("AW: Vertrag")
    answer.replace_header("Message-ID", "<2@kanzlei.example>")
    answer["In-Reply-To"] = "<1@kanzlei.example>"
    world.ingest({"a/eins.eml": first.as_bytes(), "a/zwei.eml": answer.as_bytes()})
    assert seen(world) == {
        ("contains", "a/eins.eml", "a/eins.eml/Anlage.txt"),
        ("responds_to", "a/zwei.eml", "a/eins.eml"),
        ("belongs_to_thread", "a/zwei.eml", "a/eins.eml"),
    }


def test_the_attachment_of_older_bytes_stays_with_the_older_mail(world: World) -> None:
    for number in (1, 2):
        body = f"Der Text in Fassung {number}.".encode()
        world.ingest({"a/post.eml": mail("Vertrag", ("Anlage.txt", body), body=f"Nummer {number}.").as_bytes()})
    pairs = [(one.from_version, one.to_version) for one in full(world, ADMIN) if one.kind is RelationKind.CONTAINS]
    mails, members = (
        world.rows(
            sa.select(document_versions.c.id)
            .join(version_sources, version_sources.c.version_id == document_versions.c.id)
            .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
            .where(source_objects.c.path == path)
            .order_by(document_versions.c.seq)
        )
        for path in ("a/post.eml", "a/post.eml/Anlage.txt")
    )
    assert pairs == [(mails[-1].id, members[-1].id)]
    with world.engine.connect() as connection:
        old = relations_of(connection, ADMIN, [VersionId(mails[0].id)])
    assert [(one.from_version, one.to_version) for one in old] == [(mails[0].id, members[0].id)]


@pytest.mark.parametrize("wall", ["a/sagt.txt", "a/gemeint.txt"])
@pytest.mark.parametrize("asked", ["a/sagt.txt", "a/gemeint.txt"])
def test_a_wall_at_either_end_hides_the_relation_from_both(world: World, wall: str, asked: str) -> None:
    world.ingest({"a/sagt.txt": AMENDMENT, "a/gemeint.txt": CONTRACT})
    allow_staff(world)
    anna, ben = viewer("user:anna", STAFF), viewer("user:ben", STAFF)
    assert seen(world, anna, [asked]) == {("amends", "a/sagt.txt", "a/gemeint.txt")}
    deny_document(world, wall, "user:anna")
    assert seen(world, anna, [asked]) == set()
    assert seen(world, ben, [asked]) == {("amends", "a/sagt.txt", "a/gemeint.txt")}
    assert seen(world, viewer("user:nobody")) == set()


def test_what_is_read_from_a_name_is_for_those_who_may_cite_that_file(world: World) -> None:
    text = "Der Lieferschein."
    world.ingest({"a/Klage.txt": BRIEF, "a/Anlage K1.txt": text, "a/post/Foto.txt": text})
    allow_staff(world)
    anna = viewer("user:anna", STAFF)
    assert {one.kind for one in full(world, anna)} == {RelationKind.ANNEX_OF}
    with world.engine.begin() as connection:
        [place] = connection.execute(
            sa.select(source_objects.c.id).where(source_objects.c.path == "a/Anlage K1.txt")
        ).scalars()
        connection.execute(sa.update(source_objects).where(source_objects.c.id == place).values(acl_state="known"))
        values = {"source_object_id": place, "principal": "user:ben", "effect": "allow"}
        connection.execute(sa.insert(source_object_grants).values(values))
    assert full(world, anna) == []
    assert {one.kind for one in full(world, viewer("user:ben", STAFF))} == {RelationKind.ANNEX_OF}


def test_a_tombstone_at_either_end_ends_the_relation(world: World) -> None:
    world.ingest({"a/sagt.txt": AMENDMENT, "a/gemeint.txt": CONTRACT})
    with world.engine.begin() as connection:
        gone = source_objects.c.path == "a/gemeint.txt"
        connection.execute(sa.update(source_objects).where(gone).values(deleted_at=sa.func.now()))
    assert seen(world, of=["a/sagt.txt"]) == set()


def test_a_second_run_adds_nothing_and_one_that_reads_less_takes_away(world: World) -> None:
    files = {"a/sagt.txt": AMENDMENT, "a/gemeint.txt": CONTRACT, "a/Anlage 1.txt": "Foto."}
    world.ingest(files)
    before = rows_of(world)
    with world.engine.begin() as connection:
        connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage == "relate"))
    world.ingest(files)
    assert rows_of(world) == before
    assert any(row.kind == "amends" for row in before[0])
    [row] = [row for row in before[0] if row.kind == "amends"]
    with world.engine.begin() as connection:
        realms = Realms(row.realm, row.realm)
        rows.replace(connection, row.version_id, row.source_object_id, realms, ([], []), folder="folder:x")
    assert not [row for row in full(world) if row.kind is RelationKind.AMENDS]


def test_new_bytes_at_the_path_say_what_they_say(world: World) -> None:
    world.ingest({"a/sagt.txt": AMENDMENT, "a/gemeint.txt": CONTRACT})
    world.ingest({"a/sagt.txt": "Etwas anderes.", "a/gemeint.txt": CONTRACT})
    assert seen(world, of=["a/sagt.txt"]) == set()


def test_relations_move_with_their_document(world: World) -> None:
    from tests.ingest.test_versions import MOVED

    files = {"a/sagt.txt": AMENDMENT, "a/gemeint.txt": CONTRACT}
    world.ingest(files)
    before = {row.realm for row in rows_of(world)[0]}
    world.ingest(files, config=MOVED)
    assert seen(world) == {("amends", "a/sagt.txt", "a/gemeint.txt")}
    assert before.isdisjoint(row.realm for row in rows_of(world)[0])


def test_two_sessions_at_once_write_in_one_order_and_meet(world: World) -> None:
    world.ingest({f"a/{number}.txt": f"Brief {number}." for number in range(2)})
    observed = world.rows(sa.select(version_sources).order_by(version_sources.c.version_id))
    realm = Realms(UUID(int=7), UUID(int=7))

    def write(turn: int) -> None:
        mine = observed[turn % 2]
        intents = [
            Intent(RelationKind.REFERENCES, f"contract:{key}", 0.5, {"source": "text"})
            for key in (range(200) if turn % 4 < 2 else reversed(range(200)))
        ]
        with world.engine.begin() as connection:
            said = (intents, [])
            rows.replace(connection, mine.version_id, mine.source_object_id, realm, said, folder="folder:x")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(write, turn) for turn in range(16)]:
            done.result(timeout=60)
    assert world.scalar(sa.select(sa.func.count()).select_from(relation_intents)) == 400


def test_all_orders_give_the_same_relations(world: World) -> None:
    files = {"v.txt": CONTRACT, "n.txt": AMENDMENT, "w.txt": NEWER}
    expected = set()
    for folder in in_every_order(world, files):
        expected |= {
            ("amends", f"{folder}/n.txt", f"{folder}/v.txt"),
            ("supersedes", f"{folder}/w.txt", f"{folder}/v.txt"),
        }
    assert seen(world) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wir beziehen uns auf Ihr Schreiben vom 3.4.2021.", ("responds_to", "letter:2021-04-03")),
        ("In response to your letter of 3 April 2021 we state", ("responds_to", "letter:2021-04-03")),
        ("Ihre E-Mail vom 3. April 2021 haben wir erhalten.", ("responds_to", "letter:2021-04-03")),
        ("Unser Schreiben vom 3.4.2021 blieb ohne Antwort.", ("references", "letter:2021-04-03")),
        ("Annex 2 to the Agreement dated 1 March 2024", ("annex_of", "contract:2024-03-01")),
        ("Anlage K 1 zum Schriftsatz vom 12.03.2021", ("annex_of", "pleading:2021-03-12")),
        ("Amendment No. 1 to the Share Purchase Agreement dated 1 March 2024", ("amends", "contract:2024-03-01")),
        ("Änderungsvereinbarung zum Kaufvertrag vom 1.3.2024", ("amends", "contract:2024-03-01")),
        ("This Agreement supersedes the Lease Agreement dated March 1, 2024.", ("supersedes", "contract:2024-03-01")),
        ("This was superseded by the Lease Agreement dated March 1, 2024.", ("references", "contract:2024-03-01")),
        ("Er ersetzt den Vertrag vom 1.3.2024 nicht", ("references", "contract:2024-03-01")),
        ("Der Vertrag vom 1.3.2024 wird durch diese Vereinbarung ersetzt.", ("supersedes", "contract:2024-03-01")),
        ("Der Vertrag vom 1.3.2024 wird durch diesen Vertrag nicht ersetzt.", ("references", "contract:2024-03-01")),
        (
            "The Lease Agreement dated March 1, 2024 is hereby replaced by this one.",
            ("supersedes", "contract:2024-03-01"),
        ),
        ("Der Vertrag vom 1.3.2024 wurde durch jenen ersetzt.", ("references", "contract:2024-03-01")),
        ("Dies ersetzt nicht den Vertrag vom 1.3.2024.", ("references", "contract:2024-03-01")),
        ("Erwiderung auf die Klage vom 1.3.2024", ("responds_to", "pleading:2024-03-01")),
        ("Das Urteil vom 1.3.2024 ist rechtskräftig.", ("references", "decision:2024-03-01")),
        ("Die Frist endet am 1.3.2024.", None),
        ("Im März 2024 schloss man den Vertrag.", None),
    ],
)
def test_what_a_text_says_about_a_paper_of_a_day(text: str, expected) -> None:
    found = [(intent.kind.value, intent.key) for intent in dated_papers(text)]
    assert found == ([expected] if expected else [])


def test_further_down_the_words_of_an_annex_only_refer(world: World) -> None:
    text = "Wir schreiben Ihnen. " * 40 + "Siehe Anlage K 1 zum Schriftsatz vom 12.03.2021."
    assert [intent.kind for intent in dated_papers(text)] == [RelationKind.REFERENCES]


def test_a_pleading_does_not_refer_to_its_own_proceedings() -> None:
    text = "Landgericht Hamburg\n12 O 34/21\n\n" + "Der Beklagte trägt vor. " * 60 + "BGH, VI ZR 194/17"
    items = [
        {"kind": "file_number", "raw": "12 O 34/21", "canonical": "12 O 34/21"},
        {"kind": "file_number", "raw": "VI ZR 194/17", "canonical": "VI ZR 194/17"},
    ]
    found = [intent.key for intent in numbered_papers(text, items, own_words_chars=600)]
    assert found == ["file_number:VI ZR 194/17"]


def test_a_text_of_many_dates_is_read_in_bounded_time() -> None:
    import time

    text = "Ihr Schreiben vom 3.4.2021 und der Vertrag vom 1. März 2024, Nachtrag zum zum zum. " * 20_000
    started = time.perf_counter()
    assert len(list(dated_papers(text))) == 2
    assert time.perf_counter() - started < 5


def test_what_is_said_costs_the_same_statements_however_much_it_is(world: World) -> None:
    world.ingest({"a/gemeint.txt": CONTRACT, "a/post.eml": mail("Vertrag").as_bytes()})

    def cost(path: str, body: bytes) -> int:
        with counted(world.engine) as statements:
            world.ingest({path: body})
        return len(statements)

    few = cost("a/eins.txt", b"Ihr Schreiben vom 3.4.2021.")
    dates = "".join(f"Ihr Schreiben vom 3.4.{year}. " for year in range(1900, 2020))
    assert cost("a/viele.txt", dates.encode()) == few
    names = {"a/2.eml": 2, "a/3.eml": 3}
    costs = []
    for path, number in names.items():
        answer = mail("AW: Vertrag", body=f"Nummer {number}")
        answer.replace_header("Message-ID", f"<{number}@kanzlei.example>")
        answer["In-Reply-To"], answer["References"] = "<1@kanzlei.example>", "<1@kanzlei.example>"
        costs.append(cost(path, answer.as_bytes()))
    assert costs[0] == costs[1] == few + 3


def test_two_workers_that_bring_both_ends_at_once_need_not_know_of_each_other(world: World) -> None:
    files = {f"a/urteil{n}.txt": f"{JUDGMENT}\n{n}" for n in range(4)}
    files |= {f"b/vermerk{n}.txt": f"{OPINION}\n{n}" for n in range(4)}
    for path, text in files.items():
        world.ingest({path: text}, name=path)
    before = seen(world)
    assert len([one for one in before if one[0] == "references"]) == 16
    with world.engine.begin() as connection:
        for table in (relation_intents, relation_keys):
            connection.execute(sa.delete(table))
        connection.execute(sa.delete(ingest_state).where(ingest_state.c.stage == "relate"))
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(world.ingest, {path: text}, name=path) for path, text in files.items()]
        assert all(one.result(timeout=120).complete for one in runs)
    assert seen(world) == before


def test_an_attached_mail_is_contained_once_at_every_depth(world: World) -> None:
    inner = mail("Innen", ("Anlage.txt", b"Inhalt der Anlage"))
    inner.replace_header("Message-ID", "<innen@kanzlei.example>")
    outer = mail("Weiterleitung")
    outer.add_attachment(inner)
    world.ingest({"a/post.eml": outer.as_bytes()})
    assert {one for one in seen(world) if one[0] == "contains"} == {
        ("contains", "a/post.eml", "a/post.eml/Innen.eml"),
        ("contains", "a/post.eml/Innen.eml", "a/post.eml/Innen.eml/Anlage.txt"),
    }
