"""Records, errors, registries, settings, files, hashes and text, which all other packages use.

artifacts     records of a run's files
judge_health  statistics of the judge, stored in locks
adapter       base of all components: their settings and everything that can change their results
registry      tables from names to classes, which are imported at first use
settings      base of all configuration models; which settings can change results
errors        base classes of errors, with their exit codes
document      report documents and summaries, as Markdown, HTML and CSV
files         atomic writes, safe reads, locks on folders
jsonl         JSON lines with the position of every error
trec, tables  read files of other tools: TREC files and tables
hashing       hashes of values, and random generators derived from names
cache         results that can be recomputed, stored by a hash of their inputs
text          Unicode cleaning and token counts
languages     language detection, stop words, stemmers
secrets       detect secrets in texts, and mask them
types, arrays JSON types and array types
precision     rounding to lower precision
loops         create event loops
plainyaml     read restricted YAML

`__version__` is defined only here. Every manifest stores the version.
"""

from __future__ import annotations

__version__ = "0.1.0"
