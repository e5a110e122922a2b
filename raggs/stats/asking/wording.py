"""How headings and sentences become questions, in English and in French: patterns and templates, nothing else.

A rule gives up rather than ask what nobody can answer: a subject that points elsewhere ("this", "the second one") makes
no question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["fact", "procedure", "list"]

MOST_WORDS = 7  # of a subject


@dataclass(frozen=True)
class Asking:
    """How one kind of sentence or heading is asked about.

    Attributes:
        pattern: finds the named groups that the template uses; matched at the beginning.
        template: the question; `{root}` is the title of the document, `{within}` the heading above in brackets.
        kind: of the question.
    """

    pattern: re.Pattern[str]
    template: str
    kind: Kind = "fact"


@dataclass(frozen=True)
class Wording:
    """The rules of one language.

    Attributes:
        sentences: of sentences, the first that fits counts.
        headings: the same of headings.
        platforms: a heading that names one belongs to what the heading above it tells to do.
        on: between the two.
        any_heading: where no rule fits, with the title above it and without one.
        mark: what ends a question.
        dangling: words that point to another sentence; a subject with one asks nothing.
        bare: first words of subjects that say nothing by themselves.
        silent: headings that ask nothing.
        articles: that a subject may begin with, written small within a question.
    """

    sentences: tuple[Asking, ...]
    headings: tuple[Asking, ...]
    platforms: re.Pattern[str]
    on: str
    any_heading: tuple[str, str]
    mark: str
    dangling: frozenset[str]
    bare: frozenset[str]
    silent: re.Pattern[str]
    articles: frozenset[str]


def _asking(pattern: str, template: str, kind: Kind = "fact", flags: int = re.IGNORECASE) -> Asking:
    return Asking(re.compile(pattern, flags), template, kind)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _silent(titles: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{titles})$", re.IGNORECASE)


SUBJECT = r"(?P<x>[\w`*][^.!?;:,()\n\[\]|<>@\\]{1,80}?)"
ASIDE = r"(?:\s*\([^()\n]{1,80}\))?"  # "raggs (a tool)" is asked about as raggs
# Without those that head sections as nouns, too: index, query, report ...
VERBS = """add ask build call change check choose clean compare compile configure connect convert copy create
    debug define delete deploy disable download edit embed enable evaluate export find fix generate get
    handle import improve install join keep load make manage merge migrate monitor move open parse pass
    prepare publish read rebuild remove rename replace reset resolve restart restore run save select
    send share show sort split start stop train tune update upgrade upload use validate verify write"""
IMPERATIVE = "|".join(VERBS.split())
FRENCH = """activer afficher ajouter appeler charger changer choisir comparer compiler configurer connecter convertir
        copier corriger créer couper définir démarrer déployer désactiver envoyer évaluer exécuter exporter
        faire fusionner générer gérer importer indexer installer lancer lire mesurer mettre migrer modifier
        obtenir ouvrir préparer publier rechercher redémarrer remplacer renommer réparer résoudre restaurer
        sauvegarder supprimer surveiller tester trier trouver utiliser vérifier"""
INFINITIVE = "|".join(FRENCH.split())
PLATFORMS = re.compile(
    r"(?:linux|windows|mac ?os(?: x)?|ubuntu|debian|fedora|android|ios|docker|kubernetes|aws|azure|gcp)\b.{0,20}$",
    re.IGNORECASE,
)

ENGLISH = Wording(
    sentences=(
        _asking(rf"{SUBJECT}{ASIDE} (?P<be>is|was) (?:an?|the|one of) \S", "What {be} {x}?", flags=0),
        _asking(rf"{SUBJECT}{ASIDE} (?P<be>are|were) (?:the |a |those |any )?\w+s? (?:of|that|which|for|with|used)\b",
                "What {be} {x}?", flags=0),
        _asking(rf"{SUBJECT}{ASIDE} (?:means|refers to|stands for) \S", "What does {x} mean?", flags=0),
        _asking(rf"{SUBJECT}{ASIDE} (?P<be>was|were) (?P<done>founded|born|built|released|published|introduced|"
                r"established|created|opened|completed|signed|adopted) (?:in|on) ", "When {be} {x} {done}?", flags=0),
    ),
    headings=(
        _asking(r"(?P<x>.+\?)$", "{x}"),
        _asking(r"(?!.*\b(?:it|they|this|that|these|there)\b)(?P<x>(?:what|which|why|when|where|who|how(?! to\b))\b.+)",
                "{x}{within}?"),
        _asking(r"how to (?P<x>.+)", "How do you {x}?", "procedure"),
        _asking(r"(?P<x>install|configure|deploy|upgrade|run|build|use)$", "How do you {x} {root}?", "procedure"),
        _asking(rf"(?P<x>(?:{IMPERATIVE}) (?!and\b|or\b).*\w.*)", "How do you {x}?", "procedure"),
        _asking(r"set(?:ting)? ?up\b(?P<x>.*)", "How do you set up{x}?", "procedure"),
        _asking(r"(?:install(?:ing|ation))(?: of)? (?P<x>.+)", "How do you install {x}?", "procedure"),
        _asking(r"install(?:ing|ation)$", "How do you install {root}?", "procedure"),
        _asking(r"configur(?:ing|ation)$", "How do you configure {root}?", "procedure"),
        _asking(r"(?:usage|quick ?start|getting started|first steps)$", "How do you use {root}?", "procedure"),
        _asking(r"(?:introduction|overview|about|summary|abstract)$", "What is {root}?"),
        _asking(r"(?P<x>requirements|prerequisites|limitations|features|advantages|disadvantages|risks|goals|results)$",
                "What are the {x} of {root}?", "list"),
        _asking(r"(?P<x>licen[cs]e|history|purpose|cost|price)$", "What is the {x} of {root}?"),
    ),
    platforms=PLATFORMS,
    on=" on ",
    any_heading=("What is said about {x} in {above}?", "What is said about {x}?"),
    mark="?",
    dangling=_words("""
        below above this that it these those which who whom they he she we you i my his her their its our your such here
        there what when where why how whose as but and so if however thus then also yes no
    """),
    bare=_words("""
        of in on at by for from with since below above although because while before after among within under over
        between to more one another first second third last next other result results example following former
        latter goal purpose answer question problem reason point idea thing way time number fact rest most some all
        both each
    """),
    silent=_silent(
        "more|misc.*|see also|references|links|notes|contents|table of contents|changelog|why|other|appendix"
    ),
    articles=_words("the a an"),
)  # fmt: skip

FRENCH_WORDING = Wording(
    sentences=(
        _asking(rf"{SUBJECT}{ASIDE} (?:est|était) (?:une?\b|le\b|la\b|l['’]|l’un) ?\S", "Qu'est-ce que {x} ?", flags=0),
        _asking(rf"{SUBJECT}{ASIDE} (?P<be>sont|étaient) (?:des|les|de) \S", "Que {be} {x} ?", flags=0),
        _asking(rf"{SUBJECT}{ASIDE} (?:signifie|désigne|veut dire) \S", "Que signifie {x} ?", flags=0),
        _asking(rf"{SUBJECT}{ASIDE} (?P<be>a été|est|fut|ont été|furent) "
                r"(?P<done>fondée?s?|née?s?|"
                r"construite?s?|publiée?s?|créée?s?|signée?s?|adoptée?s?|inaugurée?s?) (?:en|le) ",
                "Quand {be} {done} {x} ?", flags=0),
    ),
    headings=(
        _asking(r"(?P<x>.+\?)$", "{x}"),
        _asking(r"(?!.*\b(?:il|elle|ils|elles|cela|ceci|y|en)\b)"
                r"(?P<x>(?:quel|quelle|quels|quelles|pourquoi|quand|où|qui|combien)\b.+)", "{x}{within} ?"),
        _asking(r"comment (?P<x>.+)", "Comment {x} ?", "procedure"),
        _asking(rf"(?P<x>{INFINITIVE})$", "Comment {x} {root} ?", "procedure"),
        _asking(rf"(?P<x>(?:{INFINITIVE}) (?!et\b|ou\b).+)", "Comment {x} ?", "procedure"),
        _asking(r"installation (?:de |du |des |d['’])(?P<x>.+)", "Comment installer {x} ?", "procedure"),
        _asking(r"installation$", "Comment installer {root} ?", "procedure"),
        _asking(r"configuration$", "Comment configurer {root} ?", "procedure"),
        _asking(r"(?:utilisation|premiers pas|démarrage(?: rapide)?|prise en main)$",
                "Comment utiliser {root} ?", "procedure"),
        _asking(r"(?:introduction|présentation|aperçu|résumé|à propos)$", "Qu'est-ce que {root} ?"),
        _asking(r"(?P<x>prérequis|avantages|inconvénients|risques|objectifs|résultats)$",
                "Quels sont les {x} de {root} ?", "list"),
        _asking(r"(?P<x>limites|limitations|fonctionnalités)$", "Quelles sont les {x} de {root} ?", "list"),
    ),
    platforms=PLATFORMS,
    on=" sous ",
    any_heading=("Que dit {above} sur {x} ?", "Que dit-on sur {x} ?"),
    mark=" ?",
    dangling=_words("""
        dessous dessus ce cela ça ceci il elle ils elles on nous vous je tu cet cette ces celui celle ceux celles qui
        que quoi mon ma mes son sa ses notre nos votre vos leur leurs y en ici où quand comment
        si mais et donc ainsi comme
    """),
    bare=_words("""
        de en sur par pour avec sans depuis avant après parmi selon dès plus premier première second seconde dernier
        dernière autre résultat résultats exemple suivant but objectif réponse question problème raison point idée
        chose façon fois nombre fait reste plupart tout tous
    """),
    silent=_silent(
        "plus|divers|voir aussi|références|liens|notes|sommaire|table des matières|pourquoi|autres?|annexes?"
    ),
    articles=_words("le la les l' un une des"),
)  # fmt: skip

WORDINGS: Mapping[str, Wording] = {"en": ENGLISH, "fr": FRENCH_WORDING}

MARKS = re.compile(r"[*_`]+")
ELIDED = re.compile(r"\b(Qu'est-ce que|que) (?=[aeiouyhàâéèêîôû])", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")


def subject(text: str, wording: Wording) -> str | None:
    """What a sentence is about, as it stands within a question; None where it says nothing by itself."""
    plain = MARKS.sub("", text).strip()
    words = [word.lower() for word in WORD.findall(plain)]
    own = [word for word in words if word not in wording.articles and word != "l"]
    if not own or len(own) > MOST_WORDS or wording.dangling & set(words) or own[0] in wording.bare:
        return None
    first, space, rest = plain.partition(" ")
    if first.lower() in wording.articles:
        return first.lower() + space + rest
    return f"l'{plain[2:]}" if plain[:2] in ("L'", "L’") and "l'" in wording.articles else plain


def elided(question: str) -> str:
    """French before a vowel: "Qu'est-ce qu'un module ?"."""
    return ELIDED.sub(lambda found: f"{found[1][:-1]}'", question)
