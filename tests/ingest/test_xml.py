"""XML: invoices and messages of courts by what they mean, any other by its texts, and nothing from outside of it."""

from __future__ import annotations

import base64
import random
import time
from dataclasses import replace

import pytest

from shared.errors import PermanentError, UnreadableFileError
from shared.ingest.convert.kind import kind_of
from shared.ingest.convert.process import ConversionProcess
from shared.ingest.convert.xml_text import convert
from shared.ingest.metadata.read import read_facts
from tests.ingest.test_realfiles import path_of

CII = """<?xml version="1.0" encoding="UTF-8"?>
<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
 xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"
 xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100">
<rsm:ExchangedDocument><ram:ID>RE 2024/0815-A</ram:ID><ram:TypeCode>380</ram:TypeCode>
<ram:IssueDateTime><udt:DateTimeString format="102">20240229</udt:DateTimeString></ram:IssueDateTime>
<ram:IncludedNote><ram:Content>Vielen Dank für Ihren Auftrag.</ram:Content></ram:IncludedNote></rsm:ExchangedDocument>
<rsm:SupplyChainTradeTransaction>
<ram:IncludedSupplyChainTradeLineItem><ram:AssociatedDocumentLineDocument><ram:LineID>1</ram:LineID></ram:AssociatedDocumentLineDocument>
<ram:SpecifiedTradeProduct><ram:Name>Gutachten</ram:Name></ram:SpecifiedTradeProduct>
<ram:SpecifiedLineTradeDelivery><ram:BilledQuantity unitCode="HUR">4</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>
<ram:SpecifiedLineTradeSettlement><ram:SpecifiedTradeSettlementLineMonetarySummation><ram:LineTotalAmount>800.00</ram:LineTotalAmount>
</ram:SpecifiedTradeSettlementLineMonetarySummation></ram:SpecifiedLineTradeSettlement></ram:IncludedSupplyChainTradeLineItem>
<ram:ApplicableHeaderTradeAgreement>
<ram:SellerTradeParty><ram:Name>Prüfbüro Süd GmbH</ram:Name><ram:PostalTradeAddress><ram:PostcodeCode>80331</ram:PostcodeCode>
<ram:LineOne>Am Markt 1</ram:LineOne><ram:CityName>München</ram:CityName></ram:PostalTradeAddress></ram:SellerTradeParty>
<ram:BuyerTradeParty><ram:Name>Nordwerk AG</ram:Name></ram:BuyerTradeParty></ram:ApplicableHeaderTradeAgreement>
<ram:ApplicableHeaderTradeSettlement><ram:InvoiceCurrencyCode>EUR</ram:InvoiceCurrencyCode>
<ram:SpecifiedTradePaymentTerms><ram:DueDateDateTime><udt:DateTimeString format="102">20240331</udt:DateTimeString></ram:DueDateDateTime></ram:SpecifiedTradePaymentTerms>
<ram:SpecifiedTradeSettlementHeaderMonetarySummation><ram:TaxBasisTotalAmount>800.00</ram:TaxBasisTotalAmount>
<ram:TaxTotalAmount currencyID="EUR">152.00</ram:TaxTotalAmount><ram:GrandTotalAmount>952.00</ram:GrandTotalAmount>
<ram:DuePayableAmount>952.00</ram:DuePayableAmount></ram:SpecifiedTradeSettlementHeaderMonetarySummation></ram:ApplicableHeaderTradeSettlement>
</rsm:SupplyChainTradeTransaction></rsm:CrossIndustryInvoice>"""

