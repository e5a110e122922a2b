"""Hold the language of docs, docstrings, comments and messages: terms of the field, plain sentences.

``python tests/test_words.py PATH…`` prints every match below a file or folder. ``python tests/test_words.py --write``
writes the allowances; they can only fall. ``python tests/test_words.py --sample SEED [NUMBER]`` prints random sentences
for readers (see CONTRIBUTING.md).
"""

from __future__ import annotations

import ast
import io
import json
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
ALLOWANCES = Path(__file__).parent / "fixtures" / "words.json"

Kind = Literal["docs", "docstring", "message", "comment"]


class Sentence(NamedTuple):
    """A sentence, heading, table cell or message; inline code is replaced by ``X``."""

    path: str
    line: int
    kind: Kind
    text: str
    prose: bool = True  # whether it counts for the mean length: no heading, cell or message


PATTERNS: dict[str, str] = {
    # Grammar.
    "starts with a free relative clause": r"^(what|who|whom|whose|where|whoever|whatever|whichever|wherever)\b(?!.*\?$)",
    "starts with a preposition and a relative": r"^(by|of|with|in|to|from|for|at|on) (which|whom|what|whose)\b",
    "whoever, nobody as grammar": r"\b(whoever|whatever|whichever|wherever|nobody|somebody|whom)\b",
    "preposition + what": r"\b(of|by|from|in|on|with|for|than|at|to|into|beyond|against|like) what\b(?!-if)",
    "where as a condition": r"\b(none|nothing|empty|zero|true|false|only|except|but) where\b|\bwhere (there|none|nothing|no"
    r"|it is|it has|it was|they are|one is|a \w+ (is|has)|the \w+ (is|has))\b",
    "is no": r"(?<!there )\b(is|are|was|were|be|been) no\b(?! (longer|more|fewer|less|greater|larger|smaller|later|earlier|wider))",
    "is to": r"\b(is|are|was|were) to (be|take|rise|go|hold|have|stand|give|say|judge|rank|run|come|make|find|count)\b",
    "per as an article": r"\b(lines?|rows?|values?|calls?|passages|judgments|lists?|numbers?|USD|seconds?|tokens|times?|"
    r"requests?|questions?|orders?|answers?|grades?|one) an? (query|question|line|passage|call|pool|document|second|"
    r"system|run|list|batch|pair|chunk|word|minute|hour|row|measure|file)\b",
    "trailing at most": r", at (most|least)(\.|;|$)",
    "one's, of its own": r"\bone's\b|\bof (its|their|his|your) own\b",
    "two semicolons": r";.*;",
    # Verbs.
    "ask": r"\bask(s|ed|ing)?\b(?! for)",
    "tell": r"\b(tells?|told|telling)\b",
    "say": r"\b(says|said|saying|says)\b",
    "stand": r"\b(stands?|stood|standing)\b(?! (for|out))(?!ard)",
    "lie": r"\b(lies?|lying|lain)\b",
    "hang on": r"\bhang(s|ing)? (on|from|together)\b",
    "go on": r"\b(go|goes|going|went|gone) on\b",
    "go away": r"\b(go|goes|going|went|gone) away\b",
    "give back": r"\b(give|gives|gave|given|giving) back\b",
    "buy": r"\b(buys?|buying|bought)\b",
    "come of": r"\bcom(e|es|ing) of\b",
    "hold as a verdict": r"\bhold(s|ing)? (it|good|true|what|whatever|there|the line|to|against)\b|\bheld (against|to|by|back)\b",
    "meet": r"\b(met|meets) (with|the other|one)\b",
    # Words that are not the field's.
    "anew, once more": r"\banew\b|\bonce more\b",
    "archaic": r"\b(amid|lest|upon|whence|thence|thereof|whereof|therein|wherein|shall|in vain|for want of|oneself)\b",
    "beside": r"\bbesides?\b",
    "alone": r"(?<!stand)(?<!let )\balone\b",
    "left out": r"\bleft out\b|\bleav(e|es|ing) out\b",
    "metaphor": r"\b(house|rooms?|purses?|newcomers?|strangers?|compan(y|ies)|witness(es)?|doors?|coins?|lots?|walks?)\b"
    r"(?<!a lot)(?<!lots)(?! of)",
    "belief": r"\b(beliefs?|believed?|believes|believing|doubts?|doubted|doubtful)\b",
    "sure": r"(?<!make )(?<!makes )\b(sure|surer|surest|sureness)\b",
    "favour, echo": r"\bfavou?r(s|ed|ing)?\b|\becho(es|ed)?\b",
    "of use": r"\bof (no )?use\b",
    "told apart": r"\b(told|tell|tells|telling) \w* ?apart\b|\bas good as\b|\bcannot tell\b",
    "dear": r"\b(dear|dearer|dearest)\b",
    "cut for chunk": r"\b(cuts|cutting|recuts?|uncut)\b",
    "people's word": r"\bpeople('s)? (words?|orders?|grades?|judg\w*|decide|say|said|gave|give|see|read)\b",
    "waiting for latency": r"\bwaiting\b(?! (for|to))",
    "want for lack": r"\bwants?\b(?! (to|a|an|the))",
}
FUNCTION_DOCSTRING = "docstring without a verb"
NOUN_START = re.compile(
    r"^(the|a|an|what|whether|all|every|each|no|none|one|two|how|of|those|its|their|this|that|these|it|they|"
    r"in|by|with|at|from|is|are|has|if|when|where|as|for|to|``|X\b|[A-Z]\w*s of\b|[A-Z]\w+ing\b)",
    re.IGNORECASE,
)
COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}
# A word that is a term at this place: names of settings, quotations of other tools.
TERMS = re.compile(r"standard error|standing query|out of the box|as a whole", re.IGNORECASE)


