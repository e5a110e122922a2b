"""The benchmarks measure what they say: ranking on worlds that are what it says, depth on pools made by hand."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from support.project import make_project

from raggs.base.artifacts import JudgeRecord
from raggs.config.load import load_config
from raggs.stats.agreement import cohen_kappa

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def load(name):
    """The benchmark by its path: tests/ranking would shadow it by name."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(FOLDER))  # its files import each other as siblings, as a script's do
try:
    ranking, depth = load("ranking"), load("depth")
    methods, tables, worlds = map(importlib.import_module, ("ranking_methods", "ranking_tables", "ranking_worlds"))
    projection, grouping = map(importlib.import_module, ("projection", "grouping"))
    partial, economy, distributions = map(importlib.import_module, ("partial", "economy", "distributions"))
    uses = importlib.import_module("distribution_uses")
    throughput, scale, parts = map(importlib.import_module, ("throughput", "scale", "parts"))
    house, callpaths = map(importlib.import_module, ("house", "callpaths"))
    living = importlib.import_module("living_worlds")
finally:
    sys.path.remove(str(FOLDER))


def world_of(utility, human=None) -> worlds.World:
    utility = np.array(utility, dtype=float)
    ids = tuple(f"p{index:02d}" for index in range(utility.size))
    human = utility if human is None else np.array(human, dtype=float)
    return worlds.World("q1", ids, human, utility, human)


@given(st.permutations(range(12)))
def test_tau_is_scipys(places):
    assert worlds.tau(np.array(places)) == pytest.approx(kendalltau(range(12), places).statistic)


def test_measures_of_an_order_made_by_hand():
    world = world_of([5, 4, 3, 2, 1, 1.5], human=[5, 4, 3, 2, 1, 1])
    found = worlds.measures(world, np.array([1, 0, 5, 2, 3, 4]), top=4)  # true places 1 0 4 2 3 5
    assert found["tau"] == pytest.approx((15 - 2 * 3) / 15)
    assert found["tau20"] == pytest.approx((6 - 2 * 1) / 6)  # the true top stands as 1 0 2 3
    assert found["ov20"] == 3 / 4
    assert found["ov10"] == 1.0
    log = np.log2([2, 3, 4, 5])
    assert found["ndcg"] == pytest.approx((3 / log[0] + 4 / log[1] + 2 / log[3]) / ([4, 3, 2, 1] / log).sum())


def test_a_pool_without_gain_has_an_ndcg_of_one():
    assert worlds.ndcg(np.zeros(5), 20) == 1.0


def test_worlds_follow_from_seed_and_query_and_are_noisy_as_stated():
    queries = worlds.synthetic_queries(40, seed=1)
    made = [worlds.make_world(query, seed) for query in queries for seed in (1, 2)]
    assert all(len(world.ids) == len(set(world.ids)) == worlds.POOL for world in made)
    human, utility, grades = (np.concatenate([getattr(w, n) for w in made]) for n in ("human", "utility", "grades"))
    assert (utility - human).std() == pytest.approx(worlds.SPREAD, rel=0.05)
    inner = (human > 1) & (human < 5)
    assert (grades != human)[inner].mean() == pytest.approx(worlds.SLIP, abs=0.04)
    assert set(np.unique(abs(grades - human))) == {0.0, 1.0}
    assert grades.min() == 1
    assert grades.max() == 5
    again = worlds.make_world(queries[3], 2)
    np.testing.assert_array_equal(again.utility, made[7].utility)
    assert all(set(query.grades) <= set(world.ids) for query, world in zip(queries, made[::2], strict=True))


def answers(judge, world, shown, count=1500):
    ask = worlds.make_judge(judge, world, 1)
    return [ask(np.array(shown)) for _ in range(count)]


def test_the_plain_judge_is_bradley_terry_on_pairs():
    wins = np.mean([answer[0] == 0 for answer in answers(worlds.Judge(3.0), world_of([2.0, 1.7]), [1, 0])])
    assert wins == pytest.approx(1 / (1 + np.exp(-0.9)), abs=0.04)


