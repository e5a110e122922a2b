"""What a judge's orders are worth: one prompt of 40 passages against the rank stage, with the user's own model.

kind.py      settings, causes, what it would cost, the order of the work
pools.py     the pools: of a run, or searched for
asking.py    who is asked for what, how often, and what the answers took
finding.py   the figures
models.py    what is found
showing.py   sentences, tables and plots of that
"""
