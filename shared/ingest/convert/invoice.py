"""Electronic invoices, the two syntaxes of EN 16931: CII (ZUGFeRD, Factur-X, XRechnung) and UBL (XRechnung, Peppol).

What a person would look for is written as a person would write it; attachments in the file are members of it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from lxml import etree

from shared.errors import UnreadableFileError
from shared.ingest.convert.docx_inline import local
from shared.ingest.convert.formats import Member, Refusal
from shared.ingest.convert.xml_reading import Finder, Reading

_CII = frozenset({"CrossIndustryInvoice", "CrossIndustryDocument"})
_UBL = frozenset({"Invoice", "CreditNote"})
_UBL_NAMESPACE = "urn:oasis:names:specification:ubl:schema:xsd:"
# Codes of UNTDID 1001 for what is no plain invoice.
_CREDIT = frozenset({"261", "262", "296", "308", "381", "396", "420", "458", "532"})
_PACKED_DATE = re.compile(r"^(\d{4})(\d{2})(\d{2})$")
_DOCUMENT = ("ExchangedDocument", "HeaderExchangedDocument")
_TRADE = ("SupplyChainTradeTransaction", "SpecifiedSupplyChainTradeTransaction")
_AGREEMENT = ("ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement")
_DELIVERY = ("ApplicableHeaderTradeDelivery", "ApplicableSupplyChainTradeDelivery")
_SETTLEMENT = ("ApplicableHeaderTradeSettlement", "ApplicableSupplyChainTradeSettlement")
_SUMMATION = ("SpecifiedTradeSettlementHeaderMonetarySummation", "SpecifiedTradeSettlementMonetarySummation")


def _paths(*steps: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return every path through steps that have more than one name."""
    paths = [""]
    for step in steps:
        names = (step,) if isinstance(step, str) else step
        paths = [f"{path}/{name}".lstrip("/") for path in paths for name in names]
    return tuple(paths)


_NUMBER = (*_paths(_DOCUMENT, "ID"), "ID")
_TYPE = (*_paths(_DOCUMENT, "TypeCode"), "InvoiceTypeCode", "CreditNoteTypeCode")
_ISSUED = (*_paths(_DOCUMENT, "IssueDateTime", "DateTimeString"), "IssueDate")
_HEAD = (
    ("Leistungsdatum", _paths(_TRADE, _DELIVERY, "ActualDeliverySupplyChainEvent/OccurrenceDateTime/DateTimeString")),
    ("Leistungsdatum", ("Delivery/ActualDeliveryDate",)),
    (
        "Fällig am",
        (
            *_paths(_TRADE, _SETTLEMENT, "SpecifiedTradePaymentTerms/DueDateDateTime/DateTimeString"),
            "DueDate",
            "PaymentMeans/PaymentDueDate",
        ),
    ),
    ("Käuferreferenz", (*_paths(_TRADE, _AGREEMENT, "BuyerReference"), "BuyerReference")),
    (
        "Bestellnummer",
        (
            *_paths(_TRADE, _AGREEMENT, "BuyerOrderReferencedDocument", ("IssuerAssignedID", "ID")),
            "OrderReference/ID",
        ),
    ),
    (
        "Vertragsnummer",
        (
            *_paths(_TRADE, _AGREEMENT, "ContractReferencedDocument", ("IssuerAssignedID", "ID")),
            "ContractDocumentReference/ID",
        ),
    ),
    (
        "IBAN",
        (
            *_paths(
                _TRADE,
                _SETTLEMENT,
                "SpecifiedTradeSettlementPaymentMeans/PayeePartyCreditorFinancialAccount/IBANID",
            ),
            "PaymentMeans/PayeeFinancialAccount/ID",
        ),
    ),
    (
        "Verwendungszweck",
        (*_paths(_TRADE, _SETTLEMENT, "PaymentReference"), "PaymentMeans/PaymentID"),
    ),
)
_CURRENCY = (*_paths(_TRADE, _SETTLEMENT, "InvoiceCurrencyCode"), "DocumentCurrencyCode")
_TOTALS = (
    (
        "Nettobetrag",
        (
            *_paths(_TRADE, _SETTLEMENT, _SUMMATION, "TaxBasisTotalAmount"),
            "LegalMonetaryTotal/TaxExclusiveAmount",
        ),
    ),
    ("Umsatzsteuer", (*_paths(_TRADE, _SETTLEMENT, _SUMMATION, "TaxTotalAmount"), "TaxTotal/TaxAmount")),
    (
        "Bruttobetrag",
        (*_paths(_TRADE, _SETTLEMENT, _SUMMATION, "GrandTotalAmount"), "LegalMonetaryTotal/TaxInclusiveAmount"),
    ),
    (
        "Zahlbetrag",
        (*_paths(_TRADE, _SETTLEMENT, _SUMMATION, "DuePayableAmount"), "LegalMonetaryTotal/PayableAmount"),
    ),
)
_PARTIES = (
    ("Verkäufer", "seller", (*_paths(_TRADE, _AGREEMENT, "SellerTradeParty"), "AccountingSupplierParty/Party")),
    ("Käufer", "buyer", (*_paths(_TRADE, _AGREEMENT, "BuyerTradeParty"), "AccountingCustomerParty/Party")),
)
_PARTY_NAME = ("Name", "PartyLegalEntity/RegistrationName", "PartyName/Name")
_ADDRESS = (
    ("PostalTradeAddress/LineOne", "PostalAddress/StreetName"),
    ("PostalTradeAddress/LineTwo", "PostalAddress/AdditionalStreetName"),
    ("PostalTradeAddress/PostcodeCode", "PostalAddress/PostalZone"),
    ("PostalTradeAddress/CityName", "PostalAddress/CityName"),
)
_TAX = ("SpecifiedTaxRegistration/ID", "PartyTaxScheme/CompanyID")
_NOTES = (
    *_paths(_DOCUMENT, "IncludedNote/Content"),
    "Note",
    "PaymentTerms/Note",
    *_paths(_TRADE, _SETTLEMENT, "SpecifiedTradePaymentTerms/Description"),
)
_LINES = (*_paths(_TRADE, "IncludedSupplyChainTradeLineItem"), "InvoiceLine", "CreditNoteLine")
_LINE_NUMBER = ("AssociatedDocumentLineDocument/LineID", "ID")
_LINE_NAME = ("SpecifiedTradeProduct/Name", "Item/Name")
_LINE_TEXT = ("SpecifiedTradeProduct/Description", "Item/Description")
_LINE_QUANTITY = (
    "SpecifiedLineTradeDelivery/BilledQuantity",
    "SpecifiedSupplyChainTradeDelivery/BilledQuantity",
    "InvoicedQuantity",
    "CreditedQuantity",
)
_LINE_TOTAL = (
    "SpecifiedLineTradeSettlement/SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
    "SpecifiedSupplyChainTradeSettlement/SpecifiedTradeSettlementMonetarySummation/LineTotalAmount",
    "LineExtensionAmount",
)
_ATTACHED = frozenset({"AttachmentBinaryObject", "EmbeddedDocumentBinaryObject"})