def test_the_biased_judge_lifts_the_first_by_its_whole_bonus():
    judge = worlds.Judge(3.0, position=1.2)
    wins = np.mean([answer[0] == 1 for answer in answers(judge, world_of([2.0, 1.0]), [1, 0])])
    assert wins == pytest.approx(1 / (1 + np.exp(-0.6)), abs=0.04)


def test_the_consistent_judge_never_changes_its_mind():
    world = worlds.make_world(worlds.synthetic_queries(1, 1)[0], 1)
    ask = worlds.make_judge(worlds.JUDGES["self-consistent"], world, 1, "one")
    other = worlds.make_judge(worlds.JUDGES["self-consistent"], world, 1, "another")
    shown = np.arange(0, 40, 4)
    np.testing.assert_array_equal(ask(shown), other(shown[::-1]))
    pairs = [ask(np.array([i, j]))[0] for i in range(40) for j in range(i)]
    better = [i if world.utility[i] > world.utility[j] else j for i in range(40) for j in range(i)]
    assert 0.01 < np.mean(np.array(pairs) != better) < 0.25


def test_invalid_answers_come_as_often_as_stated():
    given = answers(worlds.JUDGES["invalid 10 %"], world_of([2.0, 1.7]), [1, 0])
    assert np.mean([answer is None for answer in given]) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_orders_the_pool_at_every_budget_also_without_answers(name):
    world = worlds.make_world(worlds.synthetic_queries(1, 2)[0], 1)
    for judge in (worlds.JUDGES["sharp"], worlds.Judge(3.0, invalid=1.0)):
        ask = worlds.make_judge(judge, world, 1)
        found = list(methods.METHODS[name](world, ask, (4, 12), np.random.default_rng(1)))
        assert [snapshot.budget for snapshot in found] in ([0], [1], [4], [4, 12])
        for snapshot in found:
            assert snapshot.calls == snapshot.budget
            np.testing.assert_array_equal(np.sort(snapshot.order), np.arange(40))


def test_confidence_counts_locks_and_inversions_against_the_truth():
    world = worlds.make_world(worlds.synthetic_queries(1, 3)[0], 1)
    ask = worlds.make_judge(worlds.JUDGES["noisy"], world, 1)
    (snapshot,) = methods.engine("online")(world, ask, (60,), np.random.default_rng(1))
    found = ranking.confidence(world, snapshot.ranking)
    utility = dict(zip(world.ids, world.utility, strict=True))
    head = snapshot.ranking.order[:20]
    wrong = sum(utility[a] < utility[b] for place, a in enumerate(head) for b in head[place + 1 :])
    assert found["actual"] == wrong > 0
    assert found["wrong"] == sum(utility[lock.winner] < utility[lock.loser] for lock in snapshot.ranking.locks)


def test_the_first_of_a_list_say_nothing_of_how_the_others_stand():
    world = worlds.make_world(worlds.synthetic_queries(1, seed=3)[0], 1)
    whole, first = np.arange(5)[None], np.array([[0, 1, 4, 2, 3]])

    def told(order, asked):
        options = {"top": 10, "batch_size": 5, "max_calls": 9, "echo": 0.0, "favour": False}
        ranker = partial.FirstRanker(world.ids, world.grades.tolist(), **options).only(asked)
        (shown,) = ranker.next_batches(1)
        ranker.observe([sorted(shown)[at] for at in order[0]])
        found = ranker.ranking()
        return dict(zip(found.order, found.scores, strict=True)), ranker.posterior.covariance

    for asked, order in ((2, first), (4, whole)):
        (scores, doubt), (others, other) = told(order, asked), told(whole, asked if asked < 4 else 5)
        assert scores == pytest.approx(others) and doubt == pytest.approx(other)
    assert told(first, 5)[0] != pytest.approx(told(whole, 5)[0])
    cheap, dear = (partial.Way(20, count, priced=True).calls for count in (3, 5))
    assert 10 < dear < cheap < 11


