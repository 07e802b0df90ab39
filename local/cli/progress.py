"""Progress bars on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from local.cli.output import harmless
from shared.ingest.service import Progress as IngestProgress


@contextmanager
def ingest_progress(title: str, *, quiet: bool) -> Iterator[Callable[[IngestProgress], None] | None]:
    """Give a callback that moves a bar; None when `quiet`."""
    if quiet:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[last]}", markup=False), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, last="")

        def move(progress: IngestProgress) -> None:
            last = harmless(progress.last.path.rpartition("/")[2][-40:]) if progress.last else ""
            bar.update(task, completed=progress.done, total=progress.total, last=last)

        yield move


@contextmanager
def counting_progress(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback that moves a bar to so many of so many; None when `quiet`."""
    if quiet:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
