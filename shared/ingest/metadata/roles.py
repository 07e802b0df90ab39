"""Roles of parties in proceedings and contracts, in German and English, each under one name."""

from __future__ import annotations

import re
from typing import Final

PARTY: Final = "party"
CLAIMANT: Final = "claimant"
DEFENDANT: Final = "defendant"
SELLER: Final = "seller"
BUYER: Final = "buyer"

_PATTERNS: Final = {
    CLAIMANT: r"(?:Wider)?[Kk]läger(?:in|innen|s)?|Klagepartei|Verfügungskläger(?:in)?|Claimants?|Plaintiffs?",
    DEFENDANT: r"(?:Wider)?[Bb]eklagt(?:e[rn]?)|Verfügungsbeklagt(?:e[rn]?)|Defendants?",
    "appellant": r"(?:Berufungs|Revisions|Rechtsmittel|Beschwerde)(?:kläger|führer)(?:in|innen)?|Appellants?",
    "respondent": r"(?:Berufungs|Revisions)beklagt(?:e[rn]?)|(?:Beschwerde|Antrags)gegner(?:in|innen)?|Respondents?",
    "applicant": r"Antragsteller(?:in|innen)?|Gesuchsteller(?:in)?|Anmelder(?:in)?|Applicants?|Petitioners?",
    "creditor": r"Gläubiger(?:in)?|Creditors?",
    "debtor": r"Schuldner(?:in)?|Debtors?",
    "intervener": r"Streithelfer(?:in)?|Nebenintervenient(?:in)?|Interveners?",
    "accused": r"Angeklagt(?:e[rn]?)|Beschuldigt(?:e[rn]?)|Angeschuldigt(?:e[rn]?)",
    SELLER: r"Verkäufer(?:in|innen)?|Veräußerer(?:in)?|Veräusserer|Sellers?|Vendors?",
    BUYER: r"(?<!ver)Käufer(?:in|innen)?|Erwerber(?:in|innen)?|Buyers?|Purchasers?",
    "landlord": r"Vermieter(?:in|innen)?|Verpächter(?:in)?|Landlords?|Lessors?",
    "tenant": r"Mieter(?:in|innen)?|Pächter(?:in)?|Tenants?|Lessees?",
    "customer": r"Auftraggeber(?:in|innen)?|Besteller(?:in)?|Bauherr(?:in)?|Kund(?:e|in)|Customers?|Clients?",
    "contractor": r"Auftragnehmer(?:in|innen)?|Dienstleister(?:in)?|Lieferant(?:in)?|(?:Sub)?Contractors?|Suppliers?",
    "employer": r"Arbeitgeber(?:in)?|Employers?",
    "employee": r"Arbeitnehmer(?:in)?|Employees?",
    "licensor": r"Lizenzgeber(?:in)?|Licensors?",
    "licensee": r"Lizenznehmer(?:in)?|Licensees?",
    "lender": r"Darlehensgeber(?:in)?|Kreditgeber(?:in)?|Lenders?",
    "borrower": r"Darlehensnehmer(?:in)?|Kreditnehmer(?:in)?|Borrowers?",
    "guarantor": r"Bürg(?:e|in)|Garantiegeber(?:in)?|Guarantors?",
    "insurer": r"Versicherer|Insurers?",
    "policyholder": r"Versicherungsnehmer(?:in)?|Policyholders?",
    "assignor": r"Zedent(?:in)?|Assignors?",
    "assignee": r"Zessionar(?:in)?|Assignees?",
    "shareholder": r"Gesellschafter(?:in)?|Shareholders?",
    "company": r"Gesellschaft|Company",
    "discloser": r"Offenlegende Partei|Disclosing Party",
    "recipient": r"Empfangende Partei|Receiving Party",
    "franchisor": r"Franchisegeber(?:in)?|Franchisors?",
    "franchisee": r"Franchisenehmer(?:in)?|Franchisees?",
    "agent": r"Handelsvertreter(?:in)?|Agents?",
}  # fmt: skip
ROLE: Final = "|".join(pattern for pattern in _PATTERNS.values())
_KNOWN = tuple((role, re.compile(rf"(?:{pattern})\Z", re.IGNORECASE)) for role, pattern in _PATTERNS.items())
# What a court's list of parties calls them; a contract's names for its parties say nothing there.
LITIGANT: Final = "|".join(
    _PATTERNS[role]
    for role in (CLAIMANT, DEFENDANT, "appellant", "respondent", "applicant", "creditor", "debtor", "intervener")
)


def role_of(written: str) -> str | None:
    """Return the role that a word means, None for a word that is none."""
    word = " ".join(written.split())
    return next((role for role, pattern in _KNOWN if pattern.match(word)), None)
