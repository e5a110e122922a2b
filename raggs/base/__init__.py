"""Records, errors, registries, settings, files, hashes and text: what all other packages use.

artifacts     the records of a run's files; `judge_health`: figures of the judge that locks hold
adapter       a part: its settings, version and causes; `registry`: names to classes, imported at first use
settings      the base of all configuration models, and which settings are causes
errors        every error with its exit code
files, jsonl  atomic writes, and lines with the place of every fault; `trec`, `tables`: files of other tools
hashing       hashes of values, and random generators that are derived from names
stores        results that can be recomputed, stored under the hash of their causes
text          Unicode cleaning and token counts; `languages`: language detection, stop words, stemmers
secrets       which texts are secret, and how they are masked
types, arrays, precision, loops, light, plainyaml   JSON types, array types, rounding, event loops, small imports, YAML

`__version__` is written here and nowhere else. Manifests store it.
"""

from __future__ import annotations

__version__ = "0.1.0"
