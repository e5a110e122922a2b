"""Use cases, one module each: plain functions from typed requests to typed results.

The command line, Python programs and pages call them. Groups:

run, run_inputs, run_layout, run_result, services, forecast, status, worker   build a set; its parts and estimates
update, update_layout                                                  update a set for changed documents and queries
evaluate, eval_request, evaluate_functions, search_systems, projection, gates, answers, corrections,
evaluation_audit                                                       score systems
questions, question_results, question_tools, traces, question_gaps, question_evidence   make and import questions
review, review_plan, review_pool, review_files, serve                  human labels
judge_check, judge_compare, judge_bench, judge_calibration, judge_drift, leaderboard, leaderboard_layout   judges
sweep, diagnose, chunks, diff, diff_summary, report, show              analyses and presentation
audit, export, init, housekeeping, catalog                             everything else
addresses                                                              which addresses may receive a key
irmeasures                                                             raggs as a provider of ir_measures
"""