def test_tables_replace_only_their_region():
    page = f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n"
    assert tables.put_between_markers(page, r"new \1") == f"before\n{tables.BEGIN}\n\nnew \\1\n\n{tables.END}\nafter\n"
    for broken in ("nothing", page + page, page.replace(tables.END, "")):
        with pytest.raises(ValueError, match="needs one region"):
            tables.put_between_markers(broken, "new")


def test_mean_and_standard_error():
    assert tables.mean_error([1.0, 2.0, 3.0]) == (2.0, pytest.approx(1 / np.sqrt(3)))


def test_a_small_run_prints_and_writes_the_same_tables(tmp_path, capsys):
    out = tmp_path / "tables.md"
    ranking.main(["--quick", "--queries", "3", "--judges", "medium", "--jobs", "1", "--out", str(out)])
    printed = capsys.readouterr().out
    assert printed.strip() in out.read_text()
    assert printed.startswith("3 odd queries of a synthetic collection")
    for name in (*map(tables.label, methods.METHODS), "Paired differences", "Confidence", "With a stopping rule"):
        assert name in printed


def test_the_calls_for_a_quality_are_interpolated_in_the_logarithm():
    rising = np.array([0.1, 0.2, 0.3, 0.3, 0.25, 0.6, 0.7])  # at 10, 15, 20, 30, 40, 60 and 80 calls
    assert distributions.calls_for(rising, 0.2) == pytest.approx(15)
    assert distributions.calls_for(rising, 0.45) == pytest.approx(np.sqrt(40 * 60))
    assert (distributions.calls_for(rising, 0.0), distributions.calls_for(rising, 0.9)) == pytest.approx((10, 80))
    curve = np.stack([np.zeros(7), rising, rising, 1 - rising], axis=1)[None]
    for measure in (1, 2, 3):
        np.testing.assert_allclose(distributions.shares_of_calls(curve, curve, measure, 20), [1.0])


@pytest.mark.parametrize("kind", ["calibrated", "over-confident", "under-confident", "useless"])
def test_the_simulated_judge_of_grades_states_what_it_is_said_to(kind):
    queries = worlds.synthetic_queries(20, 1)
    shares = distributions.grade_shares(queries, 1)
    rows, labels = distributions.cases(queries, 1, shares, distributions.Setting("", "grade", kind, 0))
    table = distributions.reliability(rows, labels)
    error = distributions.calibration_error(table)
    assert error < 0.02 if kind == "calibrated" else error > 0.02
    others, _ = distributions.cases(queries, 1, shares, distributions.Setting("", "grade", "calibrated", 0))
    if kind == "useless":
        same = distributions.grades_of(np.array(rows)) == distributions.grades_of(np.array(others))
        assert same.all() and not np.allclose(rows, others)


def test_further_uses_of_probabilities_are_measured_on_the_same_passages(capsys, monkeypatch):
    monkeypatch.setattr(uses, "DRAWS", 5)
    found = uses.Collection(worlds.synthetic_queries(12, 1), 1, "calibrated")
    hits = found.hits(1.0, found.human)
    assert hits.qrels.grade.tolist() == found.human.tolist(), "rows of both are in the same order"
    right = uses.Collection(worlds.synthetic_queries(12, 1), 1, "exact")
    for measured in (uses.uncertain(right), uses.cascaded(right)):
        assert next(value for name, value in measured.items() if name.startswith(("error", "missed"))) == 0
    assert uses.uncertain(right)["covered"] == 1
    monkeypatch.setattr(uses.sys, "argv", ["distribution_uses.py", "--quick"])
    assert uses.main() == 0
    printed = capsys.readouterr().out
    for title in uses.TABLES:
        assert f"### {title}" in printed


def test_an_unknown_judge_is_refused(capsys):
    with pytest.raises(SystemExit):
        ranking.main(["--judges", "medium,blind"])
    assert "unknown judge: blind" in capsys.readouterr().err


