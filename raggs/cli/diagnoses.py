"""The commands of `raggs diagnose`, one module a kind: a function of `DiagnosisFlags` and of its own typed flags.

    @grouped
    def names(
        shared: DiagnosisFlags,
        runs: Annotated[int | None, typer.Option("--runs", metavar="N", help="...")] = None,
        debug: Debug = False,
    ) -> None:
        run_kind("names", shared, runs=runs)

A flag that is left out is None, and the kind's own default holds: no default is written here.

`raggs diagnose depth`.

`raggs diagnose index`.

`raggs diagnose judge`.

`raggs diagnose names`: its own flags.

`raggs diagnose noise`: its own flags.

`raggs diagnose precision`.

`raggs diagnose retrieval`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnose_options import DiagnosisFlags, run_kind
from raggs.cli.options import grouped


@grouped
def depth(
    shared: DiagnosisFlags,
    mode: Annotated[str | None, typer.Option("--mode", metavar="MODE", help="hybrid, or dense.")] = None,
    base: Annotated[int | None, typer.Option("--base", metavar="K", help="Candidates of a question; 50.")] = None,
    deep: Annotated[int | None, typer.Option("--deep", metavar="K", help="Where a signal fires; 100.")] = None,
    near: Annotated[
        int | None, typer.Option("--near", metavar="K", help="Cutoff at which quality must not fall; 10.")
    ] = None,
    far: Annotated[
        int | None, typer.Option("--far", metavar="K", help="Where it is to rise; 30, or --deep with no reranker.")
    ] = None,
    most: Annotated[
        float | None, typer.Option("--most", metavar="SHARE", help="Of the questions that may go deep; 0.5.")
    ] = None,
    loss: Annotated[
        float | None, typer.Option("--loss", metavar="X", help="By which quality may fall at --near; 0.01.")
    ] = None,
    slo: Annotated[
        float | None,
        typer.Option("--slo", metavar="MS", help="Milliseconds that 95% of single searches by a router must keep."),
    ] = None,
    timed: Annotated[
        int | None, typer.Option("--timed", metavar="N", help="Questions that are timed; 0: none.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say whether some questions are worth a deeper search, and write the router.

    Thresholds are fitted on even questions and told on odd ones; --out gets a
    routed.yaml, which raggs run takes, where a router pays.

    \b
    Examples:
      raggs diagnose depth --config raggs.yaml --reranker onnx:models/minilm
      raggs diagnose depth -c raggs.yaml -g runs/demo --mode dense --slo 500
    """
    run_kind(
        "depth",
        shared,
        mode=mode,
        base=base,
        deep=deep,
        near=near,
        far=far,
        most=most,
        loss=loss,
        slo_ms=slo,
        timed=timed,
    )


