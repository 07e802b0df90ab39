"""What systems export about rights, as entries and groups of ours: nothing opens that was not open there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from shared.access.caller import Caller
from shared.access.mapping import google_drive, imanage, sharepoint, windows
from shared.access.mapping.entries import Entries, LinkRule, is_somebody
from shared.access.mirror import UnreadableAcl, replace_memberships, replace_object_acl
from shared.access.principals import from_claims, normalise
from shared.access.snapshots import GroupMembers
from shared.db.tables.sources import source_objects
from shared.settings import load_settings
from shared.types import Effect, SourceId, SourceObjectId
from tests.access.world import World, allow, id_of, sees, write

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TENANT = UUID("11111111-2222-3333-4444-555555555555")
GROUP = UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
OTHER = UUID("99999999-2222-3333-4444-555555555555")
SITE = sharepoint.Site("akten", TENANT)
READ = {"RoleTypeKind": 2, "BasePermissions": {"Low": "138612833", "High": "176"}}
LIMITED = {"RoleTypeKind": 1, "BasePermissions": {"Low": "134287360", "High": "48"}}
INTERNAL_CLAIM = f"c:0-.f|rolemanager|spo-grid-all-users/{TENANT}"
OBJECT, SOURCE = SourceObjectId(id_of("object/o")), SourceId(id_of("source/dms"))


@pytest.fixture
def world(connection: sa.Connection) -> World:
    """One document whose own grants open it to nobody who is asked about here."""
    made = World().source("dms", "external").document("d", None, allow("user:lokal")).file("o", "dms", "d")
    write(connection, made)
    return made


def mirror(connection: sa.Connection, entries: Entries | None, groups: list[GroupMembers] | None = None) -> str | None:
    """Mirror what a mapping made as the sync does, and return the object's warning."""
    acl = UnreadableAcl("unread") if entries is None else [(one.principal, one.effect) for one in entries]
    replace_object_acl(connection, OBJECT, acl, as_of=NOW)
    edges = [(one.group, member) for one in groups or [] for member in one.members]
    replace_memberships(connection, SOURCE, edges, as_of=NOW)
    return connection.scalar(sa.select(source_objects.c.acl_warning).where(source_objects.c.id == OBJECT))


def names(entries: Entries | None) -> list[str]:
    assert entries is not None
    return [f"{'-' if one.effect is Effect.DENY else ''}{one.principal}" for one in entries if is_somebody(one)]


def notes(entries: Entries | None) -> list[str]:
    assert entries is not None
    return [one.principal for one in entries if not is_somebody(one)]


def assigned(login: str, kind: int, *roles: dict[str, Any], **more: Any) -> dict[str, Any]:
    member = {"PrincipalType": kind, "LoginName": login, "Title": login, "Id": 7, **more}
    return {"Member": member, "RoleDefinitionBindings": list(roles or (READ,))}


# SharePoint and Entra ID


DIRECTORY = [
    {"userPrincipalName": "Anna@kanzlei.example", "userType": "Member", "accountEnabled": True},
    {"userPrincipalName": "weg@kanzlei.example", "userType": "Member", "accountEnabled": False},
    {"userPrincipalName": "gast_firma.example#EXT#@kanzlei.example", "userType": "Guest", "accountEnabled": True},
    {"userPrincipalName": "b_firma.example#ext#@kanzlei.example", "userType": "Member", "accountEnabled": True},
    {"userPrincipalName": "alt@kanzlei.example", "userType": None, "accountEnabled": True},
]


def test_rc51_everyone_except_external_is_all_internal_people_and_no_guest(
    connection: sa.Connection, world: World
) -> None:
    acl = sharepoint.entries(SITE, [assigned(INTERNAL_CLAIM, 4)])
    assert mirror(connection, acl, sharepoint.everyone(DIRECTORY)) is None
    assert sees(connection, world, "user:anna@kanzlei.example") == {"o"}
    for other in (
        "user:gast_firma.example#ext#@kanzlei.example",
        "user:b_firma.example#ext#@kanzlei.example",
        "user:alt@kanzlei.example",
        "user:weg@kanzlei.example",
        "user:fremd@anderswo.example",
    ):
        assert sees(connection, world, other, "role:authenticated") == set(), other


