"""The tree of types: what it says of documents and clauses, and what a firm's own tree must not get wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.errors import MisconfiguredError
from shared.ontology.tree import BUILT_IN, load_ontology

TREE = load_ontology(None)


def own_tree(tmp_path: Path, **changes: object) -> str:
    body = {
        "name": "Kanzlei",
        "version": "7",
        "doc_types": [
            {"id": "vertrag.miete", "parent": "vertrag", "labels": {"de": "Miete", "en": "Lease"}, "words": ["=lease"]},
            {"id": "vertrag", "labels": {"de": "Vertrag", "en": "Contract"}, "clauses": True},
        ],
        "clause_types": [{"id": "frist", "labels": {"de": "Frist", "en": "Period"}, "words": ["frist"]}],
        **changes,
    }
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return str(path)


def test_a_types_closure_begins_with_itself_and_ends_at_the_root() -> None:
    assert TREE.doc_type_closure("contract.purchase.shares") == (
        "contract.purchase.shares",
        "contract.purchase",
        "contract",
    )
    assert TREE.doc_type_closure(None) == ()


def test_a_clause_type_stands_for_all_below_it_and_an_unknown_one_for_itself() -> None:
    assert TREE.clause_subtree("term.termination") == ("term.termination", "term.termination.for_cause")
    assert TREE.clause_subtree("of_an_older_tree") == ("of_an_older_tree",)


def test_a_type_is_called_in_the_language_of_its_document() -> None:
    assert TREE.doc_type_label("contract.lease", "de") == "Mietvertrag"
    assert TREE.doc_type_label("contract.lease", "en") == "Lease"
    assert TREE.doc_type_label("contract.lease", "und") == "Lease"
    assert TREE.doc_type_label("kept.letter_of_comfort", "de") == "Letter of comfort"
    assert TREE.doc_type_label(None, "de") is None


@pytest.mark.parametrize(
    ("name", "doc_type"),
    [
        ("Nachtrag Nr. 2 zum Gewerbemietvertrag", "contract.amendment"),
        ("Kauf- und Abtretungsvertrag über Geschäftsanteile", "contract.purchase.shares"),
        ("Aufhebungsvertrag", "contract.employment.termination"),
        ("Rechtsgutachten", "report.legal_opinion"),
        ("Statement of Defense", "pleading.defence"),
        ("Settlement Agreement", "contract.settlement"),
        ("Prozessvollmacht", "power_of_attorney"),
        ("Ku\u0308ndigungsschreiben", "correspondence.declaration"),
        ("Anlage K 3", "exhibit"),
        ("Vergleichswert", None),
        ("Actuator", None),
    ],
)
def test_a_name_has_the_type_of_the_first_rule_that_knows_it(name: str, doc_type: str | None) -> None:
    assert TREE.doc_type_of(mime="text/plain", names=[name]) == doc_type


def test_a_mail_is_a_mail_whatever_it_is_about() -> None:
    assert TREE.doc_type_of(mime="message/rfc822", names=["Kaufvertrag"]) == "correspondence.mail"
    assert TREE.doc_type_of(mime="application/vnd.ms-outlook", names=["Urteil"]) == "correspondence.mail"


@pytest.mark.parametrize(
    ("heading", "text", "clause_type"),
    [
        ("Haftungsbegrenzung", "", "liability.limitation"),
        ("Limitation of Liability", "", "liability.limitation"),
        ("Haftung", "", "liability"),
        ("Kündigung aus wichtigem Grund", "", "term.termination.for_cause"),
        (
            "Sonderregelung",
            "Dieser Vertrag unterliegt dem Recht der Bundesrepublik Deutschland.",
            "dispute.governing_law",
        ),
        ("Präambel", "Die Parteien kennen sich seit Jahren.", None),
    ],
)
def test_a_clause_has_the_type_of_its_heading_or_of_a_telling_phrase(heading: str, text: str, clause_type) -> None:
    assert TREE.clause_type_of(heading=heading, text=text) == clause_type


def test_a_firm_brings_its_own_tree(tmp_path: Path) -> None:
    own = load_ontology(own_tree(tmp_path))
    assert own.doc_type_of(mime="text/plain", names=["Commercial Lease"]) == "vertrag.miete"
    assert own.holds_clauses("vertrag.miete")
    assert own.fingerprint != TREE.fingerprint


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"doc_types": [{"id": "a", "parent": "b", "labels": {"de": "A", "en": "A"}}]}, "a has the parent b"),
        (
            {
                "doc_types": [
                    {"id": "a", "parent": "b", "labels": {"de": "A", "en": "A"}},
                    {"id": "b", "parent": "a", "labels": {"de": "B", "en": "B"}},
                ]
            },
            "above itself",
        ),
        ({"clause_types": [{"id": "a", "labels": {"de": "A", "en": "A"}}] * 2}, "a stands there twice"),
        ({"doc_types": [{"id": "A b", "labels": {"de": "A", "en": "A"}}]}, "doc_types.0.id"),
        ({"doc_types": [{"id": "a", "labels": {"de": "A"}}]}, "doc_types.0.labels.en"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_tree_is_refused_and_the_fault_named(tmp_path: Path, changes: dict[str, object], fault: str) -> None:
    with pytest.raises(MisconfiguredError, match=fault):
        load_ontology(own_tree(tmp_path, **changes))


def test_a_tree_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MisconfiguredError, match="cannot be read"):
        load_ontology(str(tmp_path / "none.json"))


def test_every_node_of_the_built_in_tree_is_named_in_both_languages_and_can_be_met() -> None:
    body = json.loads(BUILT_IN.read_text(encoding="utf-8"))
    for tree in (body["doc_types"], body["clause_types"]):
        parents = {node["parent"] for node in tree}
        for node in tree:
            assert node["labels"]["de"], node["id"]
            assert node["labels"]["en"], node["id"]
            assert node.get("words") or node.get("mimes") or node["id"] in parents, node["id"]


def test_no_word_of_the_built_in_tree_is_hidden_by_a_rule_before_it() -> None:
    for node in TREE.doc_types:
        for word in node.words:
            found = TREE.doc_type_of(mime="text/plain", names=[word.removeprefix("=")])
            assert found == node.id, (word, node.id, found)
    for clause in TREE.clause_types:
        for word in clause.words:
            found = TREE.clause_type_of(heading=word.removeprefix("="), text="")
            assert found == clause.id, (word, clause.id, found)
