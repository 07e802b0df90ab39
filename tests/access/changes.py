"""Random changes to everything the rule reads, as plain SQL: what people, sources and operators do to the tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

import sqlalchemy as sa

NAMES = ("user:anna", "user:ben", "username:anna", "group:a", "group:b", "group:c", "role:authenticated")
GRANTS = {"project_grants": "projects", "document_grants": "documents", "source_object_grants": "source_objects"}
Change = Callable[[sa.Connection, random.Random], None]

_SEED = """
insert into projects (id, key, title) select :id, 'p' || :id, 'p' from generate_series(1, 3);
insert into sources (id, name, kind) select :id, 's' || :id, k from unnest('{local_fs,local_fs,external}'::text[]) k;
insert into documents (id, project_id, title)
  select :id, (select id from projects where n > 0 order by random() limit 1), 'd' from generate_series(1, 7) n;
insert into document_versions (id, document_id, sha256, title, mime, size_bytes)
  select :id, (select id from documents where n > 0 order by random() limit 1), :id, 'v', 'text/plain', 1
  from generate_series(1, 12) n;
insert into source_objects (id, source_id, external_id, path, name, acl_state)
  select :id, (select id from sources where n > 0 order by random() limit 1), :id, 'o', 'o',
         (array['known', 'unknown'])[1 + n % 2]
  from generate_series(1, 14) n;
insert into version_sources (version_id, source_object_id)
  select (select id from document_versions where o.path = 'o' order by random() limit 1), o.id from source_objects o
  on conflict do nothing;
insert into project_grants (project_id, principal, effect)
  select id, n, 'allow' from projects, unnest(cast(:names as text[])) n where random() < 0.4 on conflict do nothing;
insert into document_grants (document_id, principal, effect)
  select id, n, (array['allow', 'allow', 'deny'])[1 + floor(random() * 3)::int]
  from documents, unnest(cast(:names as text[])) n where random() < 0.2 on conflict do nothing;
insert into source_object_grants (source_object_id, principal, effect)
  select id, n, (array['allow', 'allow', 'allow', 'deny'])[1 + floor(random() * 4)::int]
  from source_objects, unnest(cast(:names as text[])) n
  where acl_state = 'known' and random() < 0.25 on conflict do nothing
