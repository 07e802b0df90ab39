"""Texts on which the int8 graph's activation ranges are measured, once, when the graph is built."""

from __future__ import annotations

CALIBRATION_TEXTS: tuple[str, ...] = (
    "query: Wie lange kann der Käufer nach der Übergabe Gewährleistung verlangen?",
    "query: limitation of liability for indirect damages in the supply agreement",
    "query: 12 O 345/21",
    (
        "passage: § 7 Kündigung\n(1) Der Vertrag läuft auf unbestimmte Zeit. Jede Partei kann ihn mit einer "
        "Frist von sechs Monaten zum Ende eines Kalenderjahres kündigen. (2) Das Recht zur außerordentlichen "
        "Kündigung aus wichtigem Grund bleibt unberührt; ein wichtiger Grund liegt insbesondere vor, wenn die "
        "andere Partei ihre Zahlungen einstellt oder eine wesentliche Pflicht trotz Abmahnung und angemessener "
        "Nachfrist verletzt. (3) Die Kündigung bedarf der Schriftform."
    ),
    (
        "passage: Die zulässige Berufung hat in der Sache keinen Erfolg. Zu Recht hat das Landgericht "
        "angenommen, dass der Klägerin ein Anspruch auf Rückzahlung des Kaufpreises in Höhe von 48.250,00 € "
        "nebst Zinsen in Höhe von fünf Prozentpunkten über dem Basiszinssatz seit dem 3. März 2019 Zug um Zug "
        "gegen Rückgabe des Fahrzeugs zusteht. Die hiergegen gerichteten Einwendungen der Beklagten greifen "
        "nicht durch. Der Senat folgt der Beweiswürdigung der Vorinstanz."
    ),
    (
        "passage: 9.2 Subject to clause 9.1, the total aggregate liability of the Supplier to the Customer in "
        "respect of all losses arising under or in connection with this Agreement, whether in contract, tort "
        "(including negligence), breach of statutory duty or otherwise, shall in no circumstances exceed EUR "
        "2,000,000 in each Contract Year. 9.3 Neither party shall be liable for any loss of profit, loss of "
        "goodwill or any indirect or consequential loss."
    ),
    (
        "passage: Von: kanzlei@kanzlei.example\nAn: mandantin@kanzlei.example\nBetreff: Fristverlängerung in "
        "Sachen Lindenhof\n\nSehr geehrte Frau Dr. Weidenbach,\n\nanbei übersende ich Ihnen den Entwurf der "
        "Klageerwiderung mit der Bitte um Durchsicht bis Freitag, den 14.05.2021. Die Frist läuft am "
        "21.05.2021 ab.\n\nMit freundlichen Grüßen"
    ),
    (
        "passage: Anlage K 4\n\n| Position | Menge | Einzelpreis | Gesamt |\n| 1 | 120 Stk. | 14,90 EUR | "
        "1.788,00 EUR |\n| 2 | 35 Stk. | 210,00 EUR | 7.350,00 EUR |\nUSt-IdNr. DE000000000 · HRB 00000 · IBAN "
        "DE00 0000 0000 0000 0000 00"
    ),
    (
        "passage: The parties have exchanged drafts. Draft 3 of the share purchase agreement replaces the "
        "warranty in Schedule 4 paragraph 2(b): the Sellers warrant that the Accounts give a true and fair "
        "view of the assets and liabilities of the Company at the Accounts Date and of its profit for the "
        "financial year ended on that date."
    ),
    "passage: ",
)
