from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.access.principals import from_claims, normalise, qualify
from shared.errors import UnauthenticatedError
from shared.settings import Identity, load_settings
from shared.types import Principal, SourceId

A, B = SourceId(uuid.UUID(int=1)), SourceId(uuid.UUID(int=2))
ADMINS = load_settings({"KI_IDENTITY__ADMIN_GROUPS": '["KI-Admins"]'}).identity


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        (" User:Anna@Kanzlei.example\t", "user:anna@kanzlei.example"),
        ("user: \u00a0Anna@Kanzlei.example", "user:anna@kanzlei.example"),
        ("user:Vorname.Nachname@Kanzlei.DE", "user:vorname.nachname@kanzlei.de"),
        ("group:\tteam nord ", "group:team nord"),
        ("group:Bu\u0308ro", "group:b\u00fcro"),
        ("group:STRASSE", "group:strasse"),
        ("group:Stra\u00dfe", "group:stra\u00dfe"),
        ("group:a:b:c", "group:a:b:c"),
        ("role:admin", "role:admin"),
    ],
)
def test_principals_are_trimmed_composed_and_lower_case(raw: str, normal: str) -> None:
    assert normalise(raw) == normal


@pytest.mark.parametrize(
    "raw",
    ["", " ", "anna", ":", "group:", "group: ", ":x", "tenant:x", "group:a\x00b", "user:\ud800", "user:" + "x" * 1000],
)
def test_what_names_nobody_is_dropped(raw: str) -> None:
    assert normalise(raw) is None


@given(st.sampled_from(["user:", "GROUP:", "role:"]), st.text(max_size=20))
def test_normalising_twice_changes_nothing(kind: str, value: str) -> None:
    once = normalise(kind + value)
    assert once is None or normalise(once) == once


@given(st.sampled_from(["user:", "group:", "role:", "group:src.", f"group:src.{B}."]), st.text(min_size=1, max_size=9))
def test_qualifying_twice_changes_nothing_and_never_reaches_another_source(kind: str, value: str) -> None:
    principal = normalise(kind + value)
    if principal is None:
        return
    once = qualify(A, principal)
    assert qualify(A, once) == once
    assert not once.startswith(f"group:src.{B}.")
    if not principal.startswith("group:"):
        assert once == principal


def test_groups_of_a_source_carry_its_name_and_directory_groups_do_not() -> None:
    assert qualify(A, Principal("group:partner")) == f"group:src.{A}.partner"
    assert qualify(A, Principal("group:entra:7")) == "group:entra:7"
    assert qualify(A, Principal("group:google:7")) == "group:google:7"
    assert qualify(A, Principal("user:anna")) == "user:anna"


def caller(settings: Identity = ADMINS, **claims: Any) -> set[str]:
    return set(from_claims({"sub": "U1", **claims}, settings).principals)


def caller_or_nobody(**claims: Any) -> set[str]:
    try:
        return caller(**claims)
    except UnauthenticatedError:
        return set()


def test_a_token_gives_its_subject_and_the_role_of_everyone_signed_in() -> None:
    assert caller() == {"user:u1", "role:authenticated"}


@given(st.sampled_from(["user", "group"]), st.text(min_size=1, max_size=9))
def test_a_principal_of_a_token_is_written_in_a_grant_with_blanks_or_without(kind: str, value: str) -> None:
    claims = {"sub": value} if kind == "user" else {"groups": [value]}
    for principal in caller_or_nobody(**claims) - {"role:authenticated", "role:admin", "user:u1"}:
        assert normalise(principal.replace(":", ": ", 1)) == normalise(f" {principal} ") == principal


@pytest.mark.parametrize("verified", [None, False, "false", 1, "yes"])
def test_an_address_that_is_not_verified_gives_nothing(verified: object) -> None:
    assert caller(email="Anna@kanzlei.example", email_verified=verified) == {"user:u1", "role:authenticated"}


@pytest.mark.parametrize("verified", [True, "true"])
def test_a_verified_address_is_user_and_username(verified: object) -> None:
    found = caller(email="Anna@kanzlei.example", email_verified=verified)
    assert found >= {"user:anna@kanzlei.example", "username:anna@kanzlei.example"}


def test_a_self_chosen_name_is_never_a_join_key() -> None:
    assert caller(preferred_username="anna", name="role:admin", principals=["role:admin"], roles=["admin"]) == {
        "user:u1",
        "role:authenticated",
    }


def test_groups_become_group_principals_and_cannot_pose_as_anything_else() -> None:
    found = caller(groups=["Team A", "role:admin", "user:ben", 7, None, "", "src.x.partner", " SRC.y"])
    assert found == {"user:u1", "role:authenticated", "group:team a", "group:role:admin", "group:user:ben"}


def test_only_a_configured_group_makes_an_administrator() -> None:
    assert "role:admin" in caller(groups=["ki-admins"])
    assert "role:admin" not in caller(groups=["ki-admins2"])
    assert "role:admin" not in caller(load_settings({}).identity, groups=["ki-admins"])


@pytest.mark.parametrize("subject", [None, "", "  ", 7, "\x00"])
def test_a_token_without_subject_is_refused(subject: object) -> None:
    with pytest.raises(UnauthenticatedError):
        from_claims({"sub": subject}, ADMINS)