UBL = """<?xml version="1.0"?><ubl:{root} xmlns:ubl="urn:oasis:names:specification:ubl:schema:xsd:{root}-2"
 xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
 xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
<cbc:ID>4711/24</cbc:ID><cbc:IssueDate>2024-05-06</cbc:IssueDate><cbc:DueDate>2024-06-05</cbc:DueDate>
<cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode><cbc:BuyerReference>04011000-12345-34</cbc:BuyerReference>
<cac:AdditionalDocumentReference><cbc:ID>Anlage</cbc:ID><cac:Attachment>
<cbc:EmbeddedDocumentBinaryObject mimeCode="text/plain" filename="Stundenzettel.txt">{attached}</cbc:EmbeddedDocumentBinaryObject>
</cac:Attachment></cac:AdditionalDocumentReference>
<cac:AccountingSupplierParty><cac:Party><cac:PartyName><cbc:Name>Prüfbüro</cbc:Name></cac:PartyName><cac:PostalAddress><cbc:StreetName>Am Markt 1</cbc:StreetName>
<cbc:CityName>München</cbc:CityName><cbc:PostalZone>80331</cbc:PostalZone></cac:PostalAddress><cac:PartyTaxScheme><cbc:CompanyID>DE123456789</cbc:CompanyID></cac:PartyTaxScheme>
<cac:PartyLegalEntity><cbc:RegistrationName>Prüfbüro Süd GmbH</cbc:RegistrationName></cac:PartyLegalEntity></cac:Party></cac:AccountingSupplierParty>
<cac:AccountingCustomerParty><cac:Party><cac:PartyLegalEntity><cbc:RegistrationName>Stadt Nordhausen</cbc:RegistrationName></cac:PartyLegalEntity></cac:Party></cac:AccountingCustomerParty>
<cac:TaxTotal><cbc:TaxAmount currencyID="EUR">152.00</cbc:TaxAmount></cac:TaxTotal>
<cac:LegalMonetaryTotal><cbc:TaxExclusiveAmount currencyID="EUR">800.00</cbc:TaxExclusiveAmount><cbc:TaxInclusiveAmount currencyID="EUR">952.00</cbc:TaxInclusiveAmount>
<cbc:PayableAmount currencyID="EUR">952.00</cbc:PayableAmount></cac:LegalMonetaryTotal>
<cac:{root}Line><cbc:ID>1</cbc:ID><cbc:InvoicedQuantity unitCode="HUR">4</cbc:InvoicedQuantity><cbc:LineExtensionAmount currencyID="EUR">800.00</cbc:LineExtensionAmount>
<cac:Item><cbc:Description>Vier Stunden vor Ort</cbc:Description><cbc:Name>Gutachten</cbc:Name></cac:Item></cac:{root}Line></ubl:{root}>"""

MESSAGE = """<?xml version="1.0" encoding="UTF-8"?>
<tns:nachricht.gds.uebermittlungSchriftgutobjekte.0005005 xmlns:tns="http://www.xjustiz.de">
<tns:nachrichtenkopf xjustizVersion="3.2.1"><tns:aktenzeichen.absender>2 O 34/24</tns:aktenzeichen.absender>
<tns:erstellungszeitpunkt>2024-03-04T10:11:12</tns:erstellungszeitpunkt>
<tns:auswahl_absender><tns:absender.gericht><code>R3101</code></tns:absender.gericht></tns:auswahl_absender></tns:nachrichtenkopf>
<tns:grunddaten><tns:verfahrensdaten><tns:instanzdaten><tns:aktenzeichen><tns:auswahl_aktenzeichen>
<tns:aktenzeichen.freitext>2 O 34/24</tns:aktenzeichen.freitext></tns:auswahl_aktenzeichen></tns:aktenzeichen>
<tns:kurzrubrum>Möller ./. Nordwerk AG</tns:kurzrubrum></tns:instanzdaten>
<tns:beteiligung><tns:rolle><tns:rollenbezeichnung><code>101</code></tns:rollenbezeichnung><tns:naehereBezeichnung>Klägerin</tns:naehereBezeichnung></tns:rolle>
<tns:beteiligter><tns:auswahl_beteiligter><tns:natuerlichePerson><tns:vollerName><tns:vorname>Änne</tns:vorname><tns:titel>Dr.</tns:titel><tns:nachname>Möller</tns:nachname></tns:vollerName>
<tns:anschrift><tns:strasse>Enge Gasse</tns:strasse></tns:anschrift></tns:natuerlichePerson></tns:auswahl_beteiligter></tns:beteiligter></tns:beteiligung>
<tns:beteiligung><tns:beteiligter><tns:auswahl_beteiligter><tns:organisation><tns:bezeichnung><tns:bezeichnung.aktuell>Nordwerk AG</tns:bezeichnung.aktuell></tns:bezeichnung>
</tns:organisation></tns:auswahl_beteiligter></tns:beteiligter></tns:beteiligung></tns:verfahrensdaten></tns:grunddaten>
<tns:schriftgutobjekte><tns:dokument><tns:xjustiz.fachspezifischeDaten><tns:anzeigename>Klageerwiderung</tns:anzeigename>
<tns:datei><tns:dateiname>Erwiderung.pdf</tns:dateiname></tns:datei></tns:xjustiz.fachspezifischeDaten></tns:dokument></tns:schriftgutobjekte>
</tns:nachricht.gds.uebermittlungSchriftgutobjekte.0005005>"""


