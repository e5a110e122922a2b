"""How headings and sentences become questions, in English and in French: patterns and templates, nothing else.

A rule gives up rather than ask what nobody can answer: a subject that points elsewhere ("this", "the second one") makes
no question.

Questions by rules, from headings and definitions, each with what answers it word for word: no model is asked.

Good enough to try a pipeline on, and said to be no more: such questions copy the words of what answers them, which
flatters lexical search (see `raggs.stats.question_filters`). Every excerpt is a slice of the text. Equal texts give
equal questions; a question comes once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

RuleQuestionKind = Literal["fact", "procedure", "list"]

MAX_SUBJECT_WORDS = 7  # of a subject


@dataclass(frozen=True)
class QuestionPattern:
    """How one kind of sentence or heading is asked about.

    Attributes:
        pattern: finds the named groups that the template uses; matched at the beginning.
        template: the question; `{root}` is the title of the document, `{within}` the heading above in brackets.
        kind: of the question.
    """

    pattern: re.Pattern[str]
    template: str
    kind: RuleQuestionKind = "fact"


@dataclass(frozen=True)
class WordingRules:
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

    sentences: tuple[QuestionPattern, ...]
    headings: tuple[QuestionPattern, ...]
    platforms: re.Pattern[str]
    on: str
    any_heading: tuple[str, str]
    mark: str
    dangling: frozenset[str]
    bare: frozenset[str]
    silent: re.Pattern[str]
    articles: frozenset[str]


def _as_question(
    pattern: str, template: str, kind: RuleQuestionKind = "fact", flags: int = re.IGNORECASE
) -> QuestionPattern:
    return QuestionPattern(re.compile(pattern, flags), template, kind)


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _silent_headings(titles: str) -> re.Pattern[str]:
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

ENGLISH = WordingRules(
    sentences=(
        _as_question(rf"{SUBJECT}{ASIDE} (?P<be>is|was) (?:an?|the|one of) \S", "What {be} {x}?", flags=0),
        _as_question(rf"{SUBJECT}{ASIDE} (?P<be>are|were) (?:the |a |those |any )?\w+s? "
            r"(?:of|that|which|for|with|used)\b",
                "What {be} {x}?", flags=0),
        _as_question(rf"{SUBJECT}{ASIDE} (?:means|refers to|stands for) \S", "What does {x} mean?", flags=0),
        _as_question(rf"{SUBJECT}{ASIDE} (?P<be>was|were) (?P<done>founded|born|built|released|published|introduced|"
                r"established|created|opened|completed|signed|adopted) (?:in|on) ", "When {be} {x} {done}?", flags=0),
    ),
    headings=(
        _as_question(r"(?P<x>.+\?)$", "{x}"),
        _as_question(r"(?!.*\b(?:it|they|this|that|these|there)\b)(?P<x>(?:what|which|why|when|where|who|how(?! "
            r"to\b))\b.+)",
                "{x}{within}?"),
        _as_question(r"how to (?P<x>.+)", "How do you {x}?", "procedure"),
        _as_question(r"(?P<x>install|configure|deploy|upgrade|run|build|use)$", "How do you {x} {root}?", "procedure"),
        _as_question(rf"(?P<x>(?:{IMPERATIVE}) (?!and\b|or\b).*\w.*)", "How do you {x}?", "procedure"),
        _as_question(r"set(?:ting)? ?up\b(?P<x>.*)", "How do you set up{x}?", "procedure"),
        _as_question(r"(?:install(?:ing|ation))(?: of)? (?P<x>.+)", "How do you install {x}?", "procedure"),
        _as_question(r"install(?:ing|ation)$", "How do you install {root}?", "procedure"),
        _as_question(r"configur(?:ing|ation)$", "How do you configure {root}?", "procedure"),
        _as_question(r"(?:usage|quick ?start|getting started|first steps)$", "How do you use {root}?", "procedure"),
        _as_question(r"(?:introduction|overview|about|summary|abstract)$", "What is {root}?"),
        _as_question(r"(?P<x>requirements|prerequisites|limitations|features|advantages|disadvantages|risks|goals|results)$",
                "What are the {x} of {root}?", "list"),
        _as_question(r"(?P<x>licen[cs]e|history|purpose|cost|price)$", "What is the {x} of {root}?"),
    ),
    platforms=PLATFORMS,
    on=" on ",
    any_heading=("What is said about {x} in {above}?", "What is said about {x}?"),
    mark="?",
    dangling=_word_set("""
        below above this that it these those which who whom they he she we you i my his her their its our your such here
        there what when where why how whose as but and so if however thus then also yes no
    """),
    bare=_word_set("""
        of in on at by for from with since below above although because while before after among within under over
        between to more one another first second third last next other result results example following former
        latter goal purpose answer question problem reason point idea thing way time number fact rest most some all
        both each
    """),
    silent=_silent_headings(
        "more|misc.*|see also|references|links|notes|contents|table of contents|changelog|why|other|appendix"
    ),
    articles=_word_set("the a an"),
)  # fmt: skip

FRENCH_WORDING = WordingRules(
    sentences=(
        _as_question(rf"{SUBJECT}{ASIDE} (?:est|était) (?:une?\b|le\b|la\b|l['’]|l’un) "
            r"?\S", "Qu'est-ce que {x} ?", flags=0),
        _as_question(rf"{SUBJECT}{ASIDE} (?P<be>sont|étaient) (?:des|les|de) \S", "Que {be} {x} ?", flags=0),
        _as_question(rf"{SUBJECT}{ASIDE} (?:signifie|désigne|veut dire) \S", "Que signifie {x} ?", flags=0),
        _as_question(rf"{SUBJECT}{ASIDE} (?P<be>a été|est|fut|ont été|furent) "
                r"(?P<done>fondée?s?|née?s?|"
                r"construite?s?|publiée?s?|créée?s?|signée?s?|adoptée?s?|inaugurée?s?) (?:en|le) ",
                "Quand {be} {done} {x} ?", flags=0),
    ),
    headings=(
        _as_question(r"(?P<x>.+\?)$", "{x}"),
        _as_question(r"(?!.*\b(?:il|elle|ils|elles|cela|ceci|y|en)\b)"
                r"(?P<x>(?:quel|quelle|quels|quelles|pourquoi|quand|où|qui|combien)\b.+)", "{x}{within} ?"),
        _as_question(r"comment (?P<x>.+)", "Comment {x} ?", "procedure"),
        _as_question(rf"(?P<x>{INFINITIVE})$", "Comment {x} {root} ?", "procedure"),
        _as_question(rf"(?P<x>(?:{INFINITIVE}) (?!et\b|ou\b).+)", "Comment {x} ?", "procedure"),
        _as_question(r"installation (?:de |du |des |d['’])(?P<x>.+)", "Comment installer {x} ?", "procedure"),
        _as_question(r"installation$", "Comment installer {root} ?", "procedure"),
        _as_question(r"configuration$", "Comment configurer {root} ?", "procedure"),
        _as_question(r"(?:utilisation|premiers pas|démarrage(?: rapide)?|prise en main)$",
                "Comment utiliser {root} ?", "procedure"),
        _as_question(r"(?:introduction|présentation|aperçu|résumé|à propos)$", "Qu'est-ce que {root} ?"),
        _as_question(r"(?P<x>prérequis|avantages|inconvénients|risques|objectifs|résultats)$",
                "Quels sont les {x} de {root} ?", "list"),
        _as_question(r"(?P<x>limites|limitations|fonctionnalités)$", "Quelles sont les {x} de {root} ?", "list"),
    ),
    platforms=PLATFORMS,
    on=" sous ",
    any_heading=("Que dit {above} sur {x} ?", "Que dit-on sur {x} ?"),
    mark=" ?",
    dangling=_word_set("""
        dessous dessus ce cela ça ceci il elle ils elles on nous vous je tu cet cette ces celui celle ceux celles qui
        que quoi mon ma mes son sa ses notre nos votre vos leur leurs y en ici où quand comment
        si mais et donc ainsi comme
    """),
    bare=_word_set("""
        de en sur par pour avec sans depuis avant après parmi selon dès plus premier première second seconde dernier
        dernière autre résultat résultats exemple suivant but objectif réponse question problème raison point idée
        chose façon fois nombre fait reste plupart tout tous
    """),
    silent=_silent_headings(
        "plus|divers|voir aussi|références|liens|notes|sommaire|table des matières|pourquoi|autres?|annexes?"
    ),
    articles=_word_set("le la les l' un une des"),
)  # fmt: skip

WORDINGS: Mapping[str, WordingRules] = {"en": ENGLISH, "fr": FRENCH_WORDING}

MARKDOWN_MARKS = re.compile(r"[*_`]+")
FRENCH_ELISION = re.compile(r"\b(Qu'est-ce que|que) (?=[aeiouyhàâéèêîôû])", re.IGNORECASE)
WORD_PATTERN = re.compile(r"[^\W_]+")


def subject(text: str, wording: WordingRules) -> str | None:
    """What a sentence is about, as it stands within a question; None where it says nothing by itself."""
    plain = MARKDOWN_MARKS.sub("", text).strip()
    words = [word.lower() for word in WORD_PATTERN.findall(plain)]
    own = [word for word in words if word not in wording.articles and word != "l"]
    if not own or len(own) > MAX_SUBJECT_WORDS or wording.dangling & set(words) or own[0] in wording.bare:
        return None
    first, space, rest = plain.partition(" ")
    if first.lower() in wording.articles:
        return first.lower() + space + rest
    return f"l'{plain[2:]}" if plain[:2] in ("L'", "L’") and "l'" in wording.articles else plain


def apply_elision(question: str) -> str:
    """French before a vowel: "Qu'est-ce qu'un module ?"."""
    return FRENCH_ELISION.sub(lambda found: f"{found[1][:-1]}'", question)


MAX_EXCERPT_CHARS = 600  # characters of an excerpt, roughly: it ends with a sentence
MIN_EXCERPT_WORDS = 4  # of an excerpt
LONGEST_TITLE = 80
PARAGRAPH = re.compile(r"\S(?:(?!\n[ \t]*\r?\n).)*", re.DOTALL)
CODE = re.compile(r"^(?:```|~~~|<|\|| {4}|\t|#|>|\[[^\]]*\]:|[-=*_]{3,}\s*$)")
FENCE = re.compile(r"^[ ]{0,3}(?:```|~~~)", re.MULTILINE)
SENTENCE_END = re.compile(r"[.!?]+[\"'”’»)\]]*(?=\s|\Z)")
SENTENCE_START = re.compile(r"[`*_]|[^\W\d_a-zß-öø-ÿ]")
ABBREVIATED = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|etc|vs|cf|Dr|Mr|Mrs|Ms|St|No|Fig|p|pp|M|Mme))\.$")
ABBREVIATION = 8  # characters that are looked at for one
WORD_CHARACTERS = re.compile(r"\w+")
NUMBERING_PREFIX = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[IVX]+\.|[A-Z]\))\s+")


@dataclass(frozen=True)
class TextSection:
    """A stretch of a text below one heading, or before the first.

    Attributes:
        path: the titles above it, the topmost first; empty before the first heading.
        start, end: its characters, without the heading and without sections below it.
    """

    path: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class ExtractedQuestion:
    """A question and the place that answers it.

    Attributes:
        question: on one line.
        start, end: of the excerpt; `text[start:end]` is its text.
        kind: fact, procedure or list.
        rule: what it was made of: "heading" or "sentence".
    """

    question: str
    start: int
    end: int
    kind: RuleQuestionKind
    rule: str


def extract(
    text: str, sections: Sequence[TextSection], language: str, *, document: str = ""
) -> tuple[ExtractedQuestion, ...]:
    """The questions that the rules of a language find in a text, in its order.

    Args:
        sections: of the text, in order; one section without a path where it has no headings.
        language: "en" or "fr"; there are no rules for another.
        document: what the document is called, where no heading says so.
    """
    wording = WORDINGS.get(language)
    if wording is None:
        return ()
    found: dict[str, ExtractedQuestion] = {}
    for section in sections:
        for each in _of_section(text, section, wording, document):
            found.setdefault(each.question.casefold(), each)
    return tuple(found.values())


def clip_sections(sections: Sequence[TextSection], start: int, end: int) -> tuple[TextSection, ...]:
    """The parts of sections that lie within a window; one whose beginning lies outside has lost its heading."""
    return tuple(
        TextSection(each.path if each.start >= start else (), max(start, each.start), min(end, each.end))
        for each in sections
        if each.start < end and each.end > start
    )


def _of_section(text: str, section: TextSection, wording: WordingRules, document: str) -> Iterator[ExtractedQuestion]:
    paragraphs = list(_paragraphs(text, section))
    asked = _of_heading(section.path, wording, document)
    told = paragraphs if asked is None or asked[1] == "procedure" else _from_prose(text, paragraphs)
    if asked is not None and told:
        start, end = _answer(text, told)
        if len(WORD_CHARACTERS.findall(text, start, end)) >= MIN_EXCERPT_WORDS:
            yield ExtractedQuestion(asked[0], start, end, asked[1], "heading")
    for start, end in paragraphs:
        if not CODE.match(text[start:end]):
            yield from _of_paragraph(text, start, end, wording)


def _of_paragraph(text: str, start: int, end: int, wording: WordingRules) -> Iterator[ExtractedQuestion]:
    for first, last in _sentences(text, start, end):
        sentence = " ".join(text[first:last].split())
        if last - first > MAX_EXCERPT_CHARS or sentence[-1] not in ".!?" or not SENTENCE_START.match(sentence):
            continue
        if _first_match(wording.sentences, sentence, wording, {}) is None:
            continue
        asked = _first_match(wording.sentences, _lower_unless_name(sentence, text), wording, {})
        if asked is not None:
            yield ExtractedQuestion(asked[0], first, last, asked[1], "sentence")


def _lower_unless_name(sentence: str, text: str) -> str:
    """A sentence's first word small if the text has it so elsewhere: it is no name."""
    first = WORD_CHARACTERS.match(sentence)
    small = "" if first is None else first[0][:1].lower() + first[0][1:]
    return small + sentence[len(small) :] if small and re.search(rf"(?<![\w@.]){small}(?![\w@.])", text) else sentence