def test_rc51_everyone_is_guests_too_and_nobody_outside_the_directory(connection: sa.Connection, world: World) -> None:
    mirror(connection, sharepoint.entries(SITE, [assigned("c:0(.s|true", 4)]), sharepoint.everyone(DIRECTORY))
    assert sees(connection, world, "user:gast_firma.example#ext#@kanzlei.example") == {"o"}
    assert sees(connection, world, "user:fremd@anderswo.example", "role:authenticated") == set()


@pytest.mark.parametrize(
    ("login", "kind"),
    [
        ("c:0!.s|windows", 4),
        ("c:0u.c|tenant|everything", 4),
        (f"c:0-.f|rolemanager|spo-grid-all-users/{OTHER}", 4),
        ("c:0t.c|tenant|not-a-guid", 4),
        (INTERNAL_CLAIM, 1),
        ("i:0#.f|membership|", 1),
        ("i:0#.f|membership|anna@kanzlei.example", 4),
        ("", 4),
        ("user:anna@kanzlei.example", 0),
    ],
)
def test_rc51_an_unknown_claim_is_logged_and_opens_nothing(
    connection: sa.Connection, world: World, caplog: pytest.LogCaptureFixture, login: str, kind: int
) -> None:
    with caplog.at_level(logging.WARNING):
        warning = mirror(connection, sharepoint.entries(SITE, [assigned(login, kind)]), sharepoint.everyone(DIRECTORY))
    assert "acl entry is not understood" in caplog.text
    assert warning is not None
    assert "left out the allow for" in warning
    assert sees(connection, world, "user:anna@kanzlei.example", "role:authenticated") == set()


def test_principals_of_sharepoint_by_their_login_names() -> None:
    logins = [
        ("i:0#.f|membership|Anna@Kanzlei.example", 1),
        ("i:0#.w|KANZLEI\\anna", 1),
        (f"c:0t.c|tenant|{GROUP}", 4),
        (f"c:0o.c|federateddirectoryclaimprovider|{GROUP}", 4),
        (f"c:0o.c|federateddirectoryclaimprovider|{GROUP}_o", 4),
        ("Akten Mitglieder", 8),
    ]
    assert names(sharepoint.entries(SITE, [assigned(*each) for each in logins])) == [
        "user:anna@kanzlei.example",
        "user:kanzlei\\anna",
        f"group:entra:{GROUP}",
        f"group:entra:{GROUP}",
        f"group:entra:{GROUP}_o",
        "group:sharepoint.akten.7",
    ]


@pytest.mark.parametrize(
    ("roles", "is_open"),
    [
        ([LIMITED], False),
        ([LIMITED, READ], True),
        ([{"RoleTypeKind": 1}], False),
        ([{"RoleTypeKind": 0, "BasePermissions": {"Low": "32", "High": "0"}}], False),
        ([{"RoleTypeKind": 0, "BasePermissions": {"Low": "33", "High": "0"}}], True),
        ([{"RoleTypeKind": 0}], False),
        ([{"RoleTypeKind": 2}], True),
        ([], False),
    ],
)
def test_only_a_role_that_reads_items_opens_anything(roles: list[dict[str, Any]], is_open: bool) -> None:
    given = {"Member": assigned(INTERNAL_CLAIM, 4)["Member"], "RoleDefinitionBindings": roles}
    assert bool(sharepoint.entries(SITE, [given])) is is_open


def test_role_assignments_that_are_not_expanded_are_unreadable() -> None:
    assert sharepoint.entries(SITE, [{"PrincipalId": 3}]) is None
    assert sharepoint.entries(SITE, [assigned(INTERNAL_CLAIM, 4), {"Member": {}}]) is None


