"""`ki demo`: the whole product in one go, on the invented firm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from local import stack
from local.cli.explain import one_line
from local.cli.ingest_report import as_text as report_text
from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import ingest_progress
from local.cli.results import as_text, marked
from local.firm_setup import register_people, take_in
from local.paths import Layout
from local.product import running_services
from local.samples.build import build
from local.samples.firm import Expectations, Firm, load_expectations, load_firm
from local.sign_in import SignedIn, sign_in
from shared.ingest.report import IngestReport
from shared.ingest.service import Progress
from shared.runtime.bootstrap import Services

_SHOWN = 3
_SHOWN_QUERY = "kaufpreis"


@click.command("demo")
@json_option
@reporting
def command(*, as_json: bool) -> ExitCode:
    """Start the stack, take the invented firm's files in, and search as two colleagues on two sides of a wall."""
    stack.up(report=note)
    services, firm, expectations = running_services(), load_firm(), load_expectations()
    register_people(firm)
    reports = _take_in(services, firm, quiet=as_json)
    broken = _broken_claims(expectations)
    document, text = _shown_search(services, firm, expectations)
    document |= {"queries": len(expectations.queries), "broken_expectations": broken}
    claims = f"All {len(expectations.queries)} sample searches show each colleague what they must and must not see."
    emit(document, as_json=as_json, text="\n".join([*_tables(firm, reports), text, "", *(broken or [claims])]))
    return ExitCode.NO if broken else ExitCode.DONE


def _take_in(services: Services, firm: Firm, *, quiet: bool) -> list[IngestReport]:
    folder = Layout.of().state / "samples"
    build(folder)
    bars: list[Any] = []

    def progress_of(name: str) -> Callable[[Progress], None] | None:
        _close(bars)
        bars.append(ingest_progress(name, quiet=quiet))
        moved: Callable[[Progress], None] | None = bars[-1].__enter__()
        return moved

    try:
        return take_in(services, firm, folder, progress_of=progress_of)
    finally:
        _close(bars)


def _close(bars: list[Any]) -> None:
    while bars:
        bars.pop().__exit__(None, None, None)


def _tables(firm: Firm, reports: list[IngestReport]) -> list[str]:
    named = zip((source.name for source in firm.sources), reports, strict=True)
    return [report_text(report, source=name) + "\n" for name, report in named]


def _broken_claims(expectations: Expectations) -> list[str]:
    broken = []
    for query in expectations.queries:
        for email, expected in query.expect.items():
            answer = sign_in(email).post("/search", {"query": query.query, "limit": query.limit})
            cited = [_files(result) for result in answer["results"]]
            broken += [f"{query.id}, {email}: {failure}" for failure in expected.failures(cited)]
    return broken


def _shown_search(services: Services, firm: Firm, expectations: Expectations) -> tuple[dict[str, Any], str]:
    query = next(each.query for each in expectations.queries if each.id == _SHOWN_QUERY)
    left, right = (sign_in(email) for email in (firm.personas.left, firm.personas.right))
    answers = {person.email: person.post("/search", {"query": query, "limit": _SHOWN}) for person in (left, right)}
    best = answers[left.email]["results"][0]
    found_again = _found_again(left, best)
    reason = one_line(services, right.email, right.groups, best["document_id"])
    paragraphs = [
        f"--- “{query}” as {email} (groups {', '.join(sign_in(email).groups)})\n\n{as_text(answer, offset=0)}"
        for email, answer in answers.items()
    ]
    closing = (
        f"--- The citation of the first result, looked up in the file: “{found_again}”\n"
        f"--- Why {right.email} does not see {best['title']!r}: {reason}"
    )
    document = {"query": query, "answers": answers, "found_again": found_again, "reason": reason}
    return document, "\n\n".join([*paragraphs, closing])


def _found_again(person: SignedIn, result: Mapping[str, Any]) -> str:
    """Return the passage that the citation points to, read from the document's own text."""
    chunk = result["citation"]["chunks"][0]
    start, end = chunk["char_start"], chunk["char_end"]
    window = urlencode({"version_id": result["version_id"], "offset": start, "max_chars": end - start})
    passage = str(person.get(f"/documents/{quote(result['document_id'])}?{window}")["text"])
    excerpt = result["excerpt"]
    if excerpt not in passage:
        raise AssertionError(f"the excerpt does not stand where its citation says: {excerpt!r}")
    return marked(excerpt, [])


def _files(result: Mapping[str, Any]) -> list[str]:
    return [str(Path(source["source"]) / source["path"]) for source in result["citation"]["sources"]]
