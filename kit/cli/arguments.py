"""The command line as data: every command, its arguments and their help texts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

MOST_JOBS = 1024
MOST_BLOCK = 2**31 - 1
LARGEST_SEED = 10**15
MOST_REQUESTS = 50_000_000
LOG_HELP = "log file, folder or glob (Parquet, CSV or JSON lines, also gz and zst)"


class UsageError(ValueError):
    """The command line itself is wrong: exit code 2."""


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line that say where help is."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message and the help command."""
        raise UsageError(f"{message}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The parser of `python -m kit`; the chosen command's name is in `command`."""
    root = Parser(
        prog="python -m kit",
        description="Which eviction policy should this prefix cache run, and what is that worth?",
        epilog="Exit codes: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted, 143 terminated.",
    )
    root.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    _report(commands)
    _batch(commands)
    _inspect(commands)
    _replay(commands)
    _compare(commands)
    _hash(commands)
    for name, text in (
        ("policies", "the eviction policies and where each comes from"),
        ("formats", "the log layouts that are recognised"),
        ("prices", "the built-in price table, in currency per million tokens"),
        ("shapes", "models whose key-value memory per token is known, for budgets in GiB"),
    ):
        _common(commands.add_parser(name, help=text, description=text), as_json=True)
    _sample(commands)
    return root


def _report(commands: argparse._SubParsersAction) -> None:
    p = commands.add_parser("report", help="one log -> a report to share", description="One log -> DIR/<log name>/.")
    _log(p)
    p.add_argument("--out", default="reports", metavar="DIR", help="folder of the reports (default: reports)")
    p.add_argument("--name", default=None, metavar="NAME", help="name of the report's folder (default: the log's name)")
    p.add_argument("--for", dest="reading", choices=("finance", "infra", "both"), default="both", help="who reads it")
    _sampling(p)
    _settings(p)
    _common(p, as_json=True)


def _batch(commands: argparse._SubParsersAction) -> None:
    text = (
        "One report per log, DIR/index.html and DIR/batch.json. @FILE is a manifest: a text file with one log a line."
    )
    p = commands.add_parser("batch", help="one report per log, and an index", description=text)
    _log(p)
    p.add_argument("--out", default="reports", metavar="DIR", help="folder of the reports (default: reports)")
    p.add_argument("--jobs", type=_whole(1, MOST_JOBS), default=None, metavar="N", help="reports made at the same time")
    p.add_argument("--for", dest="reading", choices=("finance", "infra", "both"), default="both", help="who reads it")
    p.add_argument("--redo", action="store_true", help="make reports again that are finished and current")
    _sampling(p)
    _settings(p)
    _common(p, as_json=True)


def _inspect(commands: argparse._SubParsersAction) -> None:
    text = "what is this log, and what can it tell"
    p = commands.add_parser("inspect", help=text, description=text)
    _log(p)
    p.add_argument("--format", default=None, metavar="NAME", help="read it as this format")
    p.add_argument("--map", action="append", default=[], metavar="CANONICAL=COLUMN", help="which column holds what")
    _common(p, as_json=True)


def _replay(commands: argparse._SubParsersAction) -> None:
    text = "policies x capacities, as rows"
    p = commands.add_parser("replay", help=text, description=text)
    _log(p)
    p.add_argument("--policies", default=None, metavar="A,B", help="policies to replay")
    p.add_argument("--capacities", default=None, metavar="TOKENS,TOKENS", help="budgets in tokens")
    p.add_argument(
        "--routing",
        default=None,
        metavar="A,B",
        help="over several replicas, a budget each: logged, session, root, round_robin, random (--set replicas=N)",
    )
    _sampling(p)
    _settings(p)
    _common(p, as_json=True)


def _compare(commands: argparse._SubParsersAction) -> None:
    text = "two logs or two results: accept, revert or inconclusive"
    p = commands.add_parser("compare", help=text, description=text)
    p.add_argument("before", metavar="BEFORE", help="log (or report folder) before the change")
    p.add_argument("after", metavar="AFTER", help="log (or report folder) after the change")
    _settings(p)
    _common(p, as_json=True)


def _hash(commands: argparse._SubParsersAction) -> None:
    text = "raw prompts -> a hashed log that can be shared"
    p = commands.add_parser("hash", help=text, description=text)
    p.add_argument("dump", metavar="DUMP", help="JSON lines with the raw prompts")
    p.add_argument("out", metavar="OUT", help="the hashed log to write (.parquet)")
    p.add_argument("--salt", default=None, metavar="SECRET", help="the same secret makes two logs share keys")
    block = _whole(1, MOST_BLOCK)
    p.add_argument("--block-tokens", type=block, default=64, metavar="N", help="tokens per key (default: 64)")
    _common(p)


def _sample(commands: argparse._SubParsersAction) -> None:
    text = "write a seeded week of requests with known answers"
    p = commands.add_parser("sample", help=text, description=text)
    p.add_argument("out", metavar="OUT", help="file to write; its suffix is the format (.parquet .csv .jsonl, + .gz)")
    seed, requests = _whole(0, LARGEST_SEED), _whole(1, MOST_REQUESTS)
    p.add_argument("--seed", type=seed, default=1, metavar="N", help="seed of every draw (default: 1)")
    p.add_argument("--requests", type=requests, default=None, metavar="N", help="about how many requests")
    _common(p)


def _log(p: argparse.ArgumentParser) -> None:
    p.add_argument("log", nargs="+", metavar="LOG", help=LOG_HELP)


def _sampling(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--sample",
        default=None,
        metavar="RATE|auto",
        help="replay this share of the sessions at the same share of the budget, and say its error; auto: by size",
    )


def chosen_settings(chosen: argparse.Namespace) -> list[str]:
    """The `name=value` texts of a command: --set as given, and --sample as the parameter it stands for."""
    sample = getattr(chosen, "sample", None)
    return [*chosen.set, *([] if sample is None else [f"sample={sample}"])]


def _settings(p: argparse.ArgumentParser) -> None:
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter or threshold")
    p.add_argument("--map", action="append", default=[], metavar="CANONICAL=COLUMN", help="which column holds what")
    p.add_argument("--format", default=None, metavar="NAME", help="read the log as this format")


def _common(p: argparse.ArgumentParser, as_json: bool = False) -> None:
    if as_json:
        p.add_argument("--json", action="store_true", help="print JSON on stdout, nothing else")
    p.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error")


def _whole(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that takes whole numbers of a range; another value is named beside what is accepted."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least:,} to {most:,}, got {text!r}")
        return value

    return read


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`a=b` texts of a repeatable option as a dict, those of files below the others.

    UsageError where one is not a pair, or two give the same name different values.
    """
    out: dict[str, str] = {}
    named: dict[str, str] = {}
    for text in texts:
        left, equals, right = text.partition("=")
        if option == "--map" and not equals and Path(text).is_file():
            from kit.log import read_mapping

            out.update(read_mapping(text))
            continue
        if option == "--map" and not equals and text.endswith((".toml", ".json")):
            raise UsageError(f"--map {text}: no such file; check the path, or give canonical=column")
        if not (equals and left.strip() and right.strip()):
            raise UsageError(f"{option} takes canonical=column (--map also a .toml or .json file), got {text!r}")
        name, value = left.strip(), right.strip()
        if named.setdefault(name, value) != value:
            raise UsageError(f"{option} names {name} twice, as {named[name]} and as {value}; name it once")
    return out | named
