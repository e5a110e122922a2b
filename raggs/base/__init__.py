"""Records, errors, registries, settings, files, hashes and text, which all other packages use.

artifacts     records of a run's files
judge_health  statistics of the judge, stored in locks
adapter       base of all components: settings, version and causes
registry      names of classes, imported at first use
settings      base of all configuration models; which settings are causes
errors        every error with its exit code
files         atomic writes, safe reads, locks on folders
jsonl         JSON lines with the position of every error
trec, tables  files of other tools
hashing       hashes of values, and random generators derived from names
cache         results that can be recomputed, stored under the hash of their causes
text          Unicode cleaning and token counts
languages     language detection, stop words, stemmers
secrets       detect secrets in texts, and mask them
types, arrays JSON types and array types
precision     rounding to lower precision
loops         event loops
plainyaml     restricted YAML

`__version__` is defined only here. Manifests store it.
"""

from __future__ import annotations

__version__ = "0.1.0"