def facts_of(markup: str):
    text = convert(markup.encode()).text
    return read_facts(text, name="x.xml", mime="application/xml", max_identifier_chars=256)


def test_an_invoice_of_the_one_syntax_reads_as_an_invoice() -> None:
    found = convert(CII.encode()).text
    lines = found.text.split("\n")
    assert lines[:4] == [
        "Rechnung",
        "Rechnungsnummer: RE 2024/0815-A",
        "Rechnungsdatum: 2024-02-29",
        "Fällig am: 2024-03-31",
    ]
    assert "Verkäufer: Prüfbüro Süd GmbH, Am Markt 1, 80331, München" in lines
    assert "1 | Gutachten | 4 | 800.00" in lines
    assert "Bruttobetrag: 952.00 EUR" in lines
    assert "Vielen Dank für Ihren Auftrag." in lines
    assert found.title == "Rechnung RE 2024/0815-A"
    assert found.meta["identifiers"] == [{"kind": "invoice", "raw": "RE 2024/0815-A", "canonical": "RE 2024/0815-A"}]
    assert [page.locus for page in found.pages] == ["invoice", "parties", "lines", "totals", "notes"]


def test_an_invoice_of_the_first_version_reads_alike() -> None:
    first = CII
    for name, before in {
        "CrossIndustryInvoice": "CrossIndustryDocument",
        "ExchangedDocument": "HeaderExchangedDocument",
        "SupplyChainTradeTransaction": "SpecifiedSupplyChainTradeTransaction",
        "ApplicableHeaderTradeAgreement": "ApplicableSupplyChainTradeAgreement",
        "ApplicableHeaderTradeSettlement": "ApplicableSupplyChainTradeSettlement",
        "SpecifiedTradeSettlementHeaderMonetarySummation": "SpecifiedTradeSettlementMonetarySummation",
    }.items():
        first = first.replace(f":{name}>", f":{before}>").replace(f":{name} ", f":{before} ")
    assert "HeaderExchangedDocument" in first
    head = [line for line in convert(CII.encode()).text.text.split("\n") if ": " in line][:8]
    assert head == [line for line in convert(first.encode()).text.text.split("\n") if ": " in line][:8]


@pytest.mark.parametrize(("root", "kind"), [("Invoice", "Rechnung"), ("CreditNote", "Gutschrift")])
def test_an_invoice_of_the_other_syntax_reads_alike(root: str, kind: str) -> None:
    attached = base64.b64encode("Stunden für März".encode()).decode()
    found = convert(UBL.format(root=root, attached=attached).encode())
    lines = found.text.text.split("\n")
    assert lines[:3] == [kind, f"{kind}snummer: 4711/24", "Rechnungsdatum: 2024-05-06"]
    assert "Käuferreferenz: 04011000-12345-34" in lines
    assert "Verkäufer: Prüfbüro Süd GmbH, Am Markt 1, 80331, München, USt-IdNr. DE123456789" in lines
    assert "Käufer: Stadt Nordhausen" in lines
    assert "Umsatzsteuer: 152.00 EUR" in lines
    assert [(member.name, member.content) for member in found.members] == [
        ("Stundenzettel.txt", "Stunden für März".encode())
    ]
    assert attached not in found.text.text