def _first_match(
    rules: Sequence[QuestionPattern], text: str, wording: WordingRules, names: Mapping[str, str]
) -> tuple[str, RuleQuestionKind] | None:
    """The question of the first rule that fits a text, and its kind."""
    for rule in rules:
        match = rule.pattern.match(text)
        if match is None:
            continue
        groups = {name: value or "" for name, value in match.groupdict().items()}
        about = subject(groups["x"], wording) if rules is wording.sentences else groups.get("x", "")
        if about is None or ("{root}" in rule.template and not names.get("root")):
            continue
        question = rule.template.format(**names, **{**groups, "x": about})
        return _finish_question(question, wording), rule.kind
    return None


def _finish_question(question: str, wording: WordingRules) -> str:
    """A question on one line, with one mark at its end and, in French, elided."""
    plain = " ".join(question.split()).rstrip("?!. ") + wording.mark
    return apply_elision(plain) if wording.mark != "?" else plain


def _of_heading(path: Sequence[str], wording: WordingRules, document: str) -> tuple[str, RuleQuestionKind] | None:
    """The question that a heading asks, and its kind."""
    titles = [NUMBERING_PREFIX.sub("", title).strip(" :#") for title in path]
    if not titles or max(map(len, titles)) > LONGEST_TITLE or not WORD_CHARACTERS.search(titles[-1]):
        return None
    if wording.silent.match(titles[-1]):
        return None
    root = titles[0] if len(titles) > 1 else document
    above = titles[-2] if len(titles) > 1 else ""
    names = {"root": root, "within": f" ({above})" if above else ""}
    if above and wording.platforms.match(titles[-1]):
        asked = _first_match(wording.headings, _lower_first_word(above), wording, names)
        if asked is not None:
            question = asked[0].removesuffix(wording.mark)
            return f"{question}{wording.on}{titles[-1]}{wording.mark}", "procedure"
    asked = _first_match(wording.headings, _lower_first_word(titles[-1]), wording, names)
    if asked is not None:
        return asked[0][:1].upper() + asked[0][1:], asked[1]
    template = wording.any_heading[0 if above else 1]
    first, space, rest = titles[-1].partition(" ")
    if first.lower() in wording.dangling:  # "What it costs"
        return None
    named = (first.lower() if first.lower() in wording.articles else first) + space + rest
    return _finish_question(template.format(x=named, above=above), wording), "fact"


