"""Draw docs/concepts/ranking.svg from benchmarks/results/ranking.md: quality of the top by number of calls.

Run `python docs/rankingplot.py` after benchmarks/ranking.py. It works offline and takes a second.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from raggs.evaluation.svg import SHARE, ChartAxis, Curve, chart

HERE = Path(__file__).parent
TABLES = HERE.parent / "benchmarks" / "results" / "ranking.md"
NAMES = {
    "bayes": "raggs, engine bayes (the default)",
    "random + choix": "random batches of five, maximum likelihood (choix)",
    "random + OpenSkill": "random batches of five, OpenSkill",
    "sliding windows": "sliding windows of five",
    "online": "engine online (rag-gs)",
}
AXES = (
    ChartAxis("calls of five passages", ticks=(0, 20, 40, 80, 160)),
    ChartAxis("Kendall's tau among the true top 20", SHARE),
)


def plot(tables: str, judge: str = "medium") -> str:
    """Return the plot of one judge as SVG, from the text of the results page."""
    section = tables.partition(f"### Orders, {judge} judge\n")[2].partition("\n### ")[0]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\|.*\|$", section, re.MULTILINE)]
    rows = [(name, int(calls), float(tau20.split()[0])) for name, calls, _, tau20, *_ in cells[2:] if name in NAMES]
    found = {
        name: tuple((calls, tau20) for _, calls, tau20 in own) for name, own in groupby(rows, key=lambda row: row[0])
    }
    start = next(float(tau20.split()[0]) for name, _, _, tau20, *_ in cells if name == "grades only")
    lines = [Curve((NAMES[name],), ((0, start), *found[name])) for name in NAMES]
    return chart(f"How many calls does a good top 20 need? ({judge} judge)", AXES, lines=lines)


if __name__ == "__main__":
    (HERE / "concepts" / "ranking.svg").write_text(plot(TABLES.read_text(encoding="utf-8")), encoding="utf-8")
