"""Removes noise from a query by rules: greetings, fillers, thanks, small talk, emoji, exclamations.

The rules are for English and French. Both languages apply at once, because a greeting may be in another language than
the question. A piece is the text between two punctuation marks. Rules remove whole pieces at the ends of a sentence,
and only if closed word lists (`chatter.toml`) contain all of a piece's words. They also remove listed courtesies
directly before a question or at its end, and hesitations between two commas. The remaining words are never changed. A
name, a number or an unlisted word stays. A courtesy before text that is not a question also stays ("Hello World in
C", "Sorry, Wrong Number cast"). Statements about the user are removed only if the other sentences are understandable
without them: "I have an exam tomorrow. Can I bring it?" stays unchanged. If nothing would be left, the text stays
unchanged.

The lists contain words in the form that `fold_word` returns.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.text import one_line
from raggs.parts.rewriters import Rewriter


class CleanRewriter(Rewriter):
    """Removes greetings, fillers, small talk, thanks and emoji by rules (English and French)."""

    VERSION = 3
    BY_RULE = True

    class Config(AdapterConfig):
        type: Literal["clean"] = "clean"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the query without courtesies and small talk, in its original words."""
        return strip_politeness(text)


DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")
OUTER_MARKS = re.compile(r"^\W+|\W+$")
REFERENCE = re.compile(r"<([a-z_]+)>")

MAX_PHRASE_WORDS = 14  # maximum words of one phrase
MAX_COURTESY_WORDS = 60  # maximum words of a sequence of phrases; longer sequences are not courtesies
JOINTS = frozenset(("and", "but", "so", "et", "mais"))

_LISTS = tomllib.loads((files(__package__) / "chatter.toml").read_text(encoding="utf-8"))


@cache
def phrase(name: str) -> str:
    """Return a list of phrases as one regular expression that matches any of them."""
    lines = str(_LISTS["phrases"][name]).strip("\n").split("\n")
    return "(?:" + "|".join(REFERENCE.sub(lambda match: phrase(match[1]), line) for line in lines) + ")"


def word_list(name: str) -> frozenset[str]:
    """Return the words of a list in `chatter.toml`."""
    return frozenset(str(_LISTS["words"][name]).split())


