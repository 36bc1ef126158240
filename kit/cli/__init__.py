"""The command line: `python -m kit COMMAND`; report and batch make reports, the other commands answer one question.

Exit codes: 0 done, 1 the work failed (one line on stderr, the traceback with --debug), 2 wrong usage, 130 interrupted,
143 terminated.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kit.analysis.parameters import ParameterError
from kit.cli import failures
from kit.cli.arguments import UsageError, parser
from kit.formats import UnknownNameError

INTERRUPTED = 130
TERMINATED = 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a SIGTERM ends it as Ctrl-C does."""
    terminated: list[int] = []
    with _terminable(terminated):
        code = _code(argv)
    return TERMINATED if terminated and code == INTERRUPTED else code


@contextmanager
def _terminable(terminated: list[int]) -> Iterator[None]:
    """A SIGTERM raises KeyboardInterrupt and is noted; only the main thread may say so."""

    def stop(number: int, frame: Any) -> None:
        terminated.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _code(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        chosen = parser().parse_args(arguments)
        return _run(chosen)
    except (UsageError, ParameterError, UnknownNameError) as error:
        return _failed(error, debug, 2)
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _interrupted() if _was_interrupt(error) else _failed(error, debug, 1)


def _run(chosen: Any) -> int:
    from kit.cli import batch, commands, reporting

    made = {"report": reporting.command, "batch": batch.command}
    handler = made.get(chosen.command) or getattr(commands, chosen.command)
    code: int = handler(chosen)
    return code


def _interrupted() -> int:
    print("kit: interrupted; nothing half-made was left behind", file=sys.stderr)
    return INTERRUPTED


def _was_interrupt(error: BaseException | None) -> bool:
    """True where Ctrl-C is behind an error: DuckDB turns it into one of its own, or into a plain RuntimeError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "InterruptException":
            return True
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
            return True
        error = error.__cause__ or error.__context__
    return False


def _failed(error: Exception, debug: bool, code: int) -> int:
    if debug:
        traceback.print_exc()
    print(f"kit: {failures.line(error)}", file=sys.stderr)
    return code
