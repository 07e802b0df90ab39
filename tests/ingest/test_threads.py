"""Threads of mail: the same whatever order the mails came in, and nothing of a mail that one may not see."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from itertools import permutations
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from shared.access.predicate import Viewer
from shared.catalog.relations import relations_of
from shared.catalog.threads import Message, Thread, components, message_of, visible_threads
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.structure import thread_messages
from shared.ingest.convert import eml
from shared.ingest.threads import Mail, mail_of, plain_subject, settle_message
from shared.text.converted import ConvertedText
from shared.types import RelationKind, VersionId
from tests.ingest.conftest import World
from tests.ingest.test_relations import ADMIN, STAFF, allow_staff, deny_document, versions, viewer

DAY = datetime(2024, 2, 12, 9, 0, tzinfo=UTC)
ANNA, BEN, CARL = "anna@kanzlei.example", "ben@mandant.example", "carl@gegner.example"


def letter(
    number: int | None,
    subject: str = "Vertrag",
    *,
    sender: str = ANNA,
    to: str = BEN,
    answers: int | None = None,
    references: tuple[int, ...] = (),
    day: int = 0,
) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = f"Jemand <{sender}>", to, subject
    message["Date"] = (DAY + timedelta(days=day)).strftime("%a, %d %b %Y %H:%M:%S +0000")
    if number is not None:
        message["Message-ID"] = f"<{number}@x.example>"
    if answers is not None:
        message["In-Reply-To"] = f"<{answers}@x.example>"
    if references:
        message["References"] = " ".join(f"<{one}@x.example>" for one in references)
    message.set_content(f"Nachricht {number} an {to} am Tag {day} von {sender} zu {subject}.")
    return message.as_bytes()


def threads(world: World, who: Viewer = ADMIN) -> list[list[str]]:
    """Return the threads as lists of paths."""
    return [[path for path, _ in thread] for thread in _threads(world, who)]


def _threads(world: World, who: Viewer) -> list[list[tuple[str, VersionId]]]:
    paths = {version: path for path, version in versions(world).items()}
    return [[(paths[m.version_id], m.version_id) for m in thread.messages] for thread in found(world, who)]


def found(world: World, who: Viewer = ADMIN) -> list[Thread]:
    with world.engine.connect() as connection:
        return visible_threads(connection, who, list(versions(world).values()))


def bare_versions(world: World, count: int) -> list[VersionId]:
    document, ids = uuid4(), [VersionId(UUID(int=n + 1)) for n in range(count)]
    rows = [
        {"id": one, "document_id": document, "sha256": str(one), "title": "x", "mime": "message/rfc822"} for one in ids
    ]
    with world.engine.begin() as connection:
        connection.execute(sa.insert(documents).values(id=document, title="x"))
        connection.execute(sa.insert(document_versions).values(size_bytes=1), rows)
    return ids


CHAINS = {
    "each names the one before": {"answers": [None, 1, 2], "references": [(), (), ()]},
    "the last one names both": {"answers": [None, 1, 2], "references": [(), (1,), (1, 2)]},
    "both name one that is not there": {"answers": [None, 9, 9], "references": [(9,), (9,), (9,)]},
}


BY_SUBJECT = [
    letter(1, "Mietvertrag Halle"),
    letter(2, "AW: Mietvertrag  Halle", sender=BEN, to=ANNA, day=1),
    letter(3, "RE: AW: Mietvertrag Halle", day=2),
]


def three_mails(answers, references) -> list[bytes]:
    return [letter(n + 1, answers=answers[n], references=references[n], day=n) for n in range(3)]


@pytest.mark.parametrize(
    "mails", [*(three_mails(**chain) for chain in CHAINS.values()), BY_SUBJECT], ids=[*CHAINS, "replies by subject"]
)
def test_all_orders_of_three_mails_give_the_same_thread(world: World, mails: list[bytes]) -> None:
    ids = bare_versions(world, 18)
    kept = [mail_of(eml.convert(mail).text) for mail in mails]
    for turn, order in enumerate(permutations(range(3))):
        mine = ids[turn * 3 : turn * 3 + 3]
        for position in order:
            with world.engine.begin() as connection:
                settle_message(connection, mine[position], UUID(int=turn), kept[position])
        rows = world.rows(sa.select(thread_messages).where(thread_messages.c.realm == UUID(int=turn)))
        assert len({row.thread_id for row in rows}) == 1
        [thread] = components([message_of(row) for row in rows])
        assert [message.version_id for message in thread] == mine
    rows = world.rows(sa.select(thread_messages))
    assert len({row.thread_id for row in rows}) == 6
    assert len(components([message_of(row) for row in rows])) == 6


def test_a_thread_is_read_through_the_whole_pipeline_latest_mail_first(world: World) -> None:
    mails = three_mails(**CHAINS["each names the one before"])
    for position in (2, 1, 0):
        world.ingest({f"a/{position}.eml": mails[position]})
    assert threads(world) == [["a/0.eml", "a/1.eml", "a/2.eml"]]
    with world.engine.connect() as connection:
        kinds = relations_of(connection, ADMIN, [versions(world)["a/2.eml"]])
    assert {one.kind for one in kinds} == {RelationKind.RESPONDS_TO, RelationKind.BELONGS_TO_THREAD}


def test_a_late_mail_makes_one_of_two_threads(world: World) -> None:
    world.ingest({"a/1.eml": letter(1), "a/2.eml": letter(2, answers=1, day=1)})
    world.ingest({"a/4.eml": letter(4, answers=3, day=3), "a/5.eml": letter(5, answers=4, day=4)})
    assert threads(world) == [["a/1.eml", "a/2.eml"], ["a/4.eml", "a/5.eml"]]
    world.ingest({"a/3.eml": letter(3, answers=2, day=2)})
    assert threads(world) == [[f"a/{n}.eml" for n in range(1, 6)]]
    assert len({row.thread_id for row in world.rows(sa.select(thread_messages))}) == 1


@pytest.mark.parametrize(
    "second",
    [
        letter(2, "Vertrag", sender=BEN, to=ANNA, day=1),
        letter(2, "AW: Vertrag", sender=CARL, to="dora@x.example", day=1),
        letter(2, "AW: Vertrag", sender=BEN, to=CARL, day=1),
        letter(2, "AW: Vertrag", sender=BEN, to=ANNA, day=120),
        letter(2, "AW: Vertrag", sender=BEN, to=ANNA, day=-3),
        letter(2, "AW: Anderes", sender=BEN, to=ANNA, day=1),
        letter(2, "AW: Vertrag", sender=BEN, to=ANNA, day=1, answers=77),
        letter(None, "Vertrag", sender=BEN, to=ANNA, day=1),
        letter(None, "AW:", sender=BEN, to=ANNA, day=1),
    ],
    ids=[
        "no prefix", "other people", "only one in common", "months later", "earlier", "another subject",
        "answers another mail", "no id", "no subject",
    ],
)  # fmt: skip
def test_a_subject_alone_joins_nothing(second: bytes) -> None:
    kept = [mail_of(eml.convert(mail).text) for mail in (letter(1), second)]
    ids = [UUID(int=1), UUID(int=2)]
    messages = [
        Message(VersionId(one), UUID(int=9), m.message_id, m.ids, m.subject, m.is_reply, m.sender, m.people, m.sent_at)
        for one, m in zip(ids, kept, strict=True)
    ]
    assert len(components(messages)) == 2


def test_mails_without_ids_never_join_each_other(world: World) -> None:
    files = {f"a/{n}.eml": letter(None, "", day=n) for n in range(3)}
    world.ingest(files)
    assert threads(world) == []
    assert [list(row.ids) for row in world.rows(sa.select(thread_messages))] == [[], [], []]


def test_a_reply_without_an_id_finds_its_mail_by_subject(world: World) -> None:
    world.ingest({"a/1.eml": letter(1), "a/2.eml": letter(None, "Antw: Vertrag", sender=BEN, to=ANNA, day=1)})
    assert threads(world) == [["a/1.eml", "a/2.eml"]]


def test_one_message_at_two_places_is_one(world: World) -> None:
    body = letter(1)
    world.ingest({"a/1.eml": body, "b/1.eml": body, "b/2.eml": letter(2, answers=1, day=1)})
    [thread] = found(world)
    assert (len(thread.messages), thread.count) == (3, 2)
    with world.engine.connect() as connection:
        kept = relations_of(connection, ADMIN, [versions(world)["a/1.eml"]])
    assert {one.kind for one in kept} == {RelationKind.BELONGS_TO_THREAD, RelationKind.RESPONDS_TO}
    pair = {versions(world)["a/1.eml"], versions(world)["b/1.eml"]}
    assert not [one for one in kept if {one.from_version, one.to_version} == pair]


def test_one_message_twice_is_no_thread(world: World) -> None:
    world.ingest({"a/1.eml": letter(1), "b/1.eml": letter(1)})
    assert threads(world) == []


def test_threads_never_cross_projects(world: World) -> None:
    world.ingest({"a/1.eml": letter(1), "c/2.eml": letter(2, answers=1, day=1), "a/3.eml": letter(3, answers=2, day=2)})
    assert threads(world) == []
    rows = world.rows(sa.select(thread_messages.c.realm, thread_messages.c.thread_id))
    assert len({row.thread_id for row in rows}) == 3


def test_a_thread_tells_nothing_of_a_mail_behind_a_wall(world: World) -> None:
    world.ingest({f"a/{n}.eml": letter(n, answers=n - 1 if n > 1 else None, day=n) for n in (1, 2, 3)})
    allow_staff(world)
    anna, ben = viewer("user:anna", STAFF), viewer("user:ben", STAFF)
    [open_thread] = found(world, anna)
    deny_document(world, "a/2.eml", "user:anna")
    assert threads(world, anna) == []
    assert threads(world, ben) == [["a/1.eml", "a/2.eml", "a/3.eml"]]
    world.ingest({"a/4.eml": letter(4, answers=3, references=(1, 2, 3), day=4)})
    assert threads(world, anna) == [["a/1.eml", "a/3.eml", "a/4.eml"]]
    deny_document(world, "a/1.eml", "user:anna")
    [rest] = found(world, anna)
    assert [m.message_id for m in rest.messages] == ["3@x.example", "4@x.example"]
    assert rest.id != open_thread.id
    assert threads(world, viewer("user:nobody")) == []


def test_a_mail_moves_with_its_folder(world: World) -> None:
    from tests.ingest.test_versions import MOVED

    files = {"a/1.eml": letter(1), "a/2.eml": letter(2, answers=1, day=1)}
    world.ingest(files)
    world.ingest(files, config=MOVED)
    assert threads(world) == [["a/1.eml", "a/2.eml"]]


def test_mails_that_come_at_once_from_two_sessions_are_one_thread(world: World) -> None:
    count = 12
    ids = bare_versions(world, count)

    def put(number: int) -> None:
        chain = (f"{number}@x", f"{number - 1}@x")
        mail = Mail(chain[0], chain[1], chain, "s", False, ANNA, (ANNA, BEN), DAY)
        with world.engine.begin() as connection:
            settle_message(connection, ids[number], UUID(int=5), mail)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(put, number) for number in [*range(0, count, 2), *range(1, count, 2), *range(count)]]:
            done.result(timeout=60)
    rows = world.rows(sa.select(thread_messages.c.thread_id, thread_messages.c.version_id))
    assert len(rows) == count
    assert len({row.thread_id for row in rows}) == 1


def test_the_headers_of_a_mail_are_read_for_its_thread() -> None:
    meta = {
        "message-id": " <A.1@x> ",
        "in-reply-to": "Your message of Monday <b@x> and <c@x>",
        "references": "<d@x>\t<b@x> junk <" + "z" * 500 + "@x>",
        "from": '"Müller, Anna" <Anna@Kanzlei.example>',
        "to": "ben@x.example, ben@x.example",
        "subject": "[EXTERN] AW: Re[2]: WG:  Die   Sache ",
        "date": "Mon, 12 Feb 2024 23:30:00 +0100 (Mitteleuropäische Zeit)",
    }
    mail = mail_of(ConvertedText("x", meta=meta))
    assert (mail.message_id, mail.answers) == ("A.1@x", "b@x")
    assert mail.ids[:3] == ("A.1@x", "d@x", "b@x")
    assert all(len(one) <= 200 for one in mail.ids)
    assert (mail.subject, mail.is_reply) == ("die sache", True)
    assert (mail.sender, mail.people) == ("anna@kanzlei.example", ("anna@kanzlei.example", "ben@x.example"))
    assert mail.sent_at == datetime(2024, 2, 12, 22, 30, tzinfo=UTC)
    nothing = mail_of(ConvertedText("x", meta={"message-id": "no id at all", "date": "yesterday", "from": "Anna"}))
    assert (nothing.message_id, nothing.ids, nothing.sender, nothing.sent_at) == (None, (), None, None)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("Vertrag", ("vertrag", False)),
        ("AW: Vertrag", ("vertrag", True)),
        ("WG:Fwd: RE: Vertrag", ("vertrag", True)),
        ("Antw: Vertrag", ("vertrag", True)),
        ("[EXT] Vertrag", ("vertrag", False)),
        ("Rechnung: Vertrag", ("rechnung: vertrag", False)),
        ("AW:", (None, True)),
        ("", (None, False)),
    ],
)
def test_prefixes_of_a_subject(subject: str, expected) -> None:
    assert plain_subject(subject) == expected


def test_thousands_of_mails_of_one_subject_are_sorted_in_bounded_time() -> None:
    import time

    messages = [
        Message(VersionId(UUID(int=n)), UUID(int=1), f"{n}@x", (f"{n}@x",), "news", False, ANNA, (ANNA, BEN), DAY)
        for n in range(10_000)
    ]
    started = time.perf_counter()
    assert len(components(messages)) == 10_000
    assert time.perf_counter() - started < 5