def fold_word(word: str) -> str:
    """Return a word in the form of the lists: ``Heyyyy`` becomes ``hey``, ``Désolé`` becomes ``desole``."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(char))
    return OUTER_MARKS.sub("", DRAWN_OUT.sub(r"\1", plain.replace("’", "'").replace("œ", "oe")))


def _any(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(map(phrase, names)))


POLITE = _any("greeting", "address", "filler", "question", "sorry", "please", "wondering", "praise")
FILLER, CLOSING_PHRASE, PEOPLE_PHRASE, SURE_CLOSING = (
    _any("filler"),
    _any("closing"),
    _any("people"),
    _any("sure_closing"),
)
GREETED = _any("greeting", "please", "question", "interjection")
REQUESTED = _any("question", "request", "please", "sorry")
ASKING_START, QUESTION_WORD = re.compile(rf"{phrase('asking')}|{phrase('request')} "), _any("question_word")
QUESTION_OPENER = re.compile(phrase("opener"))
INTERROGATES = re.compile(rf"{phrase('interrogative')}|{phrase('question_word')}")
JOINING = re.compile(rf"^{phrase('joining')}")
HESITATION = re.compile(phrase("hesitation"))
ABOUT_ASKING = re.compile(phrase("about_asking"))
ABOUT_ONESELF = re.compile(rf"{phrase('about_oneself')}\b")
SOMEWHERE = re.compile(phrase("somewhere"))
POINTING = re.compile(phrase("pointing"))
EXPLETIVE = re.compile(rf"\b{phrase('expletive')}\b")
DETERMINED = re.compile(phrase("determined"))
INVERTED = re.compile(r"-(?:t-)?(?:il|elle|ils|elles)\b")
ELISION_PREFIX = re.compile(r"\b(?:j|m|t|l|d|s|c|n|qu|jusqu|quelqu|aujourd)'")

FIRST_PERSON, OWN_CAPITALS, ACRONYMS = word_list("first_person"), word_list("own_capitals"), word_list("acronyms")
OPEN_END, ORDINARY, CHAT = word_list("open_end"), word_list("ordinary"), word_list("chat")


def phrase_ends(words: Sequence[str], phrases: re.Pattern[str]) -> list[int]:
    """Return the lengths of all sequences of phrases that start with the first word, ascending.

    Words are matched phrase by phrase, because a regular expression for the whole sequence would try every way to
    split it into phrases.
    """
    found = {0}
    words = words[:MAX_COURTESY_WORDS]
    for start in range(len(words)):
        if start in found and phrases.match(" ".join(words[start : start + MAX_PHRASE_WORDS])):
            found |= set(_next_ends(words, start, phrases))
    return sorted(found - {0})


def _next_ends(words: Sequence[str], start: int, phrases: re.Pattern[str]) -> Iterator[int]:
    for end in range(start + 1, min(len(words), start + MAX_PHRASE_WORDS) + 1):
        if phrases.fullmatch(" ".join(words[start:end])):
            yield end
            if end < len(words) and words[end] in JOINTS:
                yield end + 1


def polite(words: Sequence[str]) -> bool:
    """Return whether all words are courtesies that precede a question."""
    return len(words) <= MAX_COURTESY_WORDS and len(words) in phrase_ends(words, POLITE)


def is_closing(words: Sequence[str]) -> bool:
    """Return whether all words are courtesies that follow a question."""
    if len(words) > MAX_COURTESY_WORDS:
        return False
    starts = (
        0,
        *(end for end in range(1, len(words)) if end < MAX_PHRASE_WORDS and FILLER.fullmatch(" ".join(words[:end]))),
    )
    return any(_closes(words[start:]) for start in starts)


def _closes(words: Sequence[str]) -> bool:
    return any(
        end == len(words) or PEOPLE_PHRASE.fullmatch(" ".join(words[end:]))
        for end in phrase_ends(words, CLOSING_PHRASE)
    )


def leading_courtesy_words(words: Sequence[str]) -> int:
    """Return the number of courtesy words that come directly before a question, without punctuation between them."""
    greeted = (end for end in phrase_ends(words, GREETED) if ASKING_START.match(" ".join(words[end:])))
    requested = (end for end in phrase_ends(words, REQUESTED) if QUESTION_WORD.match(" ".join(words[end:])))
    return max((*greeted, *requested), default=0)


def trailing_thanks_words(words: Sequence[str]) -> int:
    """Return the number of final words that express thanks and have no punctuation before them."""
    lengths = range(min(MAX_PHRASE_WORDS, len(words)), 0, -1)
    return next((length for length in lengths if SURE_CLOSING.fullmatch(" ".join(words[-length:]))), 0)


PICTURE = "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]|[☺☹❤✨⭐❓❗✅❌⚡☕⏰⌛]|[\u2600-\u27bf](?=\ufe0f)"
EMOJI = re.compile(rf"(?:(?:{PICTURE})[\ufe0f\u200d\U0001f3fb-\U0001f3ff]*)+")
EMOTICON = re.compile(r"(?:(?<=\s)|^)(?:[:;=]['’]?-?[()DPp|]+|:-?/|\^_?\^|<3(?=\s*$)|[xX]-?D)(?=\s|$)")
ACTION = re.compile(r"^\*(?:waves?|hugs?|sighs?|smiles?|coucou|bisous?|soupirs?)\*\s|\s\*(?:hugs?|bisous?|smiles?)\*$")
ABOUT_PICTURES = re.compile(r"emoji|emoticon|émoticône|smiley|\bmean|signifi|veut dire|unicode|symbol", re.IGNORECASE)
FACE = " ☺ "  # replaces emoticons, so that they separate pieces as emoji do

_STRONG, _WEAK = r"[!?…]|\.(?=[\s.!?…)]|$)", r"[,;](?!\d)|:(?=\s|$)|(?<=\s)[-–](?=\s)|—"
MARK_RUN = re.compile(rf"\s*(?:(?:{_STRONG}|{_WEAK})[)\]\"”»\s]*)+")
MARKS_OR_PICTURES = re.compile(rf"\s*(?:(?:{_STRONG}|{_WEAK}|{PICTURE})[\ufe0f\u200d\U0001f3fb-\U0001f3ff)\]\"”»\s]*)+")
STRONG = re.compile(rf"{_STRONG}|{PICTURE}")
SHOUTED = re.compile(r" ?(?!\.\.\.$)[!?.…]{3,}$")
CAPITAL = re.compile(r"[\"'‘“«(¿¡]*[A-ZÀ-Þ]")
SELF_SUFFICIENT = 2  # number of content words that make a question understandable without context
MIN_WORDS_AFTER_GREETING = 2  # minimum words of a question that follows a greeting without punctuation between them
MIN_WORDS_BEFORE_THANKS = 3  # minimum words before words of thanks without punctuation between them


def strip_politeness(text: str) -> str:
    """Return `text` on one line without courtesies and small talk; unchanged if nothing else is left.

    The words of the result are a subsequence of the words of `text`, and the function is idempotent.
    """
    before, core = "", one_line(text)
    while core != before:
        before, core = core, _strip_once(core)
    return core if any(char.isalnum() for char in core) else text


@dataclass(frozen=True)
class _Piece:
    """Words between punctuation marks, and the mark after them.

    Attributes:
        front, back: whether the piece can be removed at the start or at the end of a sentence, because it has no
            content.
        aside: whether the piece is a statement about the user.
    """

    text: str
    mark: str
    front: bool = False
    back: bool = False
    aside: bool = False

    @property
    def ends(self) -> bool:
        """Whether a sentence ends after the piece."""
        return STRONG.search(self.mark) is not None

    @property
    def idle(self) -> bool:
        return self.front or self.back

    def words(self) -> list[str]:
        return [word for word in map(fold_word, self.text.split()) if word]


EMPTY_PIECE = _Piece("", "")


def _strip_once(text: str) -> str:
    marks = MARK_RUN
    if not ABOUT_PICTURES.search(text):
        text, marks = ACTION.sub(FACE, EMOTICON.sub(FACE, text)), MARKS_OR_PICTURES
    shouting = text.isupper()
    pieces = [_label_piece(piece, shouting) for piece in _split_pieces(text, marks)]
    kept = _kept_pieces(pieces, shouting)
    if kept is None:
        kept = _kept_pieces([replace(piece, aside=False) for piece in pieces], shouting) or pieces
    opened = bool(kept) and kept[0].text != pieces[0].text
    text = one_line("".join(_piece_texts(_trim_ends(kept, opened) if kept else [], marks)))
    return one_line(SHOUTED.sub(lambda match: "?" if "?" in match[0] else "", text))


def _split_pieces(text: str, marks: re.Pattern[str]) -> Iterator[_Piece]:
    start = 0
    for match in marks.finditer(text):
        yield _Piece(text[start : match.start()], match[0])
        start = match.end()
    if start < len(text):
        yield _Piece(text[start:], "")


def _piece_texts(pieces: Sequence[_Piece], marks: re.Pattern[str]) -> Iterator[str]:
    """Yield the texts and marks; emoji in marks are replaced by blanks, except if the query is about emoji."""
    for piece in pieces:
        yield piece.text
        yield EMOJI.sub(" ", piece.mark) if marks is MARKS_OR_PICTURES else piece.mark


def _label_piece(piece: _Piece, shouting: bool) -> _Piece:
    words = piece.words()
    said = " ".join(words)
    phrase = said if polite(words) else JOINING.sub("", said)
    acronym = not shouting and piece.text.isupper() and phrase in ACRONYMS
    if not phrase or acronym or any(map(str.isdigit, phrase)):
        return piece
    front, back = polite(phrase.split()), is_closing(phrase.split())
    if front or back or not _small_talk(piece.text, words, shouting):
        return replace(piece, front=front, back=back)
    if ABOUT_ASKING.match(phrase):
        return replace(piece, front=True, back=True)
    personal = not FIRST_PERSON.isdisjoint(_split_elisions(words)) or bool(ABOUT_ONESELF.match(phrase))
    personal = personal or (piece.ends and bool(SOMEWHERE.match(phrase)))
    asks = "?" in piece.mark or INTERROGATES.match(phrase)
    return replace(piece, aside=personal and not asks)


def _split_elisions(words: Sequence[str]) -> list[str]:
    """Return the words and the parts of French elisions: ``j'arrive`` yields ``j`` and ``arrive``."""
    return [part for word in words for part in (word, *re.split("['-]", word)) if part]


