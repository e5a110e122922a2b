"""Reports from files: of labels, of a sweep over them, of an evaluation that there is; and what is refused."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import make_project
from support.sweeping import SweepProject, make_sweep

import raggs
from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedFiles
from raggs.app.evaluate import evaluate
from raggs.app.report import ReportRequest, gather, report, write_report_page
from raggs.base.errors import DataError, UsageError
from raggs.evaluation.layout import write_report
from raggs.reporting.base import ReportedSweep
from raggs.reporting.sections.decision import DecisionSection
from raggs.reporting.sections.results import SweepsSection, SystemsSection, _three_decimals
from raggs.runs.manifests.models import RunManifest, utc_now
from raggs.runs.manifests.store import RunStore
from raggs.sweeps.layout import lay_out
from raggs.sweeps.messages import OF_RUN


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SweepProject:
    made = make_sweep(tmp_path_factory.mktemp("report"))
    made.sweep()
    return made


def lists(project: SweepProject) -> tuple[str, ...]:
    return tuple(f"{mode}={next((project.out / 'runs').glob(f'{mode}*k20.trec'))}" for mode in ("lexical", "dense"))


def test_the_first_system_is_the_baseline_and_the_values_are_those_of_the_evaluation(project: SweepProject) -> None:
    facts = gather(ReportRequest(project.folder, lists(project)))
    part = SystemsSection().data(facts)
    assert part is not None
    assert (part.baseline, part.systems[part.shown]) == ("lexical", "dense")
    score = evaluate(EvalRequest(JudgedFiles(project.folder, lists(project)))).report.systems[1].scores["ra_nwg@10"]
    known = [value for value in part.values[0][1] if value is not None]
    assert sum(known) / len(known) == pytest.approx(score.mean, abs=1e-5)
    assert len(part.figures) == 3


def test_a_sweeps_choice_is_sure_only_where_it_stands_when_questions_are_drawn_anew(project: SweepProject) -> None:
    facts = gather(ReportRequest(project.folder, sweeps=(project.out,)))
    sweep = facts.sweeps[0].report
    part = SweepsSection().data(facts)
    assert part is not None and len(part.sweeps[0].figures) == 4
    for share, count, answer in ((0.96, 10, "better"), (0.94, 10, "inconclusive"), (0.96, 9, "inconclusive")):
        wins = (sweep.wins[0].model_copy(update={"system": sweep.choice.winner, "share": share}),)
        choice = sweep.choice.model_copy(update={"inconclusive": {}})
        told = sweep.model_copy(update={"wins": wins, "questions": count, "choice": choice})
        box = DecisionSection().data(replace(facts, sweeps=(ReportedSweep(told),)))
        assert box.sweeps[0].answer == answer
        assert box.sweeps[0].said[0] == sweep.choice.sentence
        open_ = ReportedSweep(told.model_copy(update={"choice": sweep.choice}))
        unsure = DecisionSection().data(replace(facts, sweeps=(open_,)))
        assert unsure.sweeps[0].answer == "inconclusive", "unjudged passages could put another system before it"
        assert any(said.endswith(" unjudged.") for said in unsure.sweeps[0].said)


def test_the_command_that_judges_passages_names_the_configuration_of_the_sweep(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    raggs.sweep(project.config)
    facts = gather(ReportRequest(project.folder, sweeps=(project.out,)))
    (found,) = facts.sweeps
    sweep, config = found.report, found.config
    assert Path(config).samefile(project.config)
    part = next(iter(sweep.choice.inconclusive.values())).model_copy(update={"remedy": OF_RUN})
    told = sweep.model_copy(
        update={"choice": sweep.choice.model_copy(update={"inconclusive": {sweep.systems[0].name: part}})}
    )
    (shown,) = SweepsSection().data(replace(facts, sweeps=(ReportedSweep(told, config),))).sweeps  # type: ignore[union-attr]
    assert shown.command == f"raggs sweep --config {shlex.quote(config)} --judge-holes"
    assert not any("raggs sweep" in each for s in (*shown.about, *shown.rest) for each in s.sentences)
    (unknown,) = SweepsSection().data(replace(facts, sweeps=(ReportedSweep(told),))).sweeps  # type: ignore[union-attr]
    step = "Next: raggs sweep --config FILE --judge-holes has them judged."
    assert unknown.command == "" and any(step in s.sentences for s in unknown.about)
    details = lay_out(told, config="my.yaml")
    steps = [said for s in details.sections for said in s.sentences if "raggs sweep" in said]
    assert steps and all("raggs sweep --config my.yaml --judge-holes" in each for each in steps)


def test_scores_keep_a_decimal_that_tells_them_apart() -> None:
    assert _three_decimals("ndcg@10 is 0.8629 to 0.8851") == "ndcg@10 is 0.863 to 0.885"
    assert _three_decimals("ndcg@10 is 0.8629 to 0.8631") == "ndcg@10 is 0.8629 to 0.8631"


def test_an_evaluation_that_there_is_stands_for_the_systems(project: SweepProject, tmp_path: Path) -> None:
    asked = EvalRequest(JudgedFiles(project.folder, lists(project)), analyses=AnalysisRequest(baseline="lexical"))
    write_report(evaluate(asked).report, tmp_path)
    page = report(ReportRequest(project.folder, evaluation=tmp_path / "eval.json"))
    assert re.search("Keep lexical|Replace lexical with dense", page)
    with pytest.raises(UsageError, match="--eval already contains systems"):
        gather(ReportRequest(project.folder, lists(project), evaluation=tmp_path / "eval.json"))


def test_numbers_of_another_golden_set_are_refused(project: SweepProject, tmp_path: Path) -> None:
    other = tmp_path / "qrels.txt"
    other.write_text((project.folder / "qrels.txt").read_text().replace("q00 0 p000 1", "q00 0 p000 5"))
    write_report(evaluate(EvalRequest(JudgedFiles(other, lists(project)))).report, tmp_path / "eval")
    with pytest.raises(DataError, match="used other judgments"):
        gather(ReportRequest(project.folder, evaluation=tmp_path / "eval" / "eval.json"))
    with pytest.raises(DataError, match="used other judgments"):
        gather(ReportRequest(other, sweeps=(project.out,)))


def test_the_page_is_written_whole_and_its_command_makes_it_again(project: SweepProject, tmp_path: Path) -> None:
    request = ReportRequest(
        project.folder, lists(project), baseline="dense", texts=False, out=tmp_path / "new" / "r.html"
    )
    written = write_report_page(request)
    assert written.read_text(encoding="utf-8") == report(request)
    words = shlex.split(gather(request).command)
    assert words[:3] == ["raggs", "report", str(project.folder)]
    assert words[-5:] == ["--baseline", "dense", "--no-text", "--out", str(written)]


def test_the_command_writes_the_file_and_names_it(project: SweepProject, tmp_path: Path) -> None:
    runs = [word for each in lists(project) for word in ("--run", each)]
    arguments = ["report", str(project.folder), *runs, "-b", "dense", "-m", "recall@10", "--no-text"]
    done = invoke(*arguments, "--out", tmp_path / "r.html")
    assert (done.exit_code, done.output.split()) == (0, [str(tmp_path / "r.html")])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.search("Keep dense|Replace dense with lexical|lexical and dense are equivalent", page)
    assert "recall@10" in page and "ra_nwg@10" not in page
    again = invoke("report", project.folder, "--eval", "gone.json")
    assert again.exit_code == 4


def test_a_run_that_is_given_as_a_sweep_is_told_how_its_retrievers_are_scored(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "demo"
    run.mkdir(parents=True)
    RunStore(run).save(RunManifest(name="demo", created=utc_now(), config={}))
    (tmp_path / "qrels.txt").write_text("q1 0 d1 5\n")
    with pytest.raises(UsageError, match=r"names a run, not a sweep — --run \S+demo scores the retrievers of this run"):
        report(ReportRequest(tmp_path / "qrels.txt", sweeps=(run,)))


@pytest.mark.parametrize(
    ("noise", "said"),
    [(0.0, "the judge copies grades from qrels.txt, and gives 1 to passages without a label there"), (0.25, "")],
)
def test_a_judge_that_reads_labels_is_not_called_unvalidated(tmp_path: Path, noise: float, said: str) -> None:
    judge = {"judge": {"type": "qrels", "path": "qrels.txt", "grade_noise": noise}}
    folder = raggs.run(make_project(tmp_path, queries=3, judge=judge).config).store.folder
    assert gather(ReportRequest(folder)).people.why.startswith(said)
    assert bool(gather(ReportRequest(folder)).people.why) == bool(said)