def test_a_line_of_the_depth_table_made_by_hand():
    records = [
        JudgeRecord(
            qid=qid, rank=place + 1, doc_id=f"d{place}", grade=None if skipped else 1, judge="", skipped=skipped
        )
        for qid, asked in (("q1", 30), ("q2", 1), ("q3", 2))
        for place in range(30)
        for skipped in ("far" if place >= asked else None,)
    ]
    good = {("q1", f"d{place}") for place in range(30)} | {("q2", "d0"), ("q2", "d5"), ("q2", "d9"), ("q4", "d0")}
    # Of q2 one of three is found, of q1 all, q3 has none to find.
    assert depth.row("7", records, good) == "| 7 | 33 | 63.3% | 2 of 33 | 1 of 2 | 0.3333 |"


def test_deeper_walks_judge_more_and_miss_less(tmp_path, capsys):
    make_project(tmp_path, queries=3, corpus=30)
    (tmp_path / "qrels.txt").rename(tmp_path / "qrels.trec")
    depth.main([str(tmp_path), "--depths", "1,3,off"])
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    asked, missed = ([int(line[column].split()[0]) for line in rows] for column in (2, 4))
    assert asked == sorted(set(asked))
    assert missed[0] > missed[-1] == 0


def test_throughput_says_whether_both_aims_are_kept(tmp_path):
    kept = throughput.Measured("judge", 2000, wall_s=17.4, command_s=19.0, cpu_s=11.9)
    assert kept.line(0.5, 64).endswith("pass")
    for missed in (replace(kept, wall_s=17.5), replace(kept, cpu_s=12.1)):
        assert missed.line(0.5, 64).endswith("FAIL")
    config = load_config(throughput.make(tmp_path, 3, 8, "http://localhost:1/v1")).run
    assert (config.llm.concurrency, config.llm.requests_per_minute) == (8, None)


@pytest.mark.nightly
def test_a_measured_process_has_its_own_peak_and_its_failure_is_told():
    hungry = "data = bytearray(300_000_000); data[::4096] = data[::4096]"
    # In a small process of its own, since no child's peak is below what its parent held.
    script = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r}); from scale import measured\n"
        f"for code in ({hungry!r}, 'pass'): print(measured([sys.executable, '-c', code], 1).peak)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    peak, small = map(float, found.split())
    assert 286 < peak < 500
    assert small < 286, "not that of the child before"
    with pytest.raises(SystemExit, match="exit code 3"):
        scale.measured([sys.executable, "-c", "raise SystemExit(3)"], 1)


