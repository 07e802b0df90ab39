"""The whole product through its command line: engines, ingest, two colleagues, one wall. One stack for the module."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from local import samples, stack
from local.cli.main import main
from local.paths import Layout

SAMPLES = Path(samples.__file__).parent
LEFT, RIGHT, OUTSIDER = "anna@kanzlei.example", "ben@kanzlei.example", "carla@kanzlei.example"


@pytest.fixture(scope="module")
def demo() -> Iterator[dict[str, Any]]:
    """Run `ki demo` on a stack of its own and give its answer; the stack stays up for the module."""
    folder = Path(tempfile.mkdtemp(prefix="ki-demo-"))
    folder.chmod(0o755)
    place = replace(Layout.of(), state=folder / "local", cache=folder / "cache", heap="512m", throwaway=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Layout, "of", classmethod(lambda _cls, *_args: place))
        try:
            ran = run("demo", "--json")
            assert ran.exit_code == 0, ran.output
            yield json.loads(ran.stdout)
        finally:
            stack.down(place)
            shutil.rmtree(folder, ignore_errors=True)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words, catch_exceptions=False)


def answer(*words: str, code: int = 0) -> Any:
    ran = run(*words, "--json")
    assert ran.exit_code == code, ran.output
    return json.loads(ran.stdout)


def test_every_sample_search_shows_each_colleague_what_they_must_and_must_not_see(demo: dict[str, Any]) -> None:
    assert demo["queries"] == 8
    assert demo["broken_expectations"] == []


def test_two_colleagues_see_different_results_and_the_reason_is_the_wall(demo: dict[str, Any]) -> None:
    ids = {email: {result["document_id"] for result in found["results"]} for email, found in demo["answers"].items()}
    assert ids[LEFT]
    assert ids[RIGHT]
    assert not ids[LEFT] & ids[RIGHT]
    assert "denied by project grant for group:team-westerkamp" in demo["reason"]


def test_the_citation_is_found_again_in_the_file(demo: dict[str, Any]) -> None:
    assert "Kaufpreis" in demo["found_again"]


def test_search_filter_get_and_explain_agree(demo: dict[str, Any]) -> None:
    best = demo["answers"][LEFT]["results"][0]["document_id"]
    assert answer("get", best, "--as", LEFT)["document_id"] == best
    assert answer("get", best, "--as", RIGHT, code=1)["error"]["type"] == "NotVisibleError"
    listed = answer("filter", "--as", LEFT, "--limit", "100")
    assert best in {result["document_id"] for result in listed["results"]}
    assert any(one["is_visible"] for one in answer("explain", best, "--as", LEFT))
    assert not any(one["is_visible"] for one in answer("explain", best, "--as", RIGHT, code=1))
    sees = {row["email"]: row["visible"] for row in answer("who", best)["people"]}
    assert sees[LEFT]
    assert not sees[RIGHT]
    assert not sees[OUTSIDER]


def test_text_for_people_names_file_and_place(demo: dict[str, Any]) -> None:
    assert demo
    shown = run("search", "12 O 345/21", "--as", OUTSIDER, "--limit", "3")
    assert shown.exit_code == 0
    assert "12" in shown.stdout
    assert "30003_Hafenkontor_Mietstreit/" in shown.stdout
    assert "characters" in shown.stdout
    assert run("search", "Gehaltsrunde", "--as", "nobody@kanzlei.example").exit_code == 1


def test_what_could_not_be_read_is_listed_with_its_reason_and_stays_so_when_retried(demo: dict[str, Any]) -> None:
    assert demo
    listed = answer("quarantine", "list")
    assert {row["error"] for row in listed} == {"UnsupportedFileError", "UnreadableFileError"}
    assert all(row["reason"] for row in listed)


def test_a_grant_opens_a_project_at_the_next_search_and_lifting_it_closes_it(demo: dict[str, Any]) -> None:
    assert demo
    query = ("search", "underpayment of royalties", "--as", "eva@kanzlei.example")
    answer(*query, code=1)
    answer("grant", "helix", "user:eva@kanzlei.example", "--reason", "joins the team")
    assert answer(*query)["results"]
    answer("grant", "helix", "user:eva@kanzlei.example", "--lift", "--reason", "leaves the team")
    answer(*query, code=1)


def test_nothing_leaves_from_behind_a_wall_of_the_firm(demo: dict[str, Any], tmp_path: Path) -> None:
    assert demo
    plan = json.loads((SAMPLES / "leakcheck.json").read_text(encoding="utf-8"))
    # One wall and two people of the sample: the whole plan takes a minute.
    plan["walls"] = [wall for wall in plan["walls"] if wall["name"] == "Helix"]
    for part in ("personas", "controls"):
        plan[part] = {name: one for name, one in plan[part].items() if name in {"carla", "admin"}}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    report = answer("leakcheck", str(file))
    assert report["is_clean"]
    assert report["requests"] > 50


def test_the_audit_trail_is_sealed_verified_and_exported(demo: dict[str, Any], tmp_path: Path) -> None:
    assert demo
    assert answer("audit", "seal")
    found = answer("audit", "verify")
    assert (found["is_whole"], found["seals"] > 0, found["events"] > 0) == (True, True, True)
    answer("audit", "verify", "--anchor", found["last_digest"])
    answer("audit", "verify", "--anchor", "0" * 64, code=1)
    file = tmp_path / "audit.jsonl"
    written = answer("audit", "export", str(file))["events"]
    assert written == len(file.read_text(encoding="utf-8").splitlines()) >= found["events"]
    answer("audit", "export", str(file), code=2)
    assert answer("audit", "drop", "--keep-months", "1", "--reason", "house rule") == []


def test_a_second_folder_comes_in_and_accounts_for_every_file(demo: dict[str, Any], tmp_path: Path) -> None:
    assert demo
    (tmp_path / "Vermerk.txt").write_text("Vermerk zum Aktenzeichen 7 U 12/23: Verjährung droht.", encoding="utf-8")
    (tmp_path / "leer.txt").write_bytes(b"")
    report = answer("ingest", str(tmp_path), "--source", "zweite", "--project", "zweites", code=1)
    assert report["counts"]["new"] == 1
    assert report["counts"]["quarantined"] == 1
    answer("grant", "zweites", f"user:{OUTSIDER}", "--reason", "her case")
    (found, *_) = answer("search", "7 U 12/23", "--as", OUTSIDER)["results"]
    assert [source["path"] for source in found["citation"]["sources"]] == ["Vermerk.txt"]
    again = answer("ingest", str(tmp_path), "--source", "zweite", code=1)
    assert again["counts"]["unchanged"] == 1
