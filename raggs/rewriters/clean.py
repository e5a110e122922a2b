"""Politeness taken off a question by rules: greetings, fillers, thanks, emoji and emoticons.

The rules know English and French and apply to both at once, since people greet in one language and ask in
another. They only ever remove, and only what stands apart: a phrase must be followed by a mark or by the word
that opens the question ("Hey Jude lyrics" and "Hello World in C" keep their first word), thanks must follow a
sentence or a comma, and emoji stay where the question is about them. What is left is never reworded, its first
letter keeps its case, and a text of which nothing would be left stays as it is.
"""

from __future__ import annotations

import re
from typing import Literal

from raggs.adapter import AdapterConfig
from raggs.artifacts import Query
from raggs.rewriters.base import Rewriter
from raggs.text import one_line


def _any(lines: str) -> str:
    """A group of alternatives, one a line."""
    return "(?:" + "|".join(line.strip() for line in lines.strip().splitlines()) + ")"


def _compile(pattern: str) -> re.Pattern[str]:
    """Any case, either apostrophe."""
    return re.compile(pattern.replace("'", "['’]"), re.IGNORECASE)


PLEASE = _any(r"""
    (?:if you )?please|pls|plz
    svp|stp|s'il (?:vous|te) pla[iî]t
""")
GREETING = _any(r"""
    (?:hi+|hello+|hey+|howdy)(?: (?:there|all|everyone|everybody|folks|guys|team|again))?
    greetings|good (?:morning|afternoon|evening|day)(?: (?:all|everyone|everybody|folks|team))?
    dear (?:all|team|sir(?: or madam)?|madam)
    (?:bonjour|bonsoir|salut|coucou|rebonjour)(?: (?:à tous(?: et à toutes)?|à toutes|tout le monde|madame|monsieur))?
""")
QUESTION = _any(r"""
    (?:just |here's |here is |i have |i've got )?(?:an? |another |one |my )?(?:(?:quick|short|small|dumb) )+question
    (?:i have|i've got) (?:a|another|one) question
    (?:juste |encore |voici |j'ai )?(?:une |ma )?(?:petite |simple |courte )+question(?: (?:rapide|simple|bête))?
    (?:juste |encore |voici |j'ai )une question(?: (?:rapide|simple|bête))?
    question (?:rapide|bête)
""")
FILLER = _any(rf"""
    {QUESTION}(?: {PLEASE})?
    {PLEASE}
    so|well|okay|ok|anyway|um+|uh+|erm+|hmm+
    alors|bon|bref|euh+|hum+|dis-moi|dites-moi
    sorry(?: to bother you| for (?:bothering|disturbing) you)?|excuse me
    (?:désolée?|pardon|excusez-moi|excuse-moi)(?: de (?:vous|te) déranger| pour le dérangement)?
    (?:i was |i'm |i am )?just wondering|i was wondering
    je me demandais
""")
# Only before a question word, which then opens the question.
REQUEST = _any(rf"""
    {PLEASE}
    (?:(?:can|could|would) (?:you|anyone|someone|anybody|somebody) (?:{PLEASE} )?)?tell me
    i(?: would|'d) like to know|i want to know|do you know
    (?:peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux|vous pouvez|quelqu'un peut) (?:{PLEASE} )?me dire
    je (?:voudrais|veux) savoir|j'aimerais savoir|savez-vous|sais-tu
""")
QUESTION_WORD = _any(r"""
    (?:what|how|why|when|where|which|who|whom|whose|whether)\b
    (?:comment|pourquoi|quand|où|quel|quelle|quels|quelles|combien)\b
    (?:qui|quoi|ce qui|ce que|si)\b
    (?:what's|how's|who's|where's|qu'|ce qu')
""")
# Words that may begin a question right after a greeting ...
ASKING = _any(rf"""
    {QUESTION_WORD}
    (?:can|could|would|does|do|did|i|i'\w+|est-ce|peut-on|peux-tu|pouvez-vous|je|j'\w+)\b
""")
# ... and those that, even with a capital, are not a name after a greeting and a comma.
OPENER = _any(rf"""
    {ASKING}
    (?:is|are|was|were|should|will|has|have|we|my|if|in|the|there|according)\b
    (?:y a-t-il|que|on|le|la|les|un|une|des|selon|d'après|c'est)\b
""")
THANKS = _any(rf"""
    (?:many )?thanks(?: (?:a lot|so much|very much|again|everyone|all|guys))?(?: in advance| for (?:your|any) help)?
    thank you(?: (?:so much|very much|all|again))?(?: in advance| for (?:your|any) help)?
    thx|cheers|(?:best |kind )?regards
    any (?:help|ideas?|advice|thoughts?)(?: (?:is|are|would be) (?:welcome|appreciated))?
    merci(?: (?:beaucoup|bien|infiniment|encore|à tous))?(?: d'avance| par avance| pour (?:votre|ton) aide)?
    (?:bien )?cordialement|bonne (?:journée|soirée)
    {PLEASE}
""")

