"""`python -m kit ...`: the command line of the kit (see kit.cli)."""

from __future__ import annotations

import gc
import sys

gc.disable()  # imports leave no garbage; looking for some costs 0.2 s, and as much again at the end
from kit.cli import main  # noqa: E402

gc.enable()
gc.freeze()


def run() -> int:
    """The command line in a process of its own; comes back as its exit code."""
    try:
        return main()
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(run())
