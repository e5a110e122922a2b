"""Pure statistics: numbers in, frozen results out; no files and no settings.

intervals, comparison, resampling     bootstrap intervals, paired tests with a verdict, systems dropped early
effects, front, choice                main effects of settings, undominated systems, one recommended system
agreement, order_agreement            labels against labels, rankings against rankings
judge_agreement, judge_sharpness      what a judge may be used for; its sharpness and position bias
correction, annotation_value          scores corrected by human labels; which passages to label next
index_loss, score_precision, search_depth, name_margins, retrieval_traits   the mathematics of diagnoses
question_filters, question_wording    which generated questions are removed; questions by rule
personal_data                         personal data in query logs, found and masked
"""
