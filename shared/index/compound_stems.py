"""Words that German legal compounds are made of, collected for this project; lower case, singular.

A compound whose meaning is not that of its parts ("Arbeitnehmer", "Grundstück") stands here as one word, so that it is
not taken apart; so does every word that merely looks like a compound ("Urteil", "Beitrag").
"""

from __future__ import annotations

from typing import Final

_STEMS: Final = """
abberufung abfall abfindung abgabe abgeltung abkommen abkürzung ablauf ablehnung ablöse ablösung abmahnung abnahme
abrechnung abrede abruf absage abschlag abschluss abschreibung abschrift absicht absonderung absprache abstand
abstimmung abteilung abtretung abwehr abweichung abwesenheit abwicklung abzug abänderung adoption agentur akte
akteneinsicht aktie aktionär alter altlast amt amtsträger androhung anerkenntnis anerkennung anfang anfechtung
anforderung anfrage angabe angebot angehörige angelegenheit angestellte anhang anhörung anlage anlass anlegen anlieger
anmeldung annahme annonce anordnung anpassung anrechnung anruf ansatz anschaffung anschluss anschrift anspruch anstalt
anstellung anteil antrag antritt antwort anwalt anwaltschaft anweisung anwendung anzahlung anzeige apotheke arbeit
arbeitgeber arbeitnehmer architekt archiv arrest art arzneimittel arzt asyl attest aufbau aufbewahrung aufenthalt
auffassung aufforderung aufgabe aufhebung aufklärung auflage auflassung auflösung aufnahme aufrechnung aufruf aufschub
aufsicht aufstellung aufstockung auftrag aufwand aufwendung aufzeichnung aufzug auktion ausbau ausbildung ausdruck
auseinandersetzung ausfall ausfertigung ausführung ausgabe ausgang ausgleich auskunft auslage ausland auslegung
ausnahme aussage ausschlagung ausschluss ausschreibung ausschüttung aussetzung ausspruch ausspähung ausstattung
ausstellung auswahl ausweis auszahlung auszug ausübung auto außenwirtschaft bahn bank bankrott bau bauherr bauträger
beamte beanstandung bearbeitung bebauung bedarf bedingung beendigung befangenheit befreiung befristung befugnis
beförderung begehung beginn beglaubigung begleichung begründung begutachtung behandlung behauptung behinderung behörde
beihilfe beirat beitrag beitritt bekanntmachung beklagte belastung beleg belehrung beleidigung bemessung
benachteiligung benutzung beratung berechnung berechtigung bereich bereicherung bereitschaft bericht berichtigung
beruf berufung beschaffenheit beschaffung bescheid bescheinigung beschlagnahme beschleunigung beschluss beschreibung
beschränkung beschwerde beschäftigung beseitigung besichtigung besitz besoldung bestand bestandteil bestechung
bestellung bestimmung bestreiten bestätigung besuch beteiligung betrag betreiber betreuung betrieb betriebsrat betrug
beurkundung beurteilung beute bevollmächtigte bewegung beweis bewerber bewerbung bewertung bewilligung bewährung
bezeichnung beziehung bezirk bezug bieter bilanz bild bildung bindung bonus bote brand brief buch buchung bund
bundestag buße börse bürge bürger bürgschaft darlehen dateien daten dauer deckung delikt depot diebstahl dienst
dienstleistung diskriminierung dokument doping dritte drittschuldner drohung druck duldung durchführung durchsetzung
durchsuchung ehe ehegatte ehre eid eigenbedarf eigenschaft eigentum eigentümer eignung eilbedürftigkeit einberufung
einbeziehung einbruch einfuhr eingang eingriff einheit einigung einkauf einkommen einkunft einlage einlassung
einleitung einlösung einrede einreichung einrichtung einsatz einschreiben einschätzung einsicht einspruch einstellung
einstufung eintragung eintritt einwand einwendung einwilligung einzahlung einzug elter energie enteignung entgelt
enthaftung entlassung entlastung entlohnung entnahme entscheidung entschuldigung entschädigung entstehung entwicklung
entwurf entziehung erbe erbfall erbfolge erblasser erbschaft erfindung erfolg erfüllung ergebnis erhaltung erhebung
erhöhung erinnerung erkenntnis erklärung erlass erlaubnis erledigung erlös ermessen ermittlung ermächtigung ermäßigung
ernennung ersatz erschöpfung erstattung erstellung ersuchen erteilung ertrag erweiterung erwerb erwerber erzeuger
erzeugnis eröffnung fabrik fahrer fahrlässigkeit fahrt fahrzeug fall familie fassung fehler fertigung feststellung
feuer filiale film finanz finanzierung firma fiskus flucht flug flugzeug folge forderung form formular forschung
fortbildung fortführung fortsetzung foto fracht franchise freigabe freiheit freistellung fremd frieden frist fusion
fälligkeit fälschung förderung führerschein führung fürsorge garantie garten gas gast gaststätte gebot gebrauch geburt
gebäude gebühr gefahr gefährdung gegenleistung gegenstand gegner gehalt geheimhaltung geheimnis gehilfe geld
geltendmachung geltung gemeinde gemeinschaft genehmigung genosse genossenschaft gericht gerichtsvollzieher gerät
geschäft geschäftsführer geschäftsführung geschäftsordnung gesell geselle gesellschaft gesellschafter gesetz
gesetzgebung gestaltung gesundheit gewalt gewerbe gewerkschaft gewicht gewinn gewähr gewährleistung gewährung gewässer
glaube gleichbehandlung gleichstellung gläubiger grenze grund grundbuch grundgesetz grundlage grundschuld grundstück
gruppe gründung gutachten gutachter gutglaube gutschrift güte güter haft haftung halter handel handlung handwerk
handwerker haupt haus haushalt hausrat heilung heim heimfall heirat hemmung herausgabe herkunft hersteller herstellung
hilfe hindernis hinterbliebene hinterlegung hinweis hof holding honorar hypothek händler höhe immissionen immobilie
index industrie information inhaber inhalt inkasso inkrafttreten insolvenz instandhaltung instandsetzung instanz
interesse internet inventar investition irrtum jagd jahr jugend jurist kammer kapital karte kartell kasse kauf
kaufmann kaufpreis kaution kenntnis kennzeichen kind kirche klage klausel klinik kläger klärung kommission kommune
kompetenz kongress konkurrenz konkurs konto kontrolle konzern konzession kopie korrespondenz kosten kraft
kraftfahrzeug krankenhaus krankheit kredit krieg krise kunde kunst kurs käufer körper körperschaft kündigung künstler
kürzung lager land landesherr landwirt landwirtschaft last laufzeit leasing leben lebensmittel legitimation lehre
lehrer leiharbeit leistung leitung liefer lieferant lieferung liegenschaft linie liquidation liste lizenz lohn luft
luftverkehr lärm löschung mahn mahnung makler mandant mandat mangel marke markt maschine material maß maßnahme medien
medizin mehrheit mehrwert meinung meldung menge mensch merkmal messe methode miet miete mieter minderheit
minderjährige minderung mindest ministerium missbrauch mitarbeiter mitbestimmung mitglied mitgliedschaft mitteilung
mittel mitverschulden mitwirkung modell monat motor muster mutter mutterschaft mündel nachbar nachbesserung
nacherfüllung nachfolge nachfolger nachfrist nachlass nachricht nachteil nachtrag nachweis nachzahlung name natur
naturschutz neben nichtigkeit nichtzulassung niederlassung niederschrift nießbrauch norm not notar note notstand
notwehr nummer nutzer nutznießung nutzung objekt obliegenheit offenbarung offenlegung opfer option ordnung organ
organisation ort pacht paket papier partei partner partnerschaft pass patent patient pauschale person personal
persönlichkeit pfand pflanze pflege pflicht pflichtteil pfändung plan planung politik polizei post postfach praktikum
praxis preis presse probe produkt produktion prognose projekt prokura prokurist protokoll provision prozess prämie
prüfer prüfung publikum pächter qualität quelle quittung quote rabatt rahmen rang rat rate raum reaktion rechnung
recht rechtfertigung rechtskraft reform regel regelung register registrierung regress reise religion renovierung rente
reparatur rest revision richter richtlinie risiko roh ruf ruhe räumung rückforderung rückgabe rückgewähr rückgriff
rückkauf rücklage rücknahme rückruf rückstand rückstellung rücktritt rückzahlung rüge sache sachverhalt
sachverständige saison saldo sanierung sanktion satz satzung schaden scheck scheidung schein schenkung schicht schied
schiff schlag schlichtung schluss schmerz schonung schrift schriftform schuld schuldner schule schutz schwangerschaft
schädiger schädigung schüler seite sendung sequester sicherheit sicherung siegel signatur sitz sitzung software soldat
sonder sorge sorgfalt sozial spaltung spar spediteur spende sperre spiel sprache staat staatsanwalt stadt stamm stand
standard stelle stellung stellungnahme sterbe steuer steuerberater stiftung stimme stoff straf strafbarkeit strafe
straße strecke streik streit streitgegenstand streitwert strom studium stufe stunde stundung ständer störer störung
stück subvention summe system säumnis tag tarif tat tatsache tausch technik technologie teil teilhaber teilnahme
teilnehmer teilung teilzeit telefon termin testament text tier tilgung titel tod transaktion transfer transport
trennung treu treue treuhand treuhänder träger täter tätigkeit umfang umgang umlage umsatz umschulung umstand
umwandlung umwelt umzug unfall ungeziefer union universität unterbrechung unterhalt unterkunft unterlage unterlassung
unternehmen unternehmer unterrichtung untersagung unterschrift unterstützung untersuchung untervermietung
unterzeichnung unwirksamkeit urheber urkunde urlaub ursache urteil vater vaterschaft veranlagung veranstaltung
verantwortung verband verbesserung verbindlichkeit verbindung verbot verbrauch verbraucher verbrechen verbreitung
verbund verbürgung verdacht verdienst verein vereinbarung vererbung verfahren verfall verfassung verfolgung verfügung
vergabe vergehen vergleich vergütung verhalten verhandlung verhinderung verhältnis verhältnismäßigkeit verjährung
verkauf verkehr verkäufer verkündung verlag verlangen verletzung verlobung verlust verlängerung vermerk vermieter
vermietung vermittler vermittlung vermutung vermächtnis vermögen vernehmung vernichtung verordnung verpackung
verpflegung verpflichtung verpfändung verpächter verrechnung versammlung versand verschmelzung verschulden
verschwiegenheit versendung versetzung versicherer versicherung versorgung versprechen verspätung versteigerung
verstoß verständigung versuch versäumnis verteidiger verteidigung verteilung vertrag vertraulichkeit vertreter
vertretung vertrieb verursacher verurteilung verwahrung verwalter verwaltung verwandte verwarnung verweigerung
verweisung verwendung verwertung verwirklichung verwirkung verzeichnis verzicht verzinsung verzug veräußerung
veröffentlichung video vieh volk volljährigkeit vollmacht vollstreckung vollziehung voraus vorausbezahlung
voraussetzung vorbehalt vorbereitung vorerbe vorfall vorkauf vorladung vorlage vorleistung vormerkung vormund
vormundschaft vorname vorrang vorrat vorsatz vorschlag vorschrift vorschuss vorsorge vorstand vorsteuer vorteil
vortrag vorvertrag vorwurf waffe wahl wahrnehmung wald ware warnung wartung wasser wechsel weg weisung
weiterbeschäftigung werbung werk werkstatt wert wertpapier wesen wettbewerb widerruf widerspruch wiedereinsetzung
wiederherstellung wiederholung wild wille wirksamkeit wirkung wirt wirtschaft wissen wissenschaft witwe woche wohn
wohnraum wohnung währung zahl zahlung zeichen zeit zeitung zerstörung zession zettel zeuge zeugnis ziel zimmer zins
zivil zoll zubehör zufall zug zugang zugewinn zulage zulassung zulieferer zumutbarkeit zurückbehaltung zurückweisung
zusage zusammenschluss zusatz zuschlag zuschuss zusicherung zustand zustellung zustimmung zuständigkeit zuteilung
zutritt zuverlässigkeit zuwendung zwang zweck zweckentfremdung zweifel zweig zwischen änderung öffentlichkeit überbau
übereignung übereinkommen übereinstimmung überführung übergabe übergang überlassung überleitung übermittlung übernahme
überprüfung überschreitung überschuldung überschuss übersetzung übertragung überwachung überweisung überzahlung
"""

# What only ever stands in front, as it stands there.
_MODIFIERS: Final = """
allgemein bau brutto dauer doppel drittel eigen einzel erb ersatz erst europa fern fest fremd gesamt gleit grund halb
haupt hilfs höchst kurz lang miet mindest mit mono nach neben netto neu ober pflicht privat probe rest rück schein
schuld selbst sonder spät straf teil unter voll vor vorab zeit zivil zusatz zwischen
"""

STEMS: Final = frozenset(_STEMS.split())
MODIFIERS: Final = frozenset(_MODIFIERS.split())
