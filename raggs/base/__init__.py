"""Records, errors, registries, files, hashes and text: what every other package uses.

The version of raggs: the one place where it is written. Runs keep it in their manifests.
"""

from __future__ import annotations

__version__ = "0.1.0"