# Thanks that need no mark before them.
SURE_THANKS = _any(r"""
    thanks in advance|thank you in advance
    merci d'avance|merci par avance|svp|s'il (?:vous|te) pla[iî]t
""")

MARK = r"(?:\s*(?:[!,;:…?]+|[.–—-]+(?=\s|$))\s*)"
# "Hello, Dolly!" and "hello, world" are names, whatever the comma.
NO_NAME = rf"(?!\s*,\s*(?!{OPENER}|{FILLER}\b)(?-i:[A-ZÀ-Þ]))(?!\W*world\b)"
PICTURE = "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]|[☺☹❤✨⭐❓❗✅❌⚡☕⏰⌛]|[\u2600-\u27bf](?=\ufe0f)"
ABOUT_PICTURES = _compile(r"emoji|emoticon|émoticône|smiley|\bmean|signifi|veut dire|unicode|symbol")

START = _compile(
    rf"^(?:{GREETING}{NO_NAME}(?:{MARK}|\s+(?={ASKING}|(?:{QUESTION}|{REQUEST})\b))"
    rf"|{FILLER}{NO_NAME}{MARK}"
    rf"|(?:{QUESTION}|{REQUEST})\s*:?\s+(?={QUESTION_WORD}))"
)
# After a sentence the whole of it goes; after a comma the question mark stays with the question.
END = _compile(
    rf"(?<=[.?!…)])\s*{THANKS}[\s.,!?…]*$"
    rf"|(?:\s*(?:[,;:]|\s[–—-])\s*{THANKS}|\s+{SURE_THANKS})[.,!…]*(?P<mark>\s*\?|)[\s.,!…]*$"
)
INSIDE = _compile(rf"\s*,\s*(?:{PLEASE}|um+|uh+|erm+|euh+)\s*,\s*")
EMOJI = re.compile(rf"(?:(?:{PICTURE})[\ufe0f\u200d\U0001f3fb-\U0001f3ff]*)+")
EMOTICON = re.compile(r"(?:(?<=\s)|^)(?:[:;=]['’]?-?[()DPp|]|:-?/|\^_?\^|<3(?=\s*$)|x-?D)(?=\s|$)")


class CleanRewriter(Rewriter):
    """Take greetings, fillers, thanks and emoji off by rules (English and French)."""

    class Config(AdapterConfig):
        type: Literal["clean"] = "clean"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """The question without polite phrases, in its own words."""
        return strip_politeness(text)


def strip_politeness(text: str) -> str:
    """`text` on one line without what politeness and mood added to it; `text` itself if nothing else is there.

    The words of the result are a subsequence of the words of `text`, and the function leaves its result alone.
    """
    before, core = "", one_line(text)
    while core != before:
        before, core = core, _strip_once(core)
    return core if any(char.isalnum() for char in core) else text


def _strip_once(text: str) -> str:
    if not ABOUT_PICTURES.search(text):
        text = EMOTICON.sub(" ", EMOJI.sub(" ", text))
    text = START.sub("", one_line(text))
    text = END.sub(lambda match: match["mark"] or "", text)
    return one_line(INSIDE.sub(" ", text))