def _small_talk(text: str, words: Sequence[str], shouting: bool) -> bool:
    """Return whether a piece is small talk: all words are listed, none has an unusual capital, and one is small
    talk.
    """
    capitals = [fold_word(word) for word in text.split()[1:] if CAPITAL.match(word)]
    if not shouting and not OWN_CAPITALS.issuperset(capitals):
        return False
    known = ORDINARY | CHAT
    for word in words:
        if word not in known and not known.issuperset(re.split("['-]", word)):
            return False
    return not CHAT.isdisjoint(_split_elisions(words))


def _kept_pieces(pieces: Sequence[_Piece], shouting: bool) -> list[_Piece] | None:
    """Return the pieces that remain; None if statements about the user were removed, but are needed.

    They are needed if the rest contains no question, or is not understandable without them. If no piece is such a
    statement and the rest contains no question, all pieces remain.
    """
    left: list[_Piece] = []
    sentences = list(_sentences(pieces))
    for sentence, following in zip(sentences, [*sentences[1:], [EMPTY_PIECE]], strict=False):
        kept = _of_sentence(sentence)
        named = not shouting and sentence[-1].front and not following[0].idle
        stays = not kept and named and _mark_in_name(sentence[-1], following[0], "?" in following[-1].mark)
        left += sentence if stays else kept
    text = "".join(piece.text + piece.mark for piece in left)
    if not any(char.isalnum() for char in text) or not _has_question(left):
        return list(pieces) if not any(piece.aside for piece in pieces) else None
    told = any(piece.aside and piece not in left for piece in pieces)
    return None if told and not _stands_alone(text) else left


