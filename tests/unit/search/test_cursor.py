from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.access.audit import AuditHasher
from shared.errors import InvalidRequestError
from shared.search.cursor import KEY_LABEL, LIFETIME_S, CursorSeal, Position
from shared.search.request import FilterRequest, parse_filter

POSITION = Position(day=1_709_251_200_000, version_seq=7, seen=20)
KEY = AuditHasher(b"a key for tests only").derived_key(KEY_LABEL)
SEAL = CursorSeal(KEY)


def asked(cursor: str | None = None, language: str = "de") -> FilterRequest:
    return parse_filter({"filters": {"language": language}, **({} if cursor is None else {"cursor": cursor})})


def sealed(seal: CursorSeal = SEAL, position: Position = POSITION, subject: str = "anna") -> str:
    return seal.sealed(position, asked(), subject=subject)


def is_refused(
    cursor: str, match: str, *, subject: str = "anna", language: str = "de", seal: CursorSeal = SEAL
) -> None:
    with pytest.raises(InvalidRequestError, match=match) as caught:
        seal.opened(asked(cursor, language), subject=subject)
    assert caught.value.field == "cursor"


@pytest.mark.parametrize(
    "position", [POSITION, Position(-(2**63), 1, 0), Position(2**63 - 1, 2**31 - 1, 10_000_000)], ids=str
)
def test_a_cursor_leads_back_to_its_position(position: Position) -> None:
    assert SEAL.opened(asked(sealed(position=position)), subject="anna") == position
    assert SEAL.opened(asked(), subject="anna") is None


def test_a_cursor_goes_on_behind_all_rows_of_its_version() -> None:
    assert POSITION.after == [1_709_251_200_000, 7, 2**31 - 1]


def test_every_process_with_the_same_key_opens_it() -> None:
    assert CursorSeal(KEY).opened(asked(sealed()), subject="anna") == POSITION


def test_a_cursor_of_other_filters_is_refused() -> None:
    is_refused(sealed(), "other filters", language="en")


def test_the_limit_may_change_between_pages() -> None:
    request = parse_filter({"filters": {"language": "de"}, "cursor": sealed(), "limit": 3})
    assert SEAL.opened(request, subject="anna") == POSITION


def test_a_cursor_of_another_caller_or_another_installation_is_refused() -> None:
    is_refused(sealed(), "gave you", subject="bert")
    is_refused(sealed(subject="ann"), "gave you")
    is_refused(sealed(CursorSeal(AuditHasher(b"another key of them").derived_key(KEY_LABEL))), "gave you")
    is_refused(sealed(CursorSeal(AuditHasher(b"a key for tests only").derived_key("other"))), "gave you")


def test_a_cursor_is_good_for_a_day() -> None:
    now = [1000.0]
    seal = CursorSeal(KEY, now=lambda: now[0])
    cursor = sealed(seal)
    now[0] += LIFETIME_S
    assert seal.opened(asked(cursor), subject="anna") == POSITION
    now[0] += 1
    is_refused(cursor, "older than a day", seal=seal)


def test_a_cursor_shows_nothing_of_its_position() -> None:
    small, large = sealed(position=Position(0, 1, 0)), sealed(position=Position(2**62, 2**31 - 1, 2**62))
    assert len(small) == len(large) < 200
    # The same position looks different each time, so that two lists cannot be compared.
    assert sealed() != sealed()
    assert b"\x00\x00\x00\x00" not in _bytes(small)[1:]


def test_no_hash_of_a_query_is_the_key() -> None:
    hasher = AuditHasher(b"a key for tests only")
    assert hasher.hash(KEY_LABEL) != hasher.derived_key(KEY_LABEL).hex()
    assert len(KEY) == 32


@given(st.integers(0, 8 * len(base64.urlsafe_b64decode(sealed() + "==")) - 1))
def test_whichever_bit_is_changed_the_cursor_is_refused(bit: int) -> None:
    content = bytearray(_bytes(sealed()))
    content[bit // 8] ^= 1 << bit % 8
    is_refused(base64.urlsafe_b64encode(content).decode().rstrip("="), "gave you")


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "",
        lambda _: "x",
        lambda _: "ä",
        lambda _: "[" * 1000,
        lambda _: base64.urlsafe_b64encode(b'[1,"x",1,1,1]').decode().rstrip("="),
        lambda _: base64.urlsafe_b64encode(b"\x01").decode(),
        lambda _: base64.urlsafe_b64encode(b"\x01" + b"n" * 12).decode(),
        lambda cursor: cursor[:-1],
        lambda cursor: cursor[:40],
        lambda cursor: cursor + "AAAA",
        lambda cursor: f" {cursor}",
        lambda cursor: cursor[:10] + "\n" + cursor[10:],
    ],
)
def test_anything_else_is_refused(change: Callable[[str], str]) -> None:
    is_refused(change(sealed()), "gave you")


def _bytes(cursor: str) -> bytes:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