"""


def seed(connection: sa.Connection, rng: random.Random) -> None:
    """Add a small firm: 3 projects, 7 documents, 12 versions, 14 objects, and grants."""
    # Ids that follow from the seed, so that a walk can be repeated; PostgreSQL's own cannot be seeded.
    for statement in _SEED.replace(":id", "md5(random()::text)::uuid").split(";"):
        text = sa.text(statement)
        connection.execute(text, {"names": list(NAMES)} if ":names" in statement else {})


def _run(connection: sa.Connection, statement: str, **values: Any) -> None:
    connection.execute(sa.text(statement), values)


def _one(rng: random.Random, connection: sa.Connection, table: str, condition: str = "true") -> Any:
    """The id of a random row, chosen by `rng` so that a run can be repeated."""
    ids = connection.scalars(sa.text(f"select id from {table} where {condition} order by created_at, id")).all()
    return rng.choice(ids) if ids else None


def add_grant(connection: sa.Connection, rng: random.Random) -> None:
    table, parent = rng.choice(sorted(GRANTS.items()))
    target = _one(rng, connection, parent, "acl_state = 'known'" if parent == "source_objects" else "true")
    if target is not None:
        effect = rng.choice(["allow", "allow", "deny"])
        statement = f"insert into {table} values (:t, :p, :e) on conflict do nothing"
        _run(connection, statement, t=target, p=rng.choice(NAMES), e=effect)


def remove_grants(connection: sa.Connection, rng: random.Random) -> None:
    table = rng.choice(sorted(GRANTS))
    _run(connection, f"delete from {table} where principal = :p and random() < 0.5", p=rng.choice(NAMES))


def change_grants(connection: sa.Connection, rng: random.Random) -> None:
    table = rng.choice(sorted(GRANTS))
    key = f"{GRANTS[table].removesuffix('s')}_id"
    turned = "case effect when 'allow' then 'deny' else 'allow' end"
    _run(
        connection,
        f"update {table} g set effect = {turned} where principal = :p and random() < 0.5 and not exists"
        f" (select from {table} h where h.{key} = g.{key} and h.principal = g.principal and h.effect <> g.effect)",
        p=rng.choice(NAMES),
    )


def repeat_grants(connection: sa.Connection, rng: random.Random) -> None:
    table = rng.choice(sorted(GRANTS))
    _run(connection, f"update {table} set reason = 'again' where principal = :p", p=rng.choice(NAMES))


def move_document(connection: sa.Connection, rng: random.Random) -> None:
    project = rng.choice([_one(rng, connection, "projects"), None])
    _run(
        connection,
        "update documents set project_id = :p where id = :d",
        p=project,
        d=_one(rng, connection, "documents"),
    )


def move_version(connection: sa.Connection, rng: random.Random) -> None:
    version, document = _one(rng, connection, "document_versions"), _one(rng, connection, "documents")
    if document is not None:
        _run(connection, "update document_versions set document_id = :d where id = :v", d=document, v=version)


def renumber_version(connection: sa.Connection, rng: random.Random) -> None:
    version = _one(rng, connection, "document_versions")
    _run(connection, "update document_versions set seq = default where id = :v", v=version)


def delete_version(connection: sa.Connection, rng: random.Random) -> None:
    _run(connection, "delete from document_versions where id = :v", v=_one(rng, connection, "document_versions"))


def delete_document(connection: sa.Connection, rng: random.Random) -> None:
    _run(connection, "delete from documents where id = :d", d=_one(rng, connection, "documents"))


def delete_project(connection: sa.Connection, rng: random.Random) -> None:
    _run(connection, "delete from projects where id = :p", p=_one(rng, connection, "projects"))


def observe(connection: sa.Connection, rng: random.Random) -> None:
    version, seen_at = _one(rng, connection, "document_versions"), _one(rng, connection, "source_objects")
    if version is not None and seen_at is not None:
        _run(connection, "insert into version_sources values (:v, :o) on conflict do nothing", v=version, o=seen_at)


def forget_observation(connection: sa.Connection, rng: random.Random) -> None:
    seen_at = _one(rng, connection, "source_objects")
    _run(connection, "delete from version_sources where source_object_id = :o", o=seen_at)


def move_observation(connection: sa.Connection, rng: random.Random) -> None:
    version, seen_at = _one(rng, connection, "document_versions"), _one(rng, connection, "source_objects")
    _run(
        connection,
        "update version_sources set version_id = :v where source_object_id = :o and not exists"
        " (select from version_sources where version_id = :v and source_object_id = :o) and version_id = "
        " (select min(version_id::text)::uuid from version_sources where source_object_id = :o)",
        v=version,
        o=seen_at,
    )


def bury_or_raise(connection: sa.Connection, rng: random.Random) -> None:
    seen_at = _one(rng, connection, "source_objects")
    change = "case when deleted_at is null then now() end"
    _run(connection, f"update source_objects set deleted_at = {change} where id = :o", o=seen_at)


def toggle_acl(connection: sa.Connection, rng: random.Random) -> None:
    seen_at = _one(rng, connection, "source_objects")
    if seen_at is None:
        return
    if rng.random() < 0.5:
        _run(connection, "delete from source_object_grants where source_object_id = :o", o=seen_at)
    bare = "not exists (select from source_object_grants where source_object_id = :o)"
    change = "case acl_state when 'known' then 'unknown' else 'known' end"
    _run(connection, f"update source_objects set acl_state = {change} where id = :o and {bare}", o=seen_at)


def move_object(connection: sa.Connection, rng: random.Random) -> None:
    seen_at, source = _one(rng, connection, "source_objects"), _one(rng, connection, "sources")
    if source is not None:
        _run(connection, "update source_objects set source_id = :s where id = :o", s=source, o=seen_at)


def delete_object(connection: sa.Connection, rng: random.Random) -> None:
    _run(connection, "delete from source_objects where id = :o", o=_one(rng, connection, "source_objects"))


def change_source(connection: sa.Connection, rng: random.Random) -> None:
    change = "case kind when 'local_fs' then 'external' else 'local_fs' end"
    _run(connection, f"update sources set kind = {change} where id = :s", s=_one(rng, connection, "sources"))


def delete_source(connection: sa.Connection, rng: random.Random) -> None:
    _run(connection, "delete from sources where id = :s", s=_one(rng, connection, "sources"))


def change_membership(connection: sa.Connection, rng: random.Random) -> None:
    source = _one(rng, connection, "sources")
    if source is None or rng.random() < 0.4:
        _run(connection, "delete from source_group_members where random() < 0.5")
        return
    group, member = rng.choice(["group:a", "group:b", "group:c"]), rng.choice(NAMES[:6])
    statement = "insert into source_group_members values (:s, :g, :m) on conflict do nothing"
    _run(connection, statement, s=source, g=group, m=member)


def change_alias(connection: sa.Connection, rng: random.Random) -> None:
    if rng.random() < 0.5:
        _run(connection, "delete from principal_aliases")
        return
    one, other = rng.sample(NAMES, 2)
    _run(connection, "insert into principal_aliases values (:a, :b) on conflict do nothing", a=one, b=other)


def truncating(table: str) -> Change:
    def truncate(connection: sa.Connection, _rng: random.Random) -> None:
        _run(connection, f"truncate {table} cascade")

    truncate.__name__ = f"truncate_{table}"
    return truncate


_TRUNCATED = ("project_grants", "document_grants", "source_object_grants", "version_sources", "scope_log")
TRUNCATE: Mapping[str, Change] = {table: truncating(table) for table in (*_TRUNCATED, "documents", "source_objects")}


WEIGHTS: Mapping[Change, float] = {
    add_grant: 8,
    remove_grants: 5,
    change_grants: 6,
    repeat_grants: 1,
    move_document: 4,
    move_version: 3,
    renumber_version: 1.5,
    delete_version: 1.5,
    delete_document: 0.7,
    delete_project: 0.7,
    observe: 3,
    forget_observation: 2,
    move_observation: 3,
    bury_or_raise: 3,
    toggle_acl: 3,
    move_object: 3,
    delete_object: 0.7,
    change_source: 1.5,
    delete_source: 0.8,
    change_membership: 2,
    change_alias: 1,
    **dict.fromkeys(TRUNCATE.values(), 0.15),
}


def pick(rng: random.Random, favoured: Collection[Change] = ()) -> Change:
    """A random change; a favoured one every second time."""
    if favoured and rng.random() < 0.5:
        return rng.choice(list(favoured))
    return rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
