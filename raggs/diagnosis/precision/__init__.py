"""What the precision of scores does to an evaluation: the kind `precision`.

kind.py      settings, causes, the order of the work
lists.py     scores of dense retrieval, of rerankers and of files, at each precision
weighing.py  what the order of equal scores makes of a measure, from lists to parts
models.py    what is found
showing.py   sentences and tables of that; drawing.py its plots
"""
