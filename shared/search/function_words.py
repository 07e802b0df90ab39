"""Words of a question that say how it is asked, not what about: they neither open nor pass the lexical gate.

"Wie lange habe ich Zeit, eine offene Rechnung einzuklagen" has four words that a text on the subject could hold. If the
others counted, the gate would ask for them as well, and a text would pass by sharing "wie", "habe" and "ich". The index
keeps these words, so a phrase made of them is found; negations are content everywhere.
"""

from __future__ import annotations

import re
from typing import Final

_GERMAN: Final = """
    der die das den dem des ein eine einer eines einem einen dieser diese dieses diesen diesem jener jene jenes jenen
    jenem solche solcher solches solchen solchem derjenige diejenige dasjenige dessen deren denen
    wer wen wem wessen was wann wo woher wohin warum weshalb wieso weswegen wie wieviel wozu womit wofür wodurch wovon
    woran worauf worin worüber wonach welche welcher welches welchen welchem inwieweit inwiefern
    ich du er sie es wir ihr mich mir dich dir ihn ihm uns euch ihnen sich man jemand jemanden jemandem
    mein meine meiner meines meinen meinem dein deine deiner deines deinen deinem sein seine seiner seines seinen
    seinem ihre ihrer ihres ihren ihrem unser unsere unserer unseres unseren unserem euer eure eurer eures euren eurem
    und oder aber sondern denn weil dass daß ob wenn falls als da damit obwohl sowie sowohl sodass indem während bevor
    nachdem in im ins an am ans auf aufs aus bei beim mit nach seit von vom zu zum zur für um durch über unter vor
    hinter neben zwischen bis ab je pro auch nur schon noch so sehr hier dort dann dabei dafür damals dazu davon daran
    darauf darin darüber etwa etwas einfach eigentlich überhaupt bitte
    bin bist ist sind seid war warst waren wart sei seien wäre wären gewesen habe hast hat haben habt hatte hatten hätte
    hätten gehabt werde wirst wird werden werdet wurde wurden würde würden worden kann kannst können könnt konnte
    konnten könnte könnten muss muß musst müssen müsst musste mussten müsste müssten soll sollst sollen sollt sollte
    sollten darf darfst dürfen dürft durfte durften dürfte dürften will willst wollen wollt wollte wollten möchte
    möchten mag mögen lässt lassen gibt
"""
_ENGLISH: Final = """
    a an the this that these those who whom whose which what when where why how
    i you he she it we they me him her us them my your his its our their mine yours one someone somebody anyone
    and or but if because although while as than so in on at by for from to of with into onto about between through
    during before after over under up down out off upon per via also only just even still too very here there then
    am is are was were be been being have has had having do does did doing can could may might must shall should will
    would please
"""
_EDGES: Final = re.compile(r"^\W+|\W+$")
_WORDS: Final = frozenset((*_GERMAN.split(), *_ENGLISH.split()))


def content_words(terms: str) -> str:
    """Return the words of `terms` that say what it is about; all of them if none does."""
    words = terms.split()
    content = [word for word in words if _EDGES.sub("", word).lower() not in _WORDS]
    return " ".join(content) if content else terms
