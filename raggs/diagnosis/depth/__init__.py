"""`raggs diagnose depth`: is it worth to search some questions deeper than others, and which?

`kind.py` measures with the parts of sweeps and fits with `raggs.stats.probes.depth`; `world.py` is a sweep's
surroundings on a bench; `models.py` is what is found, `showing.py` how it is told, `config.py` the run that a router
becomes.
"""
