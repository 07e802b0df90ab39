"""Answer what administrators ask about others' access: why somebody sees a document or not, and who does. Audited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from shared.access.administrators import require_administrator
from shared.access.audit import ALLOWED, NOT_VISIBLE, AuditEntry, insertion
from shared.access.caller import Caller
from shared.access.chains import Chain, Link
from shared.access.explain import DecidingRow, Explanation, Observation, VersionExplanation, explain_whole
from shared.access.principals import from_claims, normalise, normalise_all
from shared.access.requests import ExplainRequest, WhoRequest
from shared.access.who import Beholder, who_sees
from shared.errors import InvalidRequestError, NotVisibleError
from shared.settings import Identity, Security
from shared.types import DocumentId, Principal


class AccessInquiries:
    """Explains access to administrators. Each answer is of one snapshot and leaves one audit row. Safe to share."""

    def __init__(self, engine: sa.Engine, security: Security, identity: Identity) -> None:
        self._engine = engine
        self._mode = security.source_acl_mode
        self._identity = identity

    def explain(self, caller: Caller, request: ExplainRequest, *, correlation_id: str | None = None) -> dict[str, Any]:
        """Return the body of POST /access/explain. Raises `NotVisibleError` for an unknown document."""
        own = self._principals(request)
        document_id = DocumentId(request.document_id)
        with one_snapshot(self._engine) as connection:
            administrator = require_administrator(connection, caller)
            found = explain_whole(connection, own, self._mode, document_id)
            detail = {"document_id": str(document_id), "about": sorted(own), "versions": len(found.versions)}
            entry = _entry(
                "access.explain", caller, administrator, detail, correlation_id, is_found=bool(found.versions)
            )
            connection.execute(insertion(entry))
        if not found.versions:
            raise NotVisibleError("there is no such document")
        return {"document_id": document_id, "mode": self._mode, **explanation_answer(own, found)}

    def who(self, caller: Caller, request: WhoRequest, *, correlation_id: str | None = None) -> dict[str, Any]:
        """Return the body of POST /access/who. Raises `NotVisibleError` for an unknown document."""
        document_id = DocumentId(request.document_id)
        groups = normalise_all(f"group:{name}" for name in self._identity.admin_groups)
        with one_snapshot(self._engine) as connection:
            administrator = require_administrator(connection, caller)
            found = who_sees(
                connection,
                document_id,
                mode=self._mode,
                admin_groups=groups,
                limit=request.entries,
                offset=request.offset,
            )
            is_found = found.total > 0
            detail = {"document_id": str(document_id), "offset": request.offset, "principals": len(found.listed)}
            entry = _entry("access.who", caller, administrator, detail, correlation_id, is_found=is_found)
            connection.execute(insertion(entry))
        if not is_found:
            raise NotVisibleError("there is no such document")
        end = request.offset + len(found.listed)
        return {
            "document_id": document_id,
            "mode": self._mode,
            "principals": [_beholder(one) for one in found.listed],
            "page": {
                "offset": request.offset,
                "limit": request.entries,
                "returned": len(found.listed),
                "has_more": end < found.total,
                "next_offset": end if end < found.total else None,
                "total": found.total,
            },
        }

    def _principals(self, request: ExplainRequest) -> frozenset[Principal]:
        """Return those that were named, or those that a token of the person would give."""
        if request.principals is not None:
            return frozenset(Principal(name) for name in request.principals)
        if normalise(f"user:{request.subject}") is None:
            raise InvalidRequestError("this names nobody: too long, or no text", field="subject")
        claims: Mapping[str, Any] = {
            "sub": request.subject,
            "email": request.subject if "@" in (request.subject or "") else None,
            "email_verified": True,
            self._identity.groups_claim: list(request.groups),
        }
        found = from_claims(claims, self._identity).principals
        for number, name in enumerate(request.groups):
            if normalise(f"group:{name.strip()}") not in found:
                # Left out, the answer would be about somebody else.
                raise InvalidRequestError("no token can carry this group", field=f"groups.{number}")
        return found


@contextmanager
def one_snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Hand out a connection in one transaction whose statements all see the same state; what it writes is kept."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
        yield connection


def explanation_answer(own: frozenset[Principal], found: Explanation) -> dict[str, Any]:
    """Return an explanation as answers spell it."""
    return {
        "principals": sorted(own),
        "expanded": sorted(found.viewer.principals),
        "administrator": found.viewer.is_administrator,
        "visible": found.is_visible,
        "versions": [_version(one) for one in found.versions],
    }


def _version(one: VersionExplanation) -> dict[str, Any]:
    # An administrator skips the rule: the rows are still told, and decide nothing.
    return {
        "version_id": one.version_id,
        "visible": one.is_visible,
        "line": one.line,
        "reasons": one.reasons,
        "rule": {
            "allowed": {"holds": bool(one.allowed_by), "rows": [_row(row) for row in one.allowed_by]},
            "open_at_a_source": {"holds": bool(one.open_by), "rows": [_row(row) for row in one.open_by]},
            "not_denied": {"holds": not one.denied_by, "rows": [_row(row) for row in one.denied_by]},
        },
        "observations": [_observation(place) for place in one.observations],
    }


def _row(row: DecidingRow) -> dict[str, Any]:
    return {
        "place": row.place,
        "target_id": row.target_id or row.source_object_id,
        "name": row.name,
        "effect": row.effect,
        "principal": row.principal,
        "chain": None if row.chain is None else _chain(row.chain),
        "granted_by": row.granted_by,
        "granted_at": row.granted_at,
        "reason": row.reason,
        "source": row.source,
        "rights_as_of": row.as_of,
    }


def _chain(chain: Chain) -> list[dict[str, Any]]:
    return [{"principal": chain.start, "via": "own"}, *map(_link, chain.links)]


def _link(link: Link) -> dict[str, Any]:
    said = {
        "source": link.source,
        "rights_as_of": link.as_of,
        "granted_by": link.granted_by,
        "reason": link.reason,
    }
    return {
        "principal": link.principal,
        "via": link.via,
        **{name: value for name, value in said.items() if value is not None},
    }


def _observation(place: Observation) -> dict[str, Any]:
    return {
        "source_object_id": place.source_object_id,
        "path": place.path,
        "source": place.source,
        "source_kind": place.source_kind,
        "acl_state": place.acl_state,
        "rights_as_of": place.as_of,
        "warning": place.warning,
        "grants": place.grants,
        "active": place.is_active,
        "citable": place.is_citable,
    }


def _beholder(one: Beholder) -> dict[str, Any]:
    return {
        "principal": one.principal,
        "members": one.members,
        "visible": one.explanation.is_visible,
        "line": one.explanation.line,
        "versions": [
            {"version_id": version.version_id, "visible": version.is_visible, "line": version.line}
            for version in one.explanation.versions
        ],
    }


def _entry(
    action: str,
    caller: Caller,
    principals: frozenset[Principal],
    detail: Mapping[str, Any],
    correlation_id: str | None,
    *,
    is_found: bool,
) -> AuditEntry:
    return AuditEntry(
        action=action,
        subject=caller.subject,
        principals=principals,
        outcome=ALLOWED if is_found else NOT_VISIBLE,
        detail=detail,
        correlation_id=correlation_id,
    )