@pytest.mark.parametrize(
    ("kind", "by_default", "by_house_rule"),
    [
        ("OrganizationView", [], [sharepoint.INTERNAL]),
        ("AnonymousEdit", [], [sharepoint.INTERNAL]),
        ("Flexible", [], []),
    ],
)
def test_a_sharing_link_opens_what_the_house_rule_says(
    kind: str, by_default: list[str], by_house_rule: list[str]
) -> None:
    link = assigned(f"SharingLinks.{GROUP}.{kind}.{OTHER}", 8)
    closed = sharepoint.entries(SITE, [link])
    assert (names(closed), len(notes(closed))) == (by_default, 1)
    open_house = sharepoint.Site("akten", TENANT, LinkRule.MEMBERS)
    assert names(sharepoint.entries(open_house, [link])) == by_house_rule


def test_groups_of_a_site_and_of_the_directory_have_who_is_in_them() -> None:
    users = [
        {"PrincipalType": 1, "LoginName": "i:0#.f|membership|anna@kanzlei.example"},
        {"PrincipalType": 4, "LoginName": INTERNAL_CLAIM},
        {"PrincipalType": 4, "LoginName": "c:0!.s|windows"},
    ]
    link = {"Id": 9, "Title": f"SharingLinks.{GROUP}.Flexible.{OTHER}", "Users": users}
    assert sharepoint.site_groups(SITE, [{"Id": 7, "Title": "Mitglieder", "Users": users}, link]) == [
        GroupMembers(group="group:sharepoint.akten.7", members=("user:anna@kanzlei.example", sharepoint.INTERNAL))
    ]
    listed = {
        "id": str(GROUP),
        "members": [
            {"@odata.type": "#microsoft.graph.user", "userPrincipalName": "anna@kanzlei.example"},
            {"@odata.type": "#microsoft.graph.group", "id": str(OTHER)},
            {"@odata.type": "#microsoft.graph.device", "id": str(OTHER)},
        ],
        "owners": [{"@odata.type": "#microsoft.graph.user", "userPrincipalName": "ben@kanzlei.example"}],
    }
    assert sharepoint.directory_groups([listed]) == [
        GroupMembers(group=f"group:entra:{GROUP}", members=("user:anna@kanzlei.example", f"group:entra:{OTHER}")),
        GroupMembers(group=f"group:entra:{GROUP}_o", members=("user:ben@kanzlei.example",)),
    ]


def test_rc55_directory_groups_in_a_circle_end_and_open_to_each_member(connection: sa.Connection, world: World) -> None:
    ids = [UUID(int=number) for number in (1, 2, 3)]
    listed = [
        {
            "id": str(one),
            "members": [{"@odata.type": "#microsoft.graph.group", "id": str(each)} for each in (other, one)],
        }
        for one, other in zip(ids, [*ids[1:], ids[0]], strict=True)
    ]
    listed[2]["members"].append({"userPrincipalName": "anna@kanzlei.example"})
    acl = sharepoint.entries(SITE, [assigned(f"c:0t.c|tenant|{ids[0]}", 4)])
    mirror(connection, acl, sharepoint.directory_groups(listed))
    assert sees(connection, world, "user:anna@kanzlei.example") == {"o"}
    assert sees(connection, world, "user:ben@kanzlei.example") == set()


@pytest.mark.parametrize(
    "login", ["i:0#.f|membership|Vorname.Nachname@Kanzlei.DE", "I:0#.F|MEMBERSHIP|VORNAME.NACHNAME@KANZLEI.DE"]
)
def test_rc56_the_case_of_an_address_does_not_matter_and_another_domain_is_another_person(
    connection: sa.Connection, world: World, login: str
) -> None:
    mirror(connection, sharepoint.entries(SITE, [assigned(login, 1)]))
    claims = {"sub": "s-1", "email": "Vorname.Nachname@kanzlei.de", "email_verified": True}
    caller: Caller = from_claims(claims, load_settings({}).identity)
    assert sees(connection, world, *caller.principals) == {"o"}
    assert sees(connection, world, "user:vorname.nachname@kanzlei-alt.de") == set()