@grouped
def index(
    shared: DiagnosisFlags,
    index: Annotated[
        list[str] | None,
        typer.Option("--index", metavar="LIST", help="type:setting=value; hnsw, ivf and ivf with pq if left out."),
    ] = None,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", metavar="NAME=LIST", help="Values to try: m=8,16 or reorder=2,10.")
    ] = None,
    k: Annotated[
        list[int] | None, typer.Option("--k", metavar="N", help="Hits wanted; 10 and 100 if left out.")
    ] = None,
    held_out: Annotated[
        int | None, typer.Option("--held-out", metavar="N", help="Passages kept out of indexes and asked for.")
    ] = None,
    level: Annotated[
        list[float] | None, typer.Option("--level", metavar="SHARE", help="Mean recalls to compare indexes at.")
    ] = None,
    tune: Annotated[
        str | None, typer.Option("--tune", metavar="LOSS", help="Find the least effort: 1% of loss at 10 and 30.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", metavar="NAME", help="What is lost, by a golden set: n_recall4.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", help="Hits wanted when tuning; the retriever's k.")
    ] = None,
    fix: Annotated[
        str | None,
        typer.Option("--fix", metavar="WHAT=LEAST", help="recall=.9, robustness=.99 or qps=500: the others' front."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", metavar="SHARE", help="Recall that counts as robust in --fix.")
    ] = None,
    correct: Annotated[
        Path | None, typer.Option("--correct", metavar="FILE", help="qid,setting,correct: to choose delta by answers.")
    ] = None,
    near: Annotated[
        float | None, typer.Option("--near", metavar="SHARE", help="Of the exact search's accuracy, for --correct.")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="Vectors as .npy, in place of a corpus.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Vectors of questions as .npy.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say what approximate indexes lose, for which questions, and which effort is enough.

    \b
    Examples:
      raggs diagnose index --config raggs.yaml
      raggs diagnose index --config raggs.yaml --index hnsw --tune 1%
      raggs diagnose index --vectors passages.npy --queries questions.npy
    """
    words = None if index is None else [word for each in index for word in each.split(",")]
    run_kind(
        "index", shared, indexes=words, vary=vary, k=k, held_out=held_out, levels=level, tune=tune, measure=measure,
        depth=depth, fix=fix, delta=delta, correct=correct, near=near, vectors=vectors, queries=queries,
    )  # fmt: skip


@grouped
def judge(
    shared: DiagnosisFlags,
    pools: Annotated[int | None, typer.Option("--pools", metavar="N", help="Pools that are ordered.")] = None,
    size: Annotated[int | None, typer.Option("--size", metavar="N", help="Passages of a pool, at most.")] = None,
    showings: Annotated[
        int | None, typer.Option("--showings", metavar="N", help="Orders in which one prompt shows a pool.")
    ] = None,
    repeats: Annotated[int | None, typer.Option("--repeats", metavar="N", help="Asks of each of these.")] = None,
    rankings: Annotated[
        int | None, typer.Option("--rankings", metavar="N", help="Rankings of each pool by the rank stage.")
    ] = None,
    top: Annotated[int | None, typer.Option("--top", metavar="N", help="How many of the first are compared.")] = None,
    debug: Debug = False,
) -> None:
    """Say whether the judge orders alike, and what the rank stage buys.

    \b
    Examples:
      raggs diagnose judge --config raggs.yaml --dry-run
      raggs diagnose judge --config raggs.yaml --pools 5 --rankings 1
    """
    run_kind(
        "judge",
        shared,
        pools=pools,
        size=size,
        showings=showings,
        repeats=repeats,
        rankings=rankings,
        top=top,
    )


NameLanguages = Annotated[
    list[str] | None, typer.Option("--language", metavar="CODE", help="Of the probes: en, fr; both if left out.")
]
Questions = Annotated[int | None, typer.Option("--questions", metavar="N", help="A language. [100]")]
Runs = Annotated[int | None, typer.Option("--runs", metavar="N", help="With fresh impostors and wordings. [15]")]
RerankerRuns = Annotated[int | None, typer.Option("--reranker-runs", metavar="N", help="That rerankers score. [3]")]
Perturbers = Annotated[
    list[str] | None,
    typer.Option("--perturber", metavar="NAME", help="See raggs list perturbers; all ten if left out. Repeatable."),
]
LeastLoss = Annotated[
    float | None, typer.Option("--least-loss", metavar="PCT", help="A destroyed identity must cost so much. [50]")
]
MostLoss = Annotated[
    float | None, typer.Option("--most-loss", metavar="PCT", help="Another form may cost so much. [20]")
]
Raw = Annotated[bool | None, typer.Option("--raw", help="Read texts as they stand, without Unicode hygiene.")]
NameField = Annotated[str | None, typer.Option("--name-field", metavar="FIELD", help="Of the corpus, with names.")]
TopicField = Annotated[
    str | None, typer.Option("--topic-field", metavar="FIELD", help="Of the corpus, with topics, e.g. title.")
]
EndToEnd = Annotated[
    bool | None,
    typer.Option("--end-to-end/--probes-only", help="Perturb a golden set's questions with names, too."),
]
Cutoff = Annotated[int | None, typer.Option("--cutoff", metavar="K", help="Of N-Recall4+ over these. [10]")]


@grouped
def names(
    shared: DiagnosisFlags,
    language: NameLanguages = None,
    questions: Questions = None,
    runs: Runs = None,
    reranker_runs: RerankerRuns = None,
    perturber: Perturbers = None,
    raw: Raw = None,
    least_loss: LeastLoss = None,
    most_loss: MostLoss = None,
    name_field: NameField = None,
    topic_field: TopicField = None,
    end_to_end: EndToEnd = None,
    cutoff: Cutoff = None,
    debug: Debug = False,
) -> None:
    """Does it still find the right person? Name margins, and what destroys them.

    Each question names a person and a topic and meets five candidates: the right
    one, two with other people, one on another topic, one with neither. Ten changes
    of the texts say what an embedder or reranker holds on to. With a golden set,
    its questions that hold names are changed, too, and searched for again.

    \b
    Examples:
      raggs diagnose names
      raggs diagnose names --embedder wordllama --embedder onnx:models/minilm
      raggs diagnose names -c raggs.yaml --name-field author --topic-field title
      raggs diagnose names --golden runs/demo --language en
    """
    run_kind(
        "names",
        shared,
        languages=language or None,
        questions=questions,
        runs=runs,
        reranker_runs=reranker_runs,
        perturbers=perturber or None,
        raw=raw,
        least_loss=least_loss,
        most_loss=most_loss,
        name_field=name_field,
        topic_field=topic_field,
        end_to_end=end_to_end,
        cutoff=cutoff,
    )


NoiseLanguages = Annotated[
    list[str] | None, typer.Option("--language", metavar="CODE", help="Of the questions: en, fr; both if left out.")
]
Levels = Annotated[list[int] | None, typer.Option("--level", metavar="N", help="Of noise, 0 to 4; all if left out.")]
Noises = Annotated[
    list[str] | None,
    typer.Option("--noise", metavar="NAME", help="See raggs list noises; all if left out."),
]
Rewriters = Annotated[
    list[str] | None,
    typer.Option("--rewriter", metavar="NAME", help="clean, llm:MODEL, or your own; clean if left out. Repeatable."),
]
Draws = Annotated[int | None, typer.Option("--draws", metavar="N", help="Of the noise, by cosine. [3]")]
Of = Annotated[str | None, typer.Option("--of", metavar="WHAT", help="own or golden: questions and ideal texts. [own]")]
Retrieval = Annotated[
    bool | None, typer.Option("--search/--cosine-only", help="Search a golden set's questions with noise, too.")
]
Searched = Annotated[
    list[int] | None, typer.Option("--searched-level", metavar="N", help="With which they are searched. [2 and 4]")
]
Depth = Annotated[int | None, typer.Option("--depth", metavar="N", help="Passages of each list. [50]")]
Cutoffs = Annotated[list[int] | None, typer.Option("--cutoff", metavar="K", help="Of measures and overlaps. [10, 30]")]


@grouped
def noise(
    shared: DiagnosisFlags,
    language: NoiseLanguages = None,
    level: Levels = None,
    noises: Noises = None,
    rewriter: Rewriters = None,
    draws: Draws = None,
    of: Of = None,
    retrieval: Retrieval = None,
    searched: Searched = None,
    depth: Depth = None,
    cutoff: Cutoffs = None,
    debug: Debug = False,
) -> None:
    """What do greetings and digressions cost, and what does rewriting bring back?

    Questions are asked with noise in levels and compared to the text that answers
    them best. With a golden set and its corpus its questions are searched with
    noise, too: by words, by vectors, by both, and reranked where one is named.

    \b
    Examples:
      raggs diagnose noise
      raggs diagnose noise --golden runs/demo --rewriter clean
      raggs diagnose noise -c raggs.yaml --rewriter llm:gpt-5-mini --dry-run
    """
    run_kind(
        "noise",
        shared,
        languages=language or None,
        levels=level or None,
        noises=noises or None,
        rewriters=rewriter or None,
        draws=draws,
        of=of,
        retrieval=retrieval,
        searched=searched or None,
        depth=depth,
        cutoffs=cutoff or None,
    )


@grouped
def precision(
    shared: DiagnosisFlags,
    measures: Annotated[
        str | None, typer.Option("--measures", "-m", metavar="NAMES", help="With commas, without cutoffs.")
    ] = None,
    cutoff: Annotated[
        int | None, typer.Option("--cutoff", "-k", metavar="K", help="At which questions are told apart.")
    ] = None,
    deepest: Annotated[int | None, typer.Option("--deepest", metavar="K", help="Last cutoff of the curves.")] = None,
    candidates: Annotated[
        int | None, typer.Option("--candidates", metavar="N", help="Of a question, that rerankers are given.")
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run", "-r", "--runs", metavar="[NAME=]PATH", help="Lists with scores, in place of models; repeatable."
        ),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            "--scores",
            metavar="score|logit|logits",
            help="What the files hold: scores, logits, or two each (logit_no, logit_yes).",
        ),
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", metavar="POINTS", help="The widest range that still passes.")
    ] = None,
    debug: Debug = False,
) -> None:
    """What 16 bits make of scores: ties, ranges, reversals, leaks.

    Scores in f32, f16 and bf16, with and without the last step in float32 (HPS): each measure
    as it stands, by expectation, at least and at most.

    \b
    Examples:
      raggs diagnose precision --config raggs.yaml
      raggs diagnose precision --golden qrels.txt --run a.trec --run b.trec
    """
    run_kind(
        "precision",
        shared,
        measures=None if measures is None else tuple(filter(None, map(str.strip, measures.split(",")))),
        cutoff=cutoff,
        deepest=deepest,
        candidates=candidates,
        runs=None if runs is None else tuple(runs),
        scores=scores,
        limit=limit,
    )


@grouped
def retrieval(
    shared: DiagnosisFlags,
    runs: Annotated[
        list[str] | None,
        typer.Option("--run", "-r", metavar="[NAME=]PATH", help="Lists of a system, or a run; repeatable."),
    ] = None,
    values: Annotated[
        Path | None, typer.Option("--values", metavar="FILE", help="eval.json of raggs eval, in place of --run.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", "-m", metavar="NAME", help="By which questions fail, such as ndcg@10.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="What others are held against; else the first.")
    ] = None,
    pool: Annotated[int | None, typer.Option("--pool", metavar="N", help="Candidates of a system.")] = None,
    failing: Annotated[
        float | None, typer.Option("--failing", metavar="X", help="A question fails whose value lies below.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Say which questions fail, what they share, and what to turn.

    \b
    Examples:
      raggs diagnose retrieval --golden runs/demo
      raggs diagnose retrieval -g qrels.txt -c raggs.yaml -r a.trec -r b.trec
    """
    run_kind(
        "retrieval",
        shared,
        runs=runs,
        values=values,
        measure=measure,
        baseline=baseline,
        pool=pool,
        failing=failing,
    )