def test_the_drawing_of_a_linear_law_has_its_points_on_the_dashed_line():
    points = [scale.Point(size, 0.0, size / 50, 250.0, 0) for size in (100, 1000, 10000)]
    panel = scale.panel("time", 0, [(point.size, point.cpu) for point in points], 1)
    dots = [(float(x), float(y)) for x, y in re.findall(r'circle cx="([\d.]+)" cy="([\d.]+)"', panel)]
    ends = re.search(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" stroke="#888"', panel).groups()
    assert [dots[0], dots[-1]] == [tuple(map(float, ends[:2])), tuple(map(float, ends[2:]))]
    assert dots[1] == pytest.approx(np.mean([dots[0], dots[2]], axis=0), abs=0.2)
    ElementTree.fromstring(scale.drawing(points))
    assert "| 1,000 | 0.0 | 20.0 | 20.0 | 250 MiB | 0.0 MB |" in scale.table(points)


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize("part", parts.PARTS, ids=lambda part: f"{part.name}, {part.reference}")
def test_every_part_does_its_work_and_its_yardsticks(part, tmp_path):
    for work in part.pair(tmp_path):
        work()


def test_a_part_above_its_limit_is_told_why_and_ends_the_command_with_one(capsys):
    ratios = iter([1.0, 9.0, 1.2, 2.0, 9.0, 2.5])
    table = [
        parts.Part(name, "half", 2.0, "it must", lambda folder: parts.Pair(int, int), lambda pair: lambda: next(ratios))
        for name in ("good part", "bad part")
    ]
    assert parts.main(["good", "--repeats", "3"], table) == 0
    assert parts.main(["bad", "--repeats", "3"], table) == 1
    _, good, _, bad = (line.split() for line in capsys.readouterr().out.splitlines())
    assert good == ["good", "part", "half", "1.20", "2.0", "pass"]
    assert bad == ["bad", "part", "half", "2.50", "2.0", "FAIL:", "it", "must"]
    with pytest.raises(SystemExit):
        parts.main(["ugly"], table)
    assert "the parts are good part; bad part" in capsys.readouterr().err


@pytest.mark.nightly
def test_ratios_of_times_and_of_memory():
    held = parts.of_peaks(parts.Pair(lambda: bytes(3_000_000), lambda: bytes(1_000_000)))
    assert held() == pytest.approx(3, rel=0.01)
    clocks = {"process_time": 0.0, "thread_time": 0.0}

    def work(every, own):
        clocks["process_time"] += every
        clocks["thread_time"] += own

    told = parts.Clocks(lambda: clocks["process_time"], lambda: clocks["thread_time"])
    pair = parts.Pair(lambda: work(0.006, 0.004), lambda: work(0.002, 0.001))
    assert parts.of_seconds(pair, told)() == pytest.approx(3)
    assert parts.of_threads(pair, told)() == pytest.approx(1.5)


# --- projected golden sets ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30))
def test_kappa_of_a_table_is_cohens(pairs):
    first, second = zip(*pairs, strict=True)
    if len(set(first) | set(second)) < 2:
        return
    table = np.zeros((5, 5), dtype=np.int64)
    np.add.at(table, (np.array(first) - 1, np.array(second) - 1), 1)
    stated = cohen_kappa(first, second, weights="quadratic", draws=100, seed=1).value
    assert projection.kappa(table) == pytest.approx(stated)


def test_orders_of_systems_are_those_of_their_means_over_drawn_questions():
    one = np.array([[0.1, 0.9], [0.2, 0.5], [0.3, np.nan]])
    assert projection.tau(one, one, np.ones(2)) == pytest.approx(1)
    assert projection.tau(one, -one, np.ones(2)) == pytest.approx(-1)
    assert projection.tau(one, np.array([[1.0], [2.0], [3.0]]) * [1, 1], np.array([1.0, 0.0])) == pytest.approx(1)


def test_eight_systems_search_and_three_of_them_fuse():
    texts = ["The otter swims in the river.", "A maple stands on the hill.", "Pearls lie in the sea."] * 20
    found = dict(projection.systems(["Where is the otter?", "What stands on the hill?"], texts))
    assert len(found) == 8
    assert all(run.qids == ("q000", "q001") for run in found.values())
    best = {name: texts[int(run.docs.text(0))] for name, run in found.items()}
    assert set(best.values()) == {texts[0]}


def test_the_group_context_effect_changes_grades_and_the_cost_follows_the_prompts():
    query = worlds.synthetic_queries(1, seed=1)[0]
    alone, together = grouping.Way(1), grouping.Way(5)
    for judge in [grouping.Judge(context=share) for share in (0.0, 0.3, -0.3)]:
        bench = grouping.Bench.of(query, judge, 1)
        one, five = (grouping.graded(bench, judge, way) for way in (alone, together))
        assert (one == five).all() == (judge.context == 0)
        assert (five.std() < one.std()) == (judge.context > 0), "grades move towards the group or away from it"
    assert grouping.price(together, 100) < grouping.price(alone, 100)
    assert [grouping.pays(together, need) for need in (1.0, 3.0)] == ["any", "none"]
    assert re.fullmatch(r"below [\d,]+", grouping.pays(together, 1.1))


def test_the_top_of_a_pool_keeps_the_values_of_its_passages():
    whole = world_of([1.0, *range(30, 5, -1)])
    found = economy.top_only(whole)
    assert found.ids == whole.ids[1:21]
    assert found.utility.tolist() == found.human.tolist() == found.grades.tolist() == list(range(30, 10, -1))


@pytest.fixture
def small_package(tmp_path):
    """A package of three modules: `first` and `second` import each other, one of them inside of a function."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Exports."""\n\nfrom small.first import Thing\n')
    (folder / "first.py").write_text(
        '"""A class."""\n\nLIMIT = 3\n\n\nclass Thing:\n    size: int\n\n    class Config:\n        depth: int\n\n'
        '    def grow(self, by: int) -> int:\n        """Return more."""\n        from small.second import twice\n\n'
        "        # twice as much\n        return twice(self.size + by)\n"
    )
    (folder / "second.py").write_text(
        "from small import Thing\n\n\nclass Thing2:\n    class Config:\n        pass\n\n\nclass Other:\n"
        "    class Thing:\n        pass\n\n\ndef twice(number: int) -> int:\n    return 2 * number\n"
    )
    return folder


def test_the_figures_of_a_small_package(small_package):
    found = house.look(small_package)
    sizes = {name: len(module.lines) for name, module in found.modules.items()}
    assert sizes == {"small": 1, "small.first": 8, "small.second": 9}
    assert found.working_share == 4 / 18  # two lines with `pass`, and a `return` in each of the two functions
    assert found.shared_names == {"Thing": 2}
    assert found.one_word_classes == 3
    assert found.entries == {"first", "second"}
    assert found.cycles == []
    assert found.late_cycles == [{"small", "small.first", "small.second"}]
    assert found.importers == {"small.first": {"small.second"}, "small.second": {"small.first"}}


def test_calls_of_a_command_are_counted_in_its_package_alone(small_package, monkeypatch):
    monkeypatch.syspath_prepend(str(small_package.parent))
    thing = importlib.import_module("small.first").Thing()
    thing.size = 1
    counter = callpaths.CallCounter(small_package)
    sys.setprofile(counter)
    try:
        sorted([3, 1], key=lambda number: thing.grow(number))
    finally:
        sys.setprofile(None)
        for name in ("small", "small.first", "small.second"):
            sys.modules.pop(name, None)
    assert counter.figures() == [2, 2, 2, 2]


@pytest.mark.nightly
def test_the_commands_that_are_counted_still_work():
    found = callpaths.count_commands(FOLDER.parent / "raggs")
    assert list(found) == ["run", "eval", "export", "show"]
    assert all(int(figure) > 3 for figures in found.values() for figure in figures.split(", "))


def test_the_judge_of_changing_documents_errs_by_text_and_query():
    world = living.World(
        {}, {"q": "where is the oil", "p": "who left"}, {"q": [("oil is in the tank below", 5)], "p": []}
    )
    judge, other = living.Judge(world, 1, noise=1.0), living.Judge(world, 2, noise=1.0)
    texts = [f"The oil is in the tank below number {number} of the ship." for number in range(40)]
    grades = [judge.graded("q", text) for text in texts]
    assert grades == [judge.graded("q", text) for text in texts]
    assert grades != [other.graded("q", text) for text in texts]
    assert {judge.truth("q", text) for text in texts} == {5}
    assert {judge.truth("p", text) for text in texts} == {1}


def test_a_history_changes_the_share_of_documents_that_it_says():
    documents = {f"d{number:03}": f"One {number}. Two {number}. Three {number}. Four." for number in range(220)}
    found = living.change(living.World(documents, {}, {}), 0.2, 0.1, 3)
    assert found.changed == {"edited": 20, "split": 6, "merged": 6, "removed": 8, "added": 20}
    same = [name for name, text in found.before.items() if found.after.get(name) == text]
    assert len(found.before) == 200
    assert 160 <= len(same) <= 163
    assert found.changed["added"] == len(set(found.after) & (set(documents) - set(found.before)))