# Google Drive


HOUSE = google_drive.House(frozenset({"Kanzlei.example"}), NOW + timedelta(days=1))
OPEN_HOUSE = google_drive.House(HOUSE.domains, HOUSE.next_snapshot_at, LinkRule.MEMBERS)
USERS = [
    {"primaryEmail": "Anna@kanzlei.example", "suspended": False},
    {"primaryEmail": "weg@kanzlei.example", "suspended": True},
    {"primaryEmail": "ben@tochter.example", "suspended": False},
    {"primaryEmail": "unklar@kanzlei.example"},
]


def shared_with(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "role": "reader", **more}


def test_rc53_a_domain_share_is_for_the_members_that_the_directory_lists(
    connection: sa.Connection, world: World
) -> None:
    share = shared_with("domain", domain="kanzlei.example", allowFileDiscovery=True)
    mirror(connection, google_drive.entries(HOUSE, [share]), google_drive.domain_groups(HOUSE, USERS))
    assert sees(connection, world, "user:anna@kanzlei.example") == {"o"}
    for other in ("user:weg@kanzlei.example", "user:neu@kanzlei.example", "user:ben@tochter.example"):
        assert sees(connection, world, other, "role:authenticated") == set()


@pytest.mark.parametrize(
    ("share", "by_default", "by_house_rule"),
    [
        (shared_with("domain", domain="fremd.example", allowFileDiscovery=True), [], []),
        (shared_with("domain", domain="x.audience.googledomains.com", allowFileDiscovery=True), [], []),
        (shared_with("domain", domain="kanzlei.example"), [], ["group:drive.domain.kanzlei.example"]),
        (shared_with("anyone"), [], ["group:drive.domain.kanzlei.example"]),
        (shared_with("anyone", allowFileDiscovery=True), [], ["group:drive.domain.kanzlei.example"]),
    ],
)
def test_rc53_links_follow_the_house_rule_and_a_foreign_domain_opens_nothing(
    share: dict[str, Any], by_default: list[str], by_house_rule: list[str]
) -> None:
    closed = google_drive.entries(HOUSE, [share])
    assert (names(closed), len(notes(closed))) == (by_default, 1)
    assert names(google_drive.entries(OPEN_HOUSE, [share])) == by_house_rule


@pytest.mark.parametrize(
    ("share", "wanted"),
    [
        (shared_with("user", emailAddress="anna@kanzlei.example"), ["user:anna@kanzlei.example"]),
        (shared_with("group", emailAddress="Team@kanzlei.example"), ["group:google:team@kanzlei.example"]),
        (shared_with("user", emailAddress="anna@kanzlei.example", deleted=True), []),
        (shared_with("user", emailAddress="anna@kanzlei.example", view="metadata"), []),
        (shared_with("user", emailAddress="a@x.example", expirationTime="2026-06-02T11:00:00Z"), []),
        (
            shared_with("user", emailAddress="a@x.example", expirationTime="2026-06-09T12:00:00.000Z"),
            ["user:a@x.example"],
        ),
        (shared_with("user", emailAddress="a@x.example", expirationTime="soon"), []),
        (shared_with("user", emailAddress="a@x.example", expirationTime="2026-07-01T00:00:00"), []),
        ({"type": "user", "emailAddress": "a@x.example", "role": "none"}, []),
        ({"type": "user", "role": "reader"}, []),
        (shared_with("robot", emailAddress="a@x.example"), []),
    ],
)
def test_a_drive_permission_opens_to_whom_it_names_while_it_lasts(share: dict[str, Any], wanted: list[str]) -> None:
    made = google_drive.entries(HOUSE, [share])
    assert names(made) == wanted
    assert bool(notes(made)) is not bool(wanted)


