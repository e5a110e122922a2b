"""Statistical functions: arrays in, frozen results out. No files and no settings.

intervals, comparison, resampling     bootstrap intervals, paired tests with a verdict, elimination of systems
effects, front, choice                main effects of settings, Pareto front, choice of one system
agreement, order_agreement            agreement of labels, agreement of rankings
judge_agreement, judge_sharpness      which uses of a judge the agreement allows, its sharpness and position bias
correction, annotation_value          scores corrected by human labels, passages to label next
index_loss, score_precision, search_depth, name_margins, retrieval_traits   mathematics of the diagnoses
question_filters, question_wording    filters for generated questions, rules for their wording
personal_data                         detection and masking of personal data in query logs
"""