def test_an_attachment_of_an_invoice_that_is_none_has_its_reason() -> None:
    [member] = convert(UBL.format(root="Invoice", attached="===").encode()).members
    assert (member.content, member.refused.error) == (None, "UnreadableFileError")


def test_an_invoices_number_type_and_day_become_facts() -> None:
    facts = facts_of(UBL.format(root="Invoice", attached=""))
    assert facts.doc_type == "finance.invoice"
    assert facts.doc_date.day.isoformat() == "2024-05-06"
    assert "4711/24" in [one["canonical"] for one in facts.identifiers if one["kind"] == "invoice"]


def test_a_number_with_a_space_is_whole_in_the_facts_and_no_piece_of_it_is_a_number() -> None:
    invoice = facts_of(CII)
    assert {"kind": "invoice", "raw": "RE 2024/0815-A", "canonical": "RE 2024/0815-A"} in invoice.identifiers
    assert not [one for one in invoice.identifiers if one["canonical"] in {"RE", "2024/0815-A", "0815-A"}]
    assert [(one.role, one.name) for one in invoice.parties] == [
        ("seller", "Prüfbüro Süd GmbH"),
        ("buyer", "Nordwerk AG"),
    ]
    message = facts_of(MESSAGE.replace("2 O 34/24", "2 O 34.24"))
    # As it is written, in the form of all spellings.
    assert message.identifiers == ({"kind": "file_number", "raw": "2 O 34.24", "canonical": "2 O 34/24"},)
    assert [(one.role, one.name) for one in message.parties] == [
        ("claimant", "Dr. Änne Möller"),
        ("party", "Nordwerk AG"),
    ]


def test_the_type_of_a_file_with_fields_is_the_one_they_tell_whatever_it_is_called() -> None:
    text = convert(CII.encode()).text
    named = read_facts(text, name="Mietvertrag.xml", mime="application/xml", max_identifier_chars=256)
    assert named.doc_type == "finance.invoice"
    unknown = replace(text, meta={**text.meta, "doc_type": "nothing.known"})
    assert read_facts(unknown, name="x.xml", mime="application/xml", max_identifier_chars=256).doc_type == (
        "finance.invoice"
    ), "the first line says so"


def test_the_invoice_in_a_real_pdf_is_read_from_its_xml(converter: ConversionProcess) -> None:
    [member] = converter.convert("pdf", path_of("F53").read_bytes(), timeout_s=60).members
    found = converter.convert("xml_text", member.content, timeout_s=60).text
    assert found.text.startswith("Rechnung\nRechnungsnummer: 9314110911/00/M/00/N\nRechnungsdatum: 2018-10-01\n")
    facts = read_facts(found, name=member.name, mime="application/xml", max_identifier_chars=256)
    assert "9314110911/00/M/00/N" in [one["canonical"] for one in facts.identifiers]
    assert facts.doc_date.day.isoformat() == "2018-10-01"


def test_a_courts_message_tells_number_court_parties_and_files() -> None:
    found = convert(MESSAGE.encode()).text
    lines = found.text.split("\n")
    assert lines == [
        "XJustiz-Nachricht: gds.uebermittlungSchriftgutobjekte",
        "Aktenzeichen Absender: 2 O 34/24",
        "Aktenzeichen: 2 O 34/24",
        "Erstellt: 2024-03-04T10:11:12",
        "Gericht: R3101",
        "Kurzrubrum: Möller ./. Nordwerk AG",
        "Dokument: Klageerwiderung",
        "Beteiligte: Dr. Änne Möller (Klägerin, 101)",
        "Beteiligte: Nordwerk AG",
        "Datei: Erwiderung.pdf",
        "strasse: Enge Gasse",
    ]
    assert found.title == "XJustiz-Nachricht Möller ./. Nordwerk AG"
    assert found.meta["identifiers"] == [{"kind": "file_number", "raw": "2 O 34/24", "canonical": "2 O 34/24"}]
    assert facts_of(MESSAGE).doc_date.day.isoformat() == "2024-03-04"


