"""What sources report about rights: the ACLs of objects, and the members of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.access.principals import SYNC
from shared.access.snapshots import AclSnapshot, MembershipSnapshot
from shared.runtime.handler import Answer, SignedIn, needs_role, respond

if TYPE_CHECKING:
    from shared.runtime.executions import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> Answer:
    """Answer one event of API Gateway, or one that tells of files in the bucket of uploads."""
    if "routeKey" not in event:
        # What a route does not need is not imported for it.
        from shared.runtime.executions import apply_acls  # noqa: PLC0415

        return apply_acls(event, context)
    return respond(
        event,
        context,
        {
            "PUT /sources/{source_id}/acl": needs_role(SYNC, _acl),
            "PUT /sources/{source_id}/memberships": needs_role(SYNC, _memberships),
        },
    )


def _acl(request: SignedIn) -> object:
    return request.services.access_sync.acls(
        request.caller,
        request.event.path["source_id"],
        AclSnapshot.model_validate(request.event.json()),
        correlation_id=request.event.correlation_id,
    )


def _memberships(request: SignedIn) -> object:
    return request.services.access_sync.memberships(
        request.caller,
        request.event.path["source_id"],
        MembershipSnapshot.model_validate(request.event.json()),
        correlation_id=request.event.correlation_id,
    )