# --- sentences ------------------------------------------------------------------------------------------------


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences; code between backticks counts as one word."""
    plain = re.sub(r"``.+?``|`[^`]+`", "X", text)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]+>", r"\1", plain)
    plain = re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", plain)
    parts = re.split(
        r"(?<=[.!?:])[\"')]?\s+(?=[A-Z\"'(0-9])|(?<=[.!?])\s+(?=[a-z]+ )(?<!e\.g\. )(?<!i\.e\. )(?<!vs\. )", plain
    )
    return [" ".join(part.split()) for part in parts if part and len(part.split()) >= 2]


def sentences_of_page(path: str, text: str) -> Iterator[Sentence]:  # noqa: C901
    """Yield the sentences of a Markdown page: paragraphs, list items, headings, cells; no code."""
    text = re.sub(r"\A---\n.*?\n---\n", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    block: list[str] = []
    start, fence = 0, ""

    def flush() -> Iterator[Sentence]:
        if block:
            yield from (Sentence(path, start, "docs", each) for each in split_sentences(" ".join(block)))
            block.clear()

    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if mark := re.match(r"(```+|~~~+)", bare):
            if not fence:
                yield from flush()
                fence = mark[1]
            elif bare.startswith(fence):
                fence = ""
            continue
        if fence:
            continue
        if bare.startswith("|"):
            yield from flush()
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", bare.strip("|"))]
            yield from (
                Sentence(path, number, "docs", each, prose=False)
                for cell in cells
                if len(cell.split()) >= 2 and re.search("[a-z]{2}", cell)
                for each in split_sentences(cell)
            )
        elif bare.startswith("#"):
            yield from flush()
            yield from (
                Sentence(path, number, "docs", each, prose=False) for each in split_sentences(bare.lstrip("# "))
            )
        elif not bare:
            yield from flush()
        else:
            if re.match(r"([-*+>]|\d+\.)\s", bare):
                yield from flush()
                bare = re.sub(r"^([-*+>]|\d+\.)\s+", "", bare)
            if not block:
                start = number
            block.append(bare)
    yield from flush()


@lru_cache(maxsize=1)  # sentences and docstrings of a module are read one after the other
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Constant]]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            yield node, body[0].value


def _docstring_paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, and entries of ``Args:``-like lists without their names; no doctests or blocks of code."""
    block: list[str] = []
    code_below: int | None = None
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if code_below is not None and bare:
            if indent > code_below:
                continue
            code_below = None
        if bare.startswith((">>>", "...")):
            continue
        entry = re.match(r"([-*]|[\w.*, `\[\]/]{1,60}:)\s+(?=\S)", bare)
        if not bare or re.match(r"(Args|Returns|Raises|Yields|Attributes|Examples?|Sources?|Notes?):$", bare) or entry:
            if block:
                yield " ".join(block)
                block = []
            if entry:
                bare = bare[entry.end() :]
            if not bare or (bare.endswith(":") and len(bare.split()) == 1):
                continue
        if bare.endswith("::"):
            code_below, bare = indent, bare[:-1]
        if bare:
            block.append(bare)


