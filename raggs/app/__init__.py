"""Use cases, one module each: plain functions from typed requests to typed results.

The command line, Python programs and pages call nothing else. Groups:

run, run_inputs, run_result, services, forecast, status             build a set; its parts and estimates
evaluate, eval_request, evaluate_functions, projection, gates, answers, corrections, evaluation_audit   score systems
questions, question_results, question_tools                         make, import and filter questions
review, review_plan, review_pool, review_files, serve               human labels
judge_check, judge_compare, judge_bench, leaderboard, leaderboard_layout   judge validation
sweep, diagnose, chunks, diff, report, show                         analyses and presentation
audit, export, init, housekeeping, catalog                          everything else
addresses                                                           which addresses may receive a key
irmeasures                                                          raggs as a provider of ir_measures
"""