def test_drive_groups_have_users_groups_and_whole_domains_in_them() -> None:
    members = [
        {"type": "USER", "email": "anna@kanzlei.example", "status": "ACTIVE"},
        {"type": "USER", "email": "weg@kanzlei.example", "status": "SUSPENDED"},
        {"type": "GROUP", "email": "team@kanzlei.example"},
        {"type": "CUSTOMER"},
        {"type": "EXTERNAL", "email": "x@fremd.example"},
    ]
    assert google_drive.groups(HOUSE, {"alle@kanzlei.example": members}) == [
        GroupMembers(
            group="group:google:alle@kanzlei.example",
            members=(
                "user:anna@kanzlei.example",
                "group:google:team@kanzlei.example",
                "group:drive.domain.kanzlei.example",
            ),
        )
    ]


# iManage


LIBRARY = [
    {"id": "AHUBER", "email": "anna@kanzlei.example", "is_external": False, "allow_logon": True},
    {"id": "BKURZ", "email": "ben@kanzlei.example", "is_external": False, "allow_logon": True},
    {"id": "MANDANT", "email": "m@fremd.example", "is_external": True, "allow_logon": True},
    {"id": "WEG", "email": "weg@kanzlei.example", "is_external": False, "allow_logon": False},
]
KNOWN = imanage.people(LIBRARY)


def secured(default: str, *trustees: tuple[str, str, str]) -> dict[str, Any]:
    listed = [{"id": name, "type": kind, "access_level": level} for name, kind, level in trustees]
    return {"default_security": default, "trustees": listed}


def test_default_security_is_for_the_house_and_no_access_keeps_out(connection: sa.Connection, world: World) -> None:
    acl = imanage.entries(KNOWN, secured("public", ("bkurz", "user", "no_access"), ("MANDANT", "user", "read")))
    assert mirror(connection, acl, imanage.everyone(KNOWN, LIBRARY)) is None
    assert sees(connection, world, "user:anna@kanzlei.example") == {"o"}
    assert sees(connection, world, "user:m@fremd.example") == {"o"}
    for other in ("user:ben@kanzlei.example", "user:weg@kanzlei.example", "user:ahuber"):
        assert sees(connection, world, other) == set()
    mirror(connection, imanage.entries(KNOWN, secured("view")), imanage.everyone(KNOWN, LIBRARY))
    assert sees(connection, world, "user:m@fremd.example") == set()


def test_a_private_document_is_for_its_trustees() -> None:
    listed = [("LITIGATION", "group", "read"), ("AHUBER", "user", "full_access"), ("BKURZ", "user", "read_write")]
    assert names(imanage.entries(KNOWN, secured("private", *listed))) == [
        "group:imanage.litigation",
        "user:anna@kanzlei.example",
        "user:ben@kanzlei.example",
    ]
    assert imanage.groups(KNOWN, {"LITIGATION": LIBRARY[1:]}) == [
        GroupMembers(group="group:imanage.LITIGATION", members=("user:ben@kanzlei.example", "user:m@fremd.example"))
    ]


@pytest.mark.parametrize(
    "security",
    [secured("inherit", ("AHUBER", "user", "read")), secured(""), {"default_security": "public"}, {}],
)
def test_an_imanage_security_that_needs_its_folder_or_has_no_list_is_unreadable(security: dict[str, Any]) -> None:
    assert imanage.entries(KNOWN, security) is None


@pytest.mark.parametrize(
    "trustee",
    [("fremd", "user", "no_access"), ("AHUBER", "user", "locked"), ("AHUBER", "robot", "no_access"), ("", "user", "")],
)
def test_who_is_kept_out_and_unknown_closes_the_document(
    connection: sa.Connection, world: World, trustee: tuple[str, str, str]
) -> None:
    warning = mirror(connection, imanage.entries(KNOWN, secured("public", trustee)), imanage.everyone(KNOWN, LIBRARY))
    assert "unreadable" in str(warning)
    assert sees(connection, world, "user:anna@kanzlei.example") == set()


