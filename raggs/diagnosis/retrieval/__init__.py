"""Which questions of a golden set fail, what they share, and what rules find in the lists: the kind `retrieval`.

kind.py        settings, causes, the order of the work
lists.py       systems, scored once: values and quantities, question by question
questions.py   what is known of each question and of what answers it
rules.py       the table of findings: condition, sentence, knob
models.py      what is found
showing.py     sentences, tables and plots of that
"""
