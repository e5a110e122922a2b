"""The commands of `raggs diagnose`, one module a kind: a function of `DiagnosisFlags` and of its own typed flags.

    @grouped
    def names(
        shared: DiagnosisFlags,
        runs: Annotated[int | None, typer.Option("--runs", metavar="N", help="...")] = None,
        debug: Debug = False,
    ) -> None:
        run_kind("names", shared, runs=runs)

A flag that is left out is None, and the kind's own default holds: no default is written here.
"""