def test_who_is_let_in_and_unknown_is_left_out_alone() -> None:
    made = imanage.entries(KNOWN, secured("private", ("fremd", "user", "read"), ("AHUBER", "user", "read")))
    assert (names(made), len(notes(made))) == (["user:anna@kanzlei.example"], 1)


# Windows


DOMAIN = "S-1-5-21-1-2-3"
ANNA, BEN, TEAM, GUEST = f"{DOMAIN}-1101", f"{DOMAIN}-1102", f"{DOMAIN}-2001", f"{DOMAIN}-501"
PEOPLE = windows.Directory(
    users={ANNA: "anna@kanzlei.example", BEN: "ben@kanzlei.example", GUEST: "gast@kanzlei.example"},
    groups=frozenset({TEAM, f"{DOMAIN}-513"}),
    domain_sid=DOMAIN,
    names={
        "kanzlei\\anna": ANNA,
        "kanzlei\\team (berlin)": TEAM,
        "jeder": "S-1-1-0",
        "nt-autorität\\system": "S-1-5-18",
    },
)
A, T = "user:anna@kanzlei.example", f"group:windows.{TEAM}"


@pytest.mark.parametrize(
    ("sddl", "wanted"),
    [
        (f"O:BAG:DUD:PAI(A;;FA;;;{ANNA})", [A]),
        (f"O:{BEN}G:DUD:(A;ID;FR;;;{ANNA})S:AI(AU;SAFA;FA;;;WD)", [A]),
        (f"D:(A;;CCDCLC;;;{ANNA})", [A]),
        (f"D:(A;;0x1200a9;;;{TEAM})", [T]),
        (f"D:(A;;GR;;;{ANNA})(A;;GA;;;{TEAM})", [A, T]),
        (f"D:(A;;FW;;;{ANNA})(A;;FX;;;{TEAM})(A;;RCWDWO;;;{BEN})(A;;0x2;;;{ANNA})", []),
        ("D:(A;;FA;;;WD)(A;;FR;;;AU)", [windows.EVERYONE, windows.AUTHENTICATED]),
        ("D:(A;;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)", []),
        ("D:(A;;FR;;;DU)", [f"group:windows.{DOMAIN}-513"]),
        (f"D:(A;OICIIO;FA;;;{ANNA})(D;OIIO;FA;;;{TEAM})", []),
        (f"D:(A;;FA;;;{ANNA})(D;ID;FR;;;{TEAM})", [A, f"-{T}"]),
        (f"D:(D;;FW;;;{ANNA})(A;;FR;;;{ANNA})", [A]),
        (f'D:(XD;;FR;;;{TEAM};(@User.Title=="a)b" && (1==1)))(A;;FR;;;{ANNA})', [f"-{T}", A]),
        (f'D:(XA;;FR;;;{TEAM};(@User.Title=="x"))', []),
        ("D:", []),
        (f"O:{ANNA}D:PAI", []),
    ],
)
def test_only_what_reads_data_counts_in_a_security_descriptor(sddl: str, wanted: list[str]) -> None:
    assert names(windows.entries_of_sddl(PEOPLE, sddl)) == wanted


@pytest.mark.parametrize(
    "sddl",
    [
        "",
        "O:BAG:DU",
        "D:NO_ACCESS_CONTROL",
        f"D:(A;;FA;;;{ANNA}",
        f"D:(A;;FA;;;{ANNA})(Q;;FA;;;{TEAM})",
        f"D:(A;;FA;;;{ANNA})rest",
        f"D:(A;;ZZ;;;{ANNA})",
        f"D:(A;;0xzz;;;{ANNA})",
        "D:(A;;FA)",
        f"D:(A;I;FA;;;{ANNA})",
        f"S:(AU;SA;FA;;;WD)D:(A;;FA;;;{ANNA})",
    ],
)
def test_a_descriptor_that_cannot_be_read_whole_is_unreadable(sddl: str) -> None:
    assert windows.entries_of_sddl(PEOPLE, sddl) is None


