"""Systems scored against golden sets: the report, its analyses, and the files that present it.

study, report              the scores of every system, and the report that each analysis extends
models                     eval.json
analyses                   one class per question: comparisons, losses, ties, unjudged passages
layout, messages, svg      the report as sections, tables and figures; eval.csv and eval.md
gates                      conditions of CI jobs, and JUnit XML
diff_sets, diff_results    two golden sets compared
samples                    expected passages and outputs in two files

The package depends on neither a configuration nor a terminal.
"""
