"""The question whether a key may go to an address that is new."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from raggs.cli.plain import agree, say

if TYPE_CHECKING:
    from raggs.app.addresses import Approve, Destination


def approver(yes: bool, quiet: bool = False) -> Approve:
    """Who is asked: the user, where there is a terminal; `yes` has answered already. All is shown before it is used."""

    def ask(new: Sequence[Destination]) -> bool:
        from raggs.app.addresses import settings_file, trust

        asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
        if asks or (yes and not quiet):
            for found in new:
                say(str(found), err=True)
        if not asks:
            return yes
        if not agree(f"Send it there, now and later (noted in {settings_file()})?", default=False, err=True):
            return False
        trust([found.host for found in new])
        return True

    return ask