def sentences_of_module(path: str, text: str) -> Iterator[Sentence]:
    """Yield the sentences of docstrings, comments and messages of a module."""
    tree = _parsed(text)
    known = set()
    for node, constant in _docstrings(tree):
        known.add(id(constant))
        for paragraph in _docstring_paragraphs(ast.get_docstring(node) or ""):
            yield from (Sentence(path, constant.lineno, "docstring", each) for each in split_sentences(paragraph))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
    }
    for node in ast.walk(tree):
        if id(node) in known or id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            written = node.value
        elif isinstance(node, ast.JoinedStr):
            written = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        else:
            continue
        if len(written.split()) >= 3 and re.search(r"[a-z]{2,} [a-z]{2,}", written):
            yield from (
                Sentence(path, node.lineno, "message", each, prose=False)
                for paragraph in written.split("\n\n")
                for each in split_sentences(paragraph)
            )
    yield from _sentences_of_comments(path, text)


def _sentences_of_comments(path: str, text: str) -> Iterator[Sentence]:
    block, start, last = list[str](), 0, -1
    tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type == tokenize.COMMENT]
    for token in [*tokens, None]:
        own_line = token is not None and not token.line[: token.start[1]].strip()
        if block and (token is None or not own_line or token.start[0] != last + 1):
            yield from (Sentence(path, start, "comment", each) for each in split_sentences(" ".join(block)))
            block = []
        if token is None or re.match(r"#\s*(type:|noqa|pragma|ruff|mypy|---|!)", token.string):
            continue
        if not block:
            start = token.start[0]
        block.append(token.string.lstrip("#: "))
        last = token.start[0] if own_line else -1


def pages() -> list[Path]:
    """Return every page of prose that people read."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    found += [
        *(ROOT / "examples").glob("*/README.md"),
        *(ROOT / "benchmarks").glob("*.md"),
        *(ROOT / "raggs").rglob("*.md"),
    ]
    return sorted(path for path in found if "/runs/" not in path.as_posix() and "prompts" not in path.parts)


@cache
def sentences(path: Path) -> tuple[Sentence, ...]:
    """Return the sentences of a page or module."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    return tuple((sentences_of_page if path.suffix == ".md" else sentences_of_module)(name, text))


@cache
def files() -> tuple[Path, ...]:
    """Return every checked file."""
    return (*read_by_users(), *sorted((BENCHMARKS / "results").glob("*.md")), *sorted(BENCHMARKS.glob("*.py")))


def read_by_users() -> tuple[Path, ...]:
    """Return the checked files without benchmark programs and their tables, whose cells would fill every sample."""
    return (*pages(), *sorted((ROOT / "raggs").rglob("*.py")), *sorted((ROOT / "docs").glob("*.py")))


# --- matches --------------------------------------------------------------------------------------------------


def matches(path: Path) -> Iterator[tuple[Sentence, str]]:
    """Yield each sentence that matches a pattern, with the first pattern's name."""
    for sentence in sentences(path):
        text = TERMS.sub("X", sentence.text)
        if name := next((name for name, pattern in COMPILED.items() if pattern.search(text)), None):
            yield sentence, name
    if path.suffix == ".py":
        for node, constant in _docstrings(_parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
                first = str(constant.value).strip().split("\n")[0]
                if NOUN_START.match(first):
                    name = path.relative_to(ROOT).as_posix()
                    yield Sentence(name, constant.lineno, "docstring", first), FUNCTION_DOCSTRING


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) or "fixture" in ast.unparse(each) for each in node.decorator_list)


