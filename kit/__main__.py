"""`python -m kit ...`: the command line of the kit (see kit.cli)."""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130


def run() -> int:
    """Run one command; a Ctrl-C while the kit is still being imported ends as a later one does.

    Imports leave no garbage, and neither does the end: looking for some would cost 0.2 s each.
    """
    gc.disable()
    try:
        from kit.cli import main
    except KeyboardInterrupt:
        print("kit: interrupted; nothing half-made was left behind", file=sys.stderr)
        return INTERRUPTED
    gc.enable()
    gc.freeze()
    try:
        return main()
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(run())