@pytest.mark.parametrize("order", [1, -1])
def test_a_deny_wins_wherever_it_stands(connection: sa.Connection, world: World, order: int) -> None:
    aces = [f"(A;;FA;;;{ANNA})", f"(D;ID;FR;;;{TEAM})"][::order]
    groups = [GroupMembers(group=windows.group_of(TEAM), members=(A,))]
    mirror(connection, windows.entries_of_sddl(PEOPLE, "D:" + "".join(aces)), groups)
    assert sees(connection, world, A) == set()
    mirror(connection, windows.entries_of_sddl(PEOPLE, "D:" + aces[::order][0]), groups)
    assert sees(connection, world, A) == {"o"}


@pytest.mark.parametrize("sid", [f"{DOMAIN}-7777", "NU", "BA", "OW"])
def test_a_deny_for_an_unknown_account_closes_the_file(connection: sa.Connection, world: World, sid: str) -> None:
    warning = mirror(connection, windows.entries_of_sddl(PEOPLE, f"D:(D;;FR;;;{sid})(A;;FA;;;{ANNA})"))
    assert "unreadable" in str(warning)
    assert sees(connection, world, A) == set()


def test_an_allow_for_an_unknown_account_is_left_out_alone(connection: sa.Connection, world: World) -> None:
    warning = mirror(connection, windows.entries_of_sddl(PEOPLE, f"D:(A;;FR;;;{DOMAIN}-7777)(A;;FA;;;{ANNA})"))
    assert "left out the allow" in str(warning)
    assert sees(connection, world, A) == {"o"}


@pytest.mark.parametrize(
    ("aces", "wanted"),
    [
        (["KANZLEI\\anna:(I)(RX)", "Jeder:(DENY)(R)"], [A, f"-{windows.EVERYONE}"]),
        (["KANZLEI\\Team (Berlin):(OI)(CI)(M)", "NT-AUTORITÄT\\SYSTEM:(F)"], [T]),
        (["KANZLEI\\anna:(OI)(CI)(IO)(F)", "KANZLEI\\anna:(W,Rc)"], []),
        (["KANZLEI\\anna:(N)"], [f"-{A}"]),
        ([f"{ANNA}:(RD,WD)"], [A]),
    ],
)
def test_lines_of_icacls_mean_the_same(aces: list[str], wanted: list[str]) -> None:
    assert names(windows.entries_of_icacls(PEOPLE, aces)) == wanted


@pytest.mark.parametrize("ace", ["KANZLEI\\anna", "KANZLEI\\anna:(R", "KANZLEI\\anna:(I)", "KANZLEI\\anna:(Q)", ""])
def test_a_line_of_icacls_that_is_none_makes_the_list_unreadable(ace: str) -> None:
    assert windows.entries_of_icacls(PEOPLE, ["Jeder:(F)", ace]) is None


def test_everybody_of_windows_is_who_the_directory_lists() -> None:
    everyone, signed_in = windows.everyone(PEOPLE)
    assert (everyone.group, len(everyone.members)) == (windows.EVERYONE, 3)
    assert (signed_in.group, len(signed_in.members)) == (windows.AUTHENTICATED, 2)
    assert "user:gast@kanzlei.example" not in signed_in.members


def test_no_entry_that_is_not_understood_names_anybody() -> None:
    made = google_drive.entries(HOUSE, [shared_with("anyone"), shared_with("x"), {"type": "user"}])
    assert len(made) == 3
    assert [normalise(one.principal) for one in made] == [None, None, None]