def count() -> dict[str, int]:
    """Return the number of matches by file, without files that have none."""
    found = {path.relative_to(ROOT).as_posix(): sum(1 for _ in matches(path)) for path in files()}
    return {name: number for name, number in found.items() if number}


def docs_sentences() -> list[Sentence]:
    """Return the sentences of prose in README, docs and examples; the record of changes is not prose."""
    return [
        each for path in pages() for each in sentences(path) if each.prose and not each.path.startswith("CHANGELOG")
    ]


ALLOWED: dict[str, int] = json.loads(ALLOWANCES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted({path.relative_to(ROOT).as_posix() for path in files()}))
def test_sentences_are_plain(name: str) -> None:
    found = [f"{each.path}:{each.line} [{why}] {each.text}" for each, why in matches(ROOT / name)]
    allowed = ALLOWED.get(name, 0)
    assert len(found) <= allowed, "\n".join(["rewrite these sentences (CONTRIBUTING.md, Language):", *found])
    assert len(found) == allowed, "fewer matches than allowed: python tests/test_words.py --write"


def test_no_allowance_is_left_for_a_file_that_is_gone() -> None:
    assert not [name for name in ALLOWED if not (ROOT / name).exists()]


MAX_MEAN_WORDS = 17.0
MAX_SEMICOLONS = 0.04


def test_sentences_of_the_docs_are_short() -> None:
    lengths = [len(each.text.split()) for each in docs_sentences()]
    assert fmean(lengths) <= MAX_MEAN_WORDS


def test_few_sentences_of_the_docs_have_a_semicolon() -> None:
    found = docs_sentences()
    assert sum(";" in each.text for each in found) / len(found) <= MAX_SEMICOLONS


READERS_SHARES: dict[Kind, float] = {"docs": 0.4, "docstring": 0.35, "message": 0.2, "comment": 0.05}


def sample(seed: int, number: int) -> list[Sentence]:
    """Return random sentences, with a fixed share of each kind, in random order."""
    found = [each for path in read_by_users() for each in sentences(path)]
    draw = random.Random(seed)
    drawn = [
        each
        for kind, share in READERS_SHARES.items()
        for each in draw.sample([each for each in found if each.kind == kind], round(share * number))
    ]
    return draw.sample(drawn, len(drawn))


def main(arguments: list[str]) -> None:
    """Print matches or a sample, or write allowances."""
    if arguments == ["--write"]:
        ALLOWANCES.write_text(json.dumps(count(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
    elif arguments[:1] == ["--sample"]:
        seed, number = (*map(int, arguments[1:]), 100)[:2]
        for place, each in enumerate(sample(seed, number), start=1):
            print(f"{place}. [{each.kind}] {each.path}:{each.line}\n   {each.text}")
    elif arguments == ["--summary"]:
        for kind in ("docs", "docstring", "message", "comment"):
            all_of_kind = [each for path in read_by_users() for each in sentences(path) if each.kind == kind]
            found = [
                each
                for path in read_by_users()
                for each, why in matches(path)
                if each.kind == kind and why != FUNCTION_DOCSTRING
            ]
            print(f"{kind}: {len(found)} of {len(all_of_kind)} sentences match, {len(found) / len(all_of_kind):.1%}")
        found = docs_sentences()
        print(
            f"docs: {fmean(len(each.text.split()) for each in found):.1f} words per sentence; "
            f"{sum(';' in each.text for each in found) / len(found):.1%} with a semicolon"
        )
    else:
        roots = [Path(each).resolve() for each in arguments]
        for path in files():
            if any(path == root or root in path.parents for root in roots):
                for sentence, why in matches(path):
                    print(f"{sentence.path}:{sentence.line} [{sentence.kind}: {why}] {sentence.text}")


if __name__ == "__main__":
    main(sys.argv[1:])
