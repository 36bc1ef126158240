"""`python -m kit ...`: the command line of the kit (see kit.cli)."""

from __future__ import annotations

import sys

from kit.cli import main

if __name__ == "__main__":
    sys.exit(main())
