"""Use cases, one module each: plain functions from typed requests to typed results.

The command line, Python programs and pages call them. Groups:

- Build a set: run, run_inputs, run_layout, run_result, services, forecast, status, worker.
- Update a set for changed documents and queries: update, update_layout.
- Score systems: evaluate, eval_request, evaluate_functions, search_systems, projection, gates, answers, corrections,
  evaluation_audit.
- Make and import questions: questions, question_results, question_tools, question_gaps, question_evidence, traces.
- Human labels: review, review_plan, review_pool, review_files, serve.
- Validate and compare judges: judge_check, judge_compare, judge_bench, judge_calibration, judge_drift, leaderboard,
  leaderboard_layout.
- Analyses and presentation: sweep, diagnose, chunks, diff, diff_summary, report, show.
- Decide which addresses may receive a key: addresses.
- Everything else: audit, export, init, housekeeping, catalog, and irmeasures (raggs as a provider of ir_measures).
"""