def read(root: etree._Element) -> Reading | None:
    """Return the invoice; None when it is none."""
    name, namespace = local(root), etree.QName(root).namespace or ""
    if name not in _CII and not (name in _UBL and namespace.startswith(_UBL_NAMESPACE)):
        return None
    find = Finder()
    number, code = find.text(root, *_NUMBER), find.text(root, *_TYPE)
    issued = _day(find.text(root, *_ISSUED))
    is_credit = name == "CreditNote" or code in _CREDIT
    kind, label = ("Gutschrift", "Gutschriftsnummer") if is_credit else ("Rechnung", "Rechnungsnummer")
    currency = find.text(root, *_CURRENCY)
    parties = [party for label_, role, paths in _PARTIES for party in _party(find, root, label_, role, paths)]
    totals = {name_: amount for name_, paths in _TOTALS if (amount := find.text(root, *paths)) is not None}
    head = [
        kind,
        *([f"{label}: {number}"] if number else []),
        *([f"Rechnungsdatum: {issued}"] if issued else []),
        *(f"{name_}: {_day(value)}" for name_, paths in _HEAD for value in find.texts(root, *paths)),
    ]
    meta = {
        "invoice_type": code,
        "doc_type": "finance.invoice",
        "doc_date": issued,
        "identifiers": [{"kind": "invoice", "raw": number, "canonical": number}] if number else [],
        "parties": [{"role": role, "name": who} for role, who, _ in parties],
        "totals": totals,
        "currency": currency,
    }
    return Reading(
        title=f"{kind} {number}" if number else kind,
        parts=(
            ("invoice", head),
            ("parties", [line for _, _, line in parties]),
            ("lines", list(_lines(find, root))),
            ("totals", [f"{name_}: {amount} {currency or ''}".rstrip() for name_, amount in totals.items()]),
            ("notes", find.texts(root, *_NOTES)),
        ),
        meta={key: value for key, value in meta.items() if value},
        used=find.used | set(_attached(root)),
        members=tuple(_members(root)),
    )


def _party(
    find: Finder, root: etree._Element, label: str, role: str, paths: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    for path in paths:
        for party in find.all(root, path):
            who = find.text(party, *_PARTY_NAME)
            if who is None:
                continue
            address = [text for steps in _ADDRESS if (text := find.text(party, *steps))]
            tax = [f"USt-IdNr. {text}" for text in find.texts(party, *_TAX)]
            yield role, who, f"{label}: {', '.join([who, *address, *tax])}"


def _lines(find: Finder, root: etree._Element) -> Iterator[str]:
    for path in _LINES:
        for line in find.all(root, path):
            cells = [
                find.text(line, *_LINE_NUMBER),
                find.text(line, *_LINE_NAME),
                find.text(line, *_LINE_TEXT),
                find.text(line, *_LINE_QUANTITY),
                find.text(line, *_LINE_TOTAL),
            ]
            yield " | ".join(cell for cell in cells if cell)


def _day(text: str | None) -> str | None:
    """Return a day in ISO form where it is packed as in CII ("20181001"), anything else as it is."""
    packed = _PACKED_DATE.match(text or "")
    return "-".join(packed.groups()) if packed else text


def _attached(root: etree._Element) -> Iterator[etree._Element]:
    return (element for element in root.iter() if local(element) in _ATTACHED)


def _members(root: etree._Element) -> Iterator[Member]:
    for element in _attached(root):
        name = element.get("filename") or ""
        try:
            yield Member(name, base64.b64decode("".join((element.text or "").split()), validate=True))
        except ValueError:
            yield Member(name, None, refused=Refusal.of(UnreadableFileError("the attachment is no whole Base64")))