def _sentences(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    sentence: list[_Piece] = []
    for piece in pieces:
        sentence.append(piece)
        if piece.ends:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _of_sentence(sentence: list[_Piece]) -> list[_Piece]:
    """Return a sentence without the removable pieces at its ends; empty if all of its pieces are removable."""
    said = [piece for piece in sentence if piece.words()]
    if said and all(piece.idle or piece.aside for piece in said):
        return []
    first = 0
    while sentence[first].front or sentence[first].aside:
        first += 1
    if first and _mark_in_name(sentence[first - 1], sentence[first], "?" in sentence[-1].mark):
        first = 0
    if first:
        sentence = [*sentence[:first], _without_joining(sentence[first]), *sentence[first + 1 :]]
    last = len(sentence)
    while last - 1 > first and sentence[last - 1].back:
        last -= 1
    return _fluent(_keep_question_mark(sentence[first:last], sentence[last:]))


def _without_joining(piece: _Piece) -> _Piece:
    """Return a question without a leading conjunction such as "but" or "so"."""
    return replace(piece, text=_without_lead(piece.text, opened=True))


def _fluent(sentence: list[_Piece]) -> list[_Piece]:
    """Return a sentence without hesitations between two commas."""
    left = sentence[:1]
    for piece in sentence[1:]:
        if left[-1].mark == piece.mark == ", " and HESITATION.fullmatch(" ".join(piece.words())):
            left[-1] = replace(left[-1], mark=" ")
        else:
            left.append(piece)
    return left


def _keep_question_mark(kept: list[_Piece], dropped: Sequence[_Piece]) -> list[_Piece]:
    """Give the last kept piece the final mark of the removed pieces, so that a question keeps its question mark."""
    if dropped:
        mark = dropped[-1].mark if dropped[-1].ends else " "
        kept[-1] = replace(kept[-1], mark=mark if "?" in mark else mark.replace("!", "."))
    return kept


def _mark_in_name(idle: _Piece, following: _Piece, asked: bool) -> bool:
    """Return whether the mark after a piece is part of a name: "Hello, Dolly!", "hello, world", "Yo! MTV Raps".

    Args:
        asked: whether the sentence of `following` ends with a question mark.
    """
    words, capital = following.text.split(), CAPITAL.match(following.text) is not None
    phrase = JOINING.sub("", " ".join(following.words()))
    opens = leading_courtesy_words(phrase.split()) or (QUESTION_OPENER if asked else INTERROGATES).match(phrase)
    if idle.ends:
        return "!" in idle.mark and capital and not opens and not following.aside and len(idle.words()) == 1
    title = capital and not asked and not _lower(words[1:4])
    return bool(words) and words[0][0].isalpha() and (title or not opens)


def _has_question(pieces: Sequence[_Piece]) -> bool:
    """Return whether the pieces contain a question: a question mark, or a word that opens a question."""
    return any("?" in piece.mark for piece in pieces) or any(
        QUESTION_OPENER.match(JOINING.sub("", " ".join(piece.words()))) for piece in pieces
    )


def _stands_alone(text: str) -> bool:
    """Return whether a question has enough content and does not refer to earlier text."""
    words = [fold_word(word) for word in text.split()]
    line = EXPLETIVE.sub(" ", " ".join(words))
    turned = INVERTED.search(line)
    if turned and (DETERMINED.search(line[: turned.start()]) or _named_before(text)):
        line = INVERTED.sub("", line)
    if INVERTED.search(line) or POINTING.search(ELISION_PREFIX.sub(r" ", line)):
        return False
    own = [word for word in words if not ORDINARY.issuperset(re.split("['-]", word))]
    return len([word for word in own if not INTERROGATES.fullmatch(word)]) >= SELF_SUFFICIENT


def _named_before(text: str) -> bool:
    """Return whether a word after the first has a capital: a name to which a pronoun can refer."""
    return any(CAPITAL.match(word) for word in text.split()[1:])


def _lower(words: Sequence[str]) -> bool:
    """Return whether no word has an unusual capital; several such capitals mark a title."""
    return not any(CAPITAL.match(word) and fold_word(word) not in OWN_CAPITALS for word in words)


def _trim_ends(pieces: list[_Piece], opened: bool) -> list[_Piece]:
    """Remove courtesies at the start of the first piece, and thanks at the end of the last piece with words."""
    pieces = [replace(pieces[0], text=_without_lead(pieces[0].text, opened)), *pieces[1:]]
    last = max((place for place, piece in enumerate(pieces) if piece.words()), default=0)
    return [*pieces[:last], replace(pieces[last], text=_without_thanks(pieces[last].text)), *pieces[last + 1 :]]


def _without_lead(text: str, opened: bool) -> str:
    """Remove leading courtesies, or a leading conjunction if the text before it was removed."""
    words = text.split()
    folded = [fold_word(word) for word in words]
    length = leading_courtesy_words(folded)
    if not length and opened and (joint := JOINING.match(" ".join(folded))):
        length = joint[0].count(" ")
    left = words[length:]
    if not length or len(left) < MIN_WORDS_AFTER_GREETING or not _lower(words[1 : length + 1]):
        return text
    return " ".join(left) if QUESTION_OPENER.match(" ".join(folded[length:])) else text


def _without_thanks(text: str) -> str:
    words = text.split()
    length = trailing_thanks_words([fold_word(word) for word in words])
    left = words[: len(words) - length]
    if not length or len(left) < MIN_WORDS_BEFORE_THANKS or words[-1] != words[-1].lower():
        return text
    return text if fold_word(left[-1]) in {*OPEN_END, fold_word(words[-1])} else " ".join(left)
