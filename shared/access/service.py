"""Compile scopes fast and never stale: keep them, patch them by the change log, check before use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import sqlalchemy as sa
from pyroaring import FrozenBitMap

from shared.access import kept as keeping
from shared.access.caller import Caller
from shared.access.compilation import Patch, Probe, compile_anew, find_patch, probe
from shared.access.kept import KeptScope, ProcessScopes
from shared.access.predicate import Viewer
from shared.access.scope import CompiledAccessScope, serialise
from shared.settings import Security
from shared.types import ProjectId

_FEW_DOCUMENTS = 20_000
# The table's copy is renewed after so many patches, so that another process has little to patch.
_PATCHES_BEFORE_REWRITE = 20


class AccessService:
    """Says what a caller may see. One for each process; safe to share between threads."""

    def __init__(self, engine: sa.Engine, settings: Security) -> None:
        self._engine = engine
        self._settings = settings
        self._process = ProcessScopes(settings.keep_scopes_in_process)

    def compile_scope(
        self, connection: sa.Connection, caller: Caller, *, project_ids: Collection[ProjectId] | None = None
    ) -> CompiledAccessScope:
        """Return exactly what the caller may see now, within `project_ids` if given.

        One statement when nothing has changed since the last time, else two (three only when the log was pruned
        between the two). Hand the scope to `keep` once the answer is out. A project that the caller cannot see
        gives an empty scope.
        """
        guess = self._process.guess(caller.principals)
        limit = self._settings.scope_delta_limit
        found = probe(
            connection,
            caller.principals,
            self._settings.source_acl_mode,
            guess=guess,
            from_table=self._settings.keep_scopes_in_database,
            project_ids=project_ids,
            limit=limit,
            wide_limit=max(limit, _FEW_DOCUMENTS if guess is None else guess.scope.size),
        )
        current, pending = self._current(connection, found, guess)
        if isinstance(current, KeptScope):
            self._process.put(caller.principals, current)
            scope = replace(current.scope, snapshot=current.snapshot, pending=pending)
        else:
            scope = current
        if found.narrowing is None or project_ids is None:
            return scope
        return self._narrowed(scope, found.narrowing, project_ids)

    def keep(self, scope: CompiledAccessScope) -> None:
        """Write the scope to the table if that is worth while; call it after the answer."""
        if isinstance(scope.pending, KeptScope):
            with self._engine.begin() as connection:
                connection.execute(keeping.upsert(scope.pending))

    def forget(self) -> None:
        """Drop what this process keeps. Never needed for correctness."""
        self._process.forget()

    def _current(
        self, connection: sa.Connection, found: Probe, guess: KeptScope | None
    ) -> tuple[KeptScope | CompiledAccessScope, KeptScope | None]:
        """Return the whole scope as of now, kept if it may be kept, and what the table should get."""
        viewer = Viewer(found.principals, self._settings.source_acl_mode)
        may_keep = found.is_clean and found.epoch is not None
        before = self._usable(found, guess, viewer)
        if before is not None and not found.unseen:
            # Nothing relevant happened in between, so it is true for the new snapshot as well.
            return (
                replace(before, snapshot=found.snapshot) if may_keep else replace(before.scope, snapshot=None)
            ), None
        if before is not None and self._is_worth_patching(found, before):
            limit = 2 * self._settings.scope_delta_limit + 1
            patch = find_patch(connection, viewer, epoch=before.epoch, snapshot=before.snapshot, limit=limit)
            if patch is not None:
                return self._patched(
                    before, patch, viewer, may_keep=may_keep, from_table=found.kept_visible is not None
                )
        snapshot, visible = compile_anew(connection, viewer)
        scope = self._whole(viewer, visible, snapshot if may_keep else None)
        if not may_keep or found.epoch is None:
            return scope, None
        compiled = KeptScope(found.key, found.epoch, snapshot, scope)
        return compiled, self._for_table(compiled)

    def _usable(self, found: Probe, guess: KeptScope | None, viewer: Viewer) -> KeptScope | None:
        if found.kept_snapshot is None or found.epoch is None:
            return None
        if found.kept_visible is None:
            return guess
        try:
            visible = FrozenBitMap.deserialize(found.kept_visible)
        except ValueError:  # a damaged row costs time only
            return None
        scope = self._whole(viewer, visible, found.kept_snapshot)
        return KeptScope(found.key, found.epoch, found.kept_snapshot, scope)

    def _is_worth_patching(self, found: Probe, before: KeptScope) -> bool:
        limit = self._settings.scope_delta_limit
        return not found.is_everything and found.unseen <= limit and found.wide <= max(limit, before.scope.size)

    def _patched(
        self, before: KeptScope, patch: Patch, viewer: Viewer, *, may_keep: bool, from_table: bool
    ) -> tuple[KeptScope | CompiledAccessScope, KeptScope | None]:
        visible = (before.scope.visible - patch.affected) | patch.visible
        scope = self._whole(viewer, visible, patch.snapshot if may_keep else None)
        if not may_keep:
            return scope, None
        patches = before.patches + 1
        after = KeptScope(before.key, before.epoch, patch.snapshot, scope, patches)
        if not from_table and patches < _PATCHES_BEFORE_REWRITE:
            return after, None
        fresh = replace(after, patches=0)
        return fresh, self._for_table(fresh)

    def _for_table(self, kept: KeptScope) -> KeptScope | None:
        return kept if self._settings.keep_scopes_in_database else None

    def _whole(self, viewer: Viewer, visible: FrozenBitMap, snapshot: str | None) -> CompiledAccessScope:
        return CompiledAccessScope.of(
            viewer,
            visible,
            serialise(visible),
            narrowed_to=None,
            snapshot=snapshot,
            bitmap_threshold=self._settings.scope_bitmap_threshold,
        )

    def _narrowed(
        self, scope: CompiledAccessScope, narrowing: FrozenBitMap, project_ids: Collection[ProjectId]
    ) -> CompiledAccessScope:
        visible = scope.visible & narrowing
        return CompiledAccessScope.of(
            scope.viewer,
            visible,
            serialise(visible),
            narrowed_to=project_ids,
            snapshot=scope.snapshot,
            bitmap_threshold=scope.bitmap_threshold,
            pending=scope.pending,
        )
