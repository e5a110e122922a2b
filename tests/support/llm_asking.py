"""What a server says that is asked for a question about windows of documents: the truth, or excerpts that it invents.

An answer depends on nothing but what it was shown. The excerpt is a sentence of the window that no earlier question was
about, where there is one.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

SHOWN = re.compile(r"^(?:Text|Texte)? ?(\d+):\n<data-([0-9a-f]+)>\n(.*?)\n</data-\2>", re.DOTALL | re.MULTILINE)
KIND = re.compile(r"^(?:Kind|Genre)\s*: (\w+)$", re.MULTILINE)
EARLIER = re.compile(r"(?:questions|précédentes)\s*:\n<data-([0-9a-f]+)>\n(.*?)\n</data-\1>", re.DOTALL)
SENTENCE = re.compile(r"[A-Z][^.\n#]{20,}\.")
INVENTED = "Nothing of this kind was ever written in any of the documents."
# What makes an answer unusable, each in its own way, and what is spoilt in it.
SPOILT: dict[str, dict[str, Any]] = {
    "no oath": {"oath": ""},
    "no question": {"question": " "},
    "long question": {"question": "why " * 200},
    "references text": {"references": "all of it"},
    "empty reference": {"references": [" "]},
    "six references": {"references": ["The."] * 6},
    "number reference": {"references": [7]},
    "no references": {"references": []},
}


def windows_of(text: str) -> list[str]:
    """The windows that a message shows."""
    return [match[3] for match in SHOWN.finditer(text)]


def earlier_of(text: str) -> list[str]:
    """The earlier questions that it shows."""
    found = EARLIER.search(text)
    return [] if found is None else found[2].split("\n")


def asked(text: str, fault: str = "") -> dict[str, Any]:
    """The answer to a message."""
    kind = KIND.search(text)
    windows, earlier = windows_of(text), " ".join(earlier_of(text))
    excerpts = [_sentence(window, earlier) for window in windows]
    about = " ".join(excerpts[0].split()[:9]).rstrip(".,;")
    answer: dict[str, Any] = {
        "oath": "one thing only",
        "question": f"Is it so that {about[:1].lower()}{about[1:]}?",
        "references": excerpts,
    }
    if kind is not None and kind[1] == "unanswerable":
        answer |= {"question": f"Who invented what {about}?", "references": []}
    if not answer["references"]:
        fault = ""  # nothing to invent
    if fault == "invented":
        answer["references"] = [*excerpts[:-1], INVENTED]
    elif fault == "mended":
        answer["references"] = [excerpts[0][:-1] + "!", *excerpts[1:]]
    return answer | ({"question": "OBEYED?"} if fault == "obeyed" else SPOILT.get(fault, {}))


def _sentence(window: str, earlier: str) -> str:
    """One of a window's sentences, of those whose beginning no earlier question has."""
    sentences = SENTENCE.findall(window) or [window.strip()]
    fresh = [each for each in sentences if " ".join(each.split()[1:8]) not in earlier] or sentences
    return fresh[int(sha256(window.encode()).hexdigest(), 16) % len(fresh)]
