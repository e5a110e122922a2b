"""Statistical functions: they take arrays and return immutable results, without files or settings.

intervals, comparison, resampling     bootstrap intervals, paired tests with a verdict, elimination of systems
effects, front, choice                main effects of settings, Pareto front, choice of one system
distributions                         the normal distribution, Student's t and the noncentral t
agreement, order_agreement            agreement of labels, agreement of rankings
judge_agreement, judge_sharpness      uses for which a judge is valid, sharpness and position bias of a judge
calibration                           calibrated probabilities of grades, their reliability and log score
correction, annotation_value          scores corrected by human labels, passages to label next
index_loss, score_precision, search_depth, name_margins, retrieval_traits   mathematics of the diagnoses
question_filters, question_wording    filters for generated questions, rules that generate questions
personal_data                         detection and masking of personal data in query logs
query_coverage                        coverage of user queries by a golden set, and the choice of queries to label
"""
