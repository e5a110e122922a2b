"""`raggs diagnose names`: its own flags."""

from __future__ import annotations

from typing import Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.diagnosing import DiagnosisFlags, run_kind
from raggs.cli.groups import grouped

Languages = Annotated[
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
    language: Languages = None,
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
