"""A promptfoo configuration: one test per question, the run's lists as providers, and a check of the returned passages.

promptfoo renders variables as templates, which can access environment variables. If a value is the name of a file,
promptfoo reads the file. So texts in the configuration are escaped, and it contains no ids of passages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.text import one_line
from raggs.golden.base import RUNS, GoldenContent, GoldenSet
from raggs.golden.formats import write_lines
from raggs.golden.formats.cases import CaseExporter, QuestionCase
from raggs.golden.formats.trec import TOP, list_name

CONFIG, CHECK, LISTS = "promptfooconfig.yaml", "recall.cjs", "lists.cjs"
DEPTH = 10
SIGNS = re.compile(r"\{(?=[{%#])|#(?=\})")  # template syntax
SCHEME = re.compile(r"\s*\w+:")  # prefixes of values that promptfoo loads from elsewhere: file://, package:
UNPRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # characters that YAML allows only as escapes

CHECK_LINES = """// Written by raggs: share of the relevant passages in the first k ids of the output, a JSON list.
const fs = require("fs");
const path = require("path");

const judged = {};
for (const line of fs.readFileSync(path.join(__dirname, "qrels.txt"), "utf8").split("\\n")) {
  const [qid, , id, label] = line.split(" ");
  if (label !== undefined) (judged[qid] ??= new Map()).set(id, Number(label));
}

function listed(output) {
  try {
    const ids = typeof output === "string" ? JSON.parse(output) : output;
    return Array.isArray(ids) ? ids.map(String) : undefined;
  } catch {
    return undefined;
  }
}

module.exports = (output, context) => {
  const { k, least } = context.config;
  const ids = listed(output);
  if (!ids) return { pass: false, score: 0, reason: "the output is not a JSON list of ids" };
  const found = new Set(ids.slice(0, k));
  const counting = [...(judged[context.vars.qid] ?? [])].filter(([, label]) => label >= least).map(([id]) => id);
  const hits = counting.filter((id) => found.has(id)).length;
  const score = counting.length ? hits / counting.length : 1;
  const reason = `${hits} of ${counting.length} relevant passages are among the first ${k}`;
  return { pass: score > 0, score, reason };
};"""

LISTS_LINES = """// Written by raggs: a provider that returns the passages of a TREC run as a JSON list of ids.
const fs = require("fs");
const path = require("path");

module.exports = class {
  constructor(options) {
    this.label = options.config.label;
    this.lists = {};
    for (const line of fs.readFileSync(path.join(__dirname, options.config.run), "utf8").split("\\n")) {
      const [qid, , id, , score] = line.split(" ");
      if (score !== undefined) (this.lists[qid] ??= []).push([Number(score), id]);
    }
    const later = (one, other) => (one < other ? 1 : -1);
    for (const list of Object.values(this.lists)) {
      list.sort((one, other) => (other[0] - one[0]) || later(one[1], other[1]));
    }
  }

  id() {
    return this.label;
  }

  async callApi(prompt, context) {
    return { output: JSON.stringify((this.lists[context.vars.qid] ?? []).map(([, id]) => id)) };
  }
};"""


class PromptfooExporter(CaseExporter):
    """promptfoo: a ready-to-run configuration with one test per question.

    `promptfooconfig.yaml` contains the questions, with their answers (if any), and the run's retrievers as providers
    (`lists.cjs` reads their lists). `recall.cjs` scores a list of ids by R@10 against `qrels.txt`. A question without
    relevant passages has no check.
    """

    FORMAT: ClassVar[str] = "promptfoo"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset({"grades", "order", "lists", "questions"})
    TEXTS: ClassVar[bool] = False  # the texts in the configuration are escaped, and the importer does not read them

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the configuration and scripts; see `CaseExporter.write_cases`."""
        return {
            CONFIG: write_lines(folder / CONFIG, self._lines(golden)),
            CHECK: write_lines(folder / CHECK, CHECK_LINES.split("\n")),
            LISTS: write_lines(folder / LISTS, LISTS_LINES.split("\n")),
        }

    def _lines(self, golden: GoldenSet) -> Iterator[str]:
        scale = self.options.scale
        check: dict[str, object] = {
            "type": "javascript",
            "value": f"file://{CHECK}",
            "metric": f"R@{DEPTH}",
            "config": {"k": DEPTH, "least": scale.written(scale.binary_at)},
        }
        yield "# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json"
        yield f"description: {_dump(escaped(one_line(golden.name)))}"
        yield 'prompts: ["{{question}}"]'
        yield "providers:"
        for name, run in _systems(golden).items():
            spelt = escaped(name)
            system: dict[str, object] = {
                "id": f"file://{LISTS}",
                "label": spelt,
                "config": {"label": spelt, "run": run},
            }
            yield f"- {_dump(system)}"
        tests = [f"- {_dump(_test(case, check))}" for case in self.cases(golden)]
        yield "tests:" if tests else "tests: []"
        yield from tests


def _systems(golden: GoldenSet) -> dict[str, str]:
    """Return the file of each retriever's list. If there are no lists, return the file of the golden order."""
    names = sorted({hit.retriever for hit in golden.hits()})
    return {name: f"{RUNS}/{list_name(name)}.trec" for name in names} or {"golden order": TOP}


def _test(case: QuestionCase, check: dict[str, object]) -> dict[str, object]:
    found = {"question": case.query.text, "qid": case.query.qid, "answer": case.query.answer}
    texts = {name: escaped(text) for name, text in found.items() if text is not None}
    return {"description": texts["qid"], "vars": texts, **({"assert": [check]} if case.passages else {})}


def escaped(text: str) -> str:
    """Return an escaped form that promptfoo renders as `text`, and never interprets as a template or file name."""
    spelt = SIGNS.sub(lambda match: f'{{{{ "{match[0]}" }}}}', text)
    return spelt.replace(":", '{{ ":" }}', 1) if SCHEME.match(text) else spelt


def _dump(value: object) -> str:
    """Return JSON that is also valid YAML."""
    text = json.dumps(value, ensure_ascii=False)
    return UNPRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