def test_any_other_xml_is_its_texts_under_their_names() -> None:
    markup = """<?xml version="1.0"?><akte><mandant><name>Müller &amp; Söhne</name><id>17</id></mandant>
    <p>Der <b>Käufer</b> zahlt.</p><notiz><![CDATA[<frei> & offen]]></notiz><!-- geheim --><frist bis="31. März 2024"/></akte>"""
    assert convert(markup.encode()).text.text == (
        "name: Müller & Söhne\nDer Käufer zahlt.\nnotiz: <frei> & offen\n31. März 2024"
    )


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ('<?xml version="1.0" encoding="iso-8859-1"?><a><text>Größe</text></a>'.encode("latin-1"), "iso-8859-1"),
        ('<?xml version="1.0" encoding="utf-16"?><a><text>Größe</text></a>'.encode("utf-16"), "utf-16"),
        ("<?xml version='1.0'?><a><text>Größe</text></a>".encode("utf-8-sig"), "utf-8"),
        ('<?xml version="1.0" encoding="UTF-8"?><a><text>Größe</text></a>'.encode("cp1252"), "cp1252"),
    ],
)
def test_xml_is_read_as_it_says_and_else_as_any_text(content: bytes, encoding: str) -> None:
    found = convert(content).text
    assert found.text == "text: Größe"
    assert found.meta["encoding"].lower() == encoding.lower()


HOSTILE = {
    "laughs": b'<!DOCTYPE a [<!ENTITY b "ha">' + b"".join(
        b'<!ENTITY c%d "%s">' % (n, (b"&c%d;" % (n - 1) if n else b"&b;") * 10) for n in range(12)
    ) + b"]><a>&c11;</a>",
    "laughs in an attribute": b'<!DOCTYPE a [<!ENTITY c0 "hahahaha">' + b"".join(
        b'<!ENTITY c%d "%s">' % (n, b"&c%d;" % (n - 1) * 10) for n in range(1, 12)
    ) + b']><a b="&c11;"/>',
    "quadratic": b'<!DOCTYPE a [<!ENTITY b "' + b"x" * 100_000 + b'">]><a>' + b"&b;" * 100_000 + b"</a>",
    "quadratic in an attribute": b'<!DOCTYPE a [<!ENTITY b "' + b"x" * 100_000 + b'">]><a b="' + b"&b;" * 10_000 + b'"/>',
    "file": b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a><text>&b;</text></a>',
    "network": b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY b SYSTEM "http://127.0.0.1:9/x">]><a>&b;</a>',
    "parameter": b'<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1:9/x"> %b;]><a>x</a>',
    "deep": b"<a>" * 500_000,
    "wide": b"<a>" + b"<b/>" * 500_000 + b"</a>",
    "long": b"<a>" + b"x" * 50_000_000 + b"</a>",
    "attributes": b"<a " + b" ".join(b'a%d="x"' % n for n in range(200_000)) + b"/>",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_xml_has_a_result_or_a_reason_in_bounded_time(converter: ConversionProcess, name: str) -> None:
    began = time.monotonic()
    content = b'<?xml version="1.0"?>' + HOSTILE[name]
    try:
        text = converter.convert("xml_text", content, timeout_s=30).text.text
    except PermanentError:
        text = ""
    assert "root:" not in text
    assert len(text) < 10_000_000
    assert time.monotonic() - began < 30


def test_xml_cut_off_or_broken_anywhere_has_a_text_or_a_reason(converter: ConversionProcess) -> None:
    whole = CII.encode()
    for part in range(20):
        with pytest.raises(UnreadableFileError):
            converter.convert("xml_text", whole[: len(whole) * part // 20], timeout_s=30)
    for seed in range(100):
        chance, broken = random.Random(seed), bytearray(whole)
        for _ in range(5):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            converter.convert("xml_text", bytes(broken), timeout_s=30)
        except PermanentError:
            continue


def test_a_message_and_an_invoice_are_known_as_xml() -> None:
    assert {kind_of(content.encode(), "x") for content in (CII, MESSAGE)} == {"application/xml"}