def _lower_first_word(title: str) -> str:
    """A heading's first word as it is written within a sentence, unless it is a name of its own."""
    first, space, rest = title.partition(" ")
    return (first.lower() if first[1:].islower() else first) + space + rest


def _paragraphs(text: str, section: TextSection) -> Iterator[tuple[int, int]]:
    """The places of what blank lines part; a fence of code is one paragraph."""
    at = section.start
    while match := PARAGRAPH.search(text, at, section.end):
        start, at = match.span()
        line = text.rfind("\n", section.start, start) + 1
        if FENCE.match(text[line : start + 3] if line >= section.start else text[start : start + 3]):
            close = FENCE.search(text, text.find("\n", start) + 1 or section.end, section.end)
            at = section.end if close is None else (text.find("\n", close.start(), section.end) + 1 or section.end)
            at = max(at, match.start() + 1)
        yield start, start + len(text[start:at].rstrip())


def _from_prose(text: str, paragraphs: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Paragraphs from the first on that is neither code nor a table."""
    first = next((place for place, (start, end) in enumerate(paragraphs) if not CODE.match(text[start:end])), None)
    return paragraphs[first:] if first is not None else ()


def _answer(text: str, paragraphs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """What stands first below a heading, with what a colon announces, cut after a sentence."""
    start, end = paragraphs[0]
    if text[start:end].endswith(":") and len(paragraphs) > 1:
        end = paragraphs[1][1]
    if end - start <= MAX_EXCERPT_CHARS:
        return start, end
    ends = [last for _, last in _sentences(text, start, end) if last - start <= MAX_EXCERPT_CHARS]
    cut = ends[-1] if ends else text.rfind(" ", start, start + MAX_EXCERPT_CHARS)
    return (start, start + len(text[start:cut].rstrip())) if cut > start else (start, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of sentences; what an abbreviation ends goes on."""
    first = start
    ends = [match.end() for match in SENTENCE_END.finditer(text, start, end)]
    for last in [*ends, end]:
        first += len(text[first:last]) - len(text[first:last].lstrip())
        if first < last and (last == end or not ABBREVIATED.search(text[max(first, last - ABBREVIATION) : last])):
            yield first, last
            first = last
