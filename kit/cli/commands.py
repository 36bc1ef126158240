"""The short commands: inspect, replay, compare, hash, policies, formats, prices, sample."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kit import numbers
from kit.analysis.known import given_twice, unknown
from kit.analysis.parameters import LARGEST, ParameterError, from_settings
from kit.analysis.store import clean
from kit.cli.arguments import UsageError, chosen_settings, pairs
from kit.cli.output import check_file
from kit.cli.progress import Progress


def _print_json(value: Any) -> None:
    print(json.dumps(clean(value), indent=2, ensure_ascii=False, allow_nan=False))


def _table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as plain text columns, numbers to the right."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(len(row[i]) for row in cells), 0) for i, column in enumerate(columns)]
    numeric = [all(row[i][:1] in "0123456789−-" for row in cells) for i in range(len(columns))]
    out = ["  ".join(column.ljust(width) for column, width in zip(columns, widths, strict=True))]
    for row in cells:
        parts = zip(row, widths, numeric, strict=True)
        out.append("  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in parts))
    return "\n".join(line.rstrip() for line in out)


def _cell(value: Any) -> str:
    if value is None:
        return numbers.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return numbers.count(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


MOST_LISTED = 40
UNTOLD = ("sessions", "chains", "keys")  # 0 of them: the log has no column that tells


def inspect(chosen: argparse.Namespace) -> int:
    """Say what a log is and what it can tell."""
    from kit import log

    found = log.inspect(chosen.log, format=chosen.format, column_map=pairs(chosen.map, "--map"))
    if chosen.json:
        _print_json(found)
        return 0
    for name, value in found.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} {_cell(inner)}" for key, inner in value.items())
        elif isinstance(value, list | tuple):
            value = "; ".join(_shortened([str(item) for item in value]))
        else:
            value = numbers.ABSENT if name in UNTOLD and not value else _cell(value)
        print(f"{name:16} {value or numbers.ABSENT}")
    return 0


def _shortened(items: list[str]) -> list[str]:
    """The items of a long list that a person reads; all of them are in the JSON."""
    left = len(items) - MOST_LISTED
    return items if left <= 0 else [*items[:MOST_LISTED], f"and {numbers.count(left)} more (--json lists all)"]


def replay(chosen: argparse.Namespace) -> int:
    """Replay policies at capacities and print the rows of `replay[]`; with --routing over several replicas."""
    from kit.analysis import replay_rows
    from kit.analysis.replayed import QUEUED

    settings = chosen_settings(chosen)
    if chosen.policies:
        settings.append(f"policies={chosen.policies}")
    parameters = from_settings(settings, pairs(chosen.map, "--map"), chosen.format)
    capacities, routes = _capacities(chosen.capacities), _routes(chosen.routing)
    progress = Progress(total=4, quiet=chosen.json)
    try:
        rows = replay_rows(chosen.log, parameters, capacities, progress, routes)
    finally:
        progress.close()
    told = {row["policy"] for row in rows}
    for name in [name for name in parameters.policy_names if name not in told]:
        print(f"kit: {QUEUED.format(name=name)}", file=sys.stderr)
    if chosen.json:
        _print_json(rows)
        return 0
    columns = ["routing", "replicas"] if routes else []
    columns += ["policy", "capacity_tokens", "assumption", "window", "hits", "hit_tokens", "hit_token_ratio"]
    columns += ["sample_rate", "sample_lru_error"] if parameters.sample else []
    columns += ["most_held_tokens", "crowded_requests"] if parameters.hold_until_end else []
    columns += ["evictions", "cost_per_request", "m_eq"]
    print(_table(rows, columns))
    return 0


def _capacities(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        values = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values or min(values) < 1 or max(values) > LARGEST:
        raise UsageError(f"--capacities takes whole tokens from 1 to {LARGEST:,}, separated by commas, got {text!r}")
    if (twice := given_twice(values)) is not None:
        raise UsageError(f"--capacities names {twice} twice; name each budget once")
    return values


def _routes(text: str | None) -> list[str] | None:
    """The routings named; whether the log can be given them is seen once it is read."""
    if text is None:
        return None
    from kit.replay.fleet import ROUTES

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--routing takes names separated by commas, got {text!r}; accepted: {', '.join(ROUTES)}")
    if strangers := [name for name in names if name not in ROUTES]:
        raise UsageError(unknown("--routing", strangers[0], ROUTES))
    if (twice := given_twice(names)) is not None:
        raise UsageError(f"--routing names {twice} twice; name each routing once")
    return names


def policies(chosen: argparse.Namespace) -> int:
    """List the eviction policies."""
    from kit.policies import REGISTRY

    rows = [
        {
            **{"name": policy.name, "title": policy.title, "candidate": policy.candidate, "source": policy.source},
            **{"parameters": dict(policy.parameters), "needs": list(policy.needs), "overlaps": policy.overlaps},
        }
        for policy in REGISTRY.values()
    ]
    if chosen.json:
        _print_json(rows)
    else:
        told = [{**row, "also needs": _also_needs(REGISTRY[str(row["name"])])} for row in rows]
        print(_table(told, ["name", "title", "candidate", "also needs", "source"]))
    return 0


def _also_needs(policy: Any) -> str:
    """What a policy needs of the log beyond times and prefixes, in brief."""
    from kit.policies import FIELDS

    needed = [name.replace(" (or it is as if all had the same)", " (optional)") for name in policy.needs[len(FIELDS) :]]
    return ", ".join(needed) or numbers.ABSENT


def formats(chosen: argparse.Namespace) -> int:
    """List the log layouts that are recognised."""
    from kit import formats as layouts

    rows = [
        {
            **{"name": one.name, "title": one.title, "containers": list(one.containers), "clock": one.clock},
            **{"identity_rule": one.identity_rule, "token_rule": one.token_rule, "units": dict(one.units)},
            "columns": {field.name: list(field.paths) for field in one.fields},
            "required": [field.name for field in one.fields if field.required],
            "source": one.source,
        }
        for one in layouts.REGISTRY.values()
    ]
    if chosen.json:
        _print_json(rows)
    else:
        print(_table(rows, ["name", "containers", "clock", "title"]))
    return 0


def prices(chosen: argparse.Namespace) -> int:
    """List the built-in prices."""
    from kit.prices import book

    rows = [{"name": f"{rate.provider}/{rate.model}", **rate.as_row()} for rate in book.catalogue()]
    if chosen.json:
        _print_json(rows)
    else:
        print(_table(rows, ["name", "tier_above", "input", "read", "write_short", "write_long", "output", "currency"]))
    return 0


def shapes(chosen: argparse.Namespace) -> int:
    """List the models whose key-value memory per token is known."""
    from kit.replay.room import catalogue

    rows = catalogue()
    if chosen.json:
        _print_json(rows)
    else:
        print(_table(rows, list(rows[0])))
    return 0


def sample(chosen: argparse.Namespace) -> int:
    """Write the seeded sample week."""
    from kit import sample as week

    size = {} if chosen.requests is None else {"requests": chosen.requests}
    out = check_file(chosen.out, "OUT", week.ENDINGS)
    frame = week.sample_week(seed=chosen.seed, **size)
    path = week.write(frame, out)
    print(f"wrote {numbers.count(frame.height)} requests to {path}")
    return 0


def hash(chosen: argparse.Namespace) -> int:
    """Turn raw prompts into a hashed log."""
    from tqdm import tqdm

    from kit import log

    if chosen.salt == "":
        raise UsageError("--salt takes a secret text, got nothing; leave it out for a fresh secret")
    out = check_file(chosen.out, "OUT", (".parquet",))
    with tqdm(unit="B", unit_scale=True, leave=False, disable=not sys.stderr.isatty()) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        made = log.hash_log(chosen.dump, out, salt=chosen.salt, block_tokens=chosen.block_tokens, progress=show)
    bare, left = made["requests"] - made["hashed"], numbers.count(sum(made["rejected"].values()))
    without = f", {numbers.count(bare)} of them without a prompt and so without keys" if bare else ""
    count = numbers.count(made["requests"])
    print(f"wrote {count} requests to {chosen.out}{without} ({left} rejected); no prompt text is in it")
    for reason, times in made["rejected"].items():
        print(f"  {numbers.count(times)} {reason}")
    return 0


def compare(chosen: argparse.Namespace) -> int:
    """Judge a change from the logs (or report folders) before and after it."""
    from kit.analysis import compare as judge

    parameters = from_settings(chosen.set, pairs(chosen.map, "--map"), chosen.format)
    if chosen.before == chosen.after:
        raise ParameterError("BEFORE and AFTER are the same log; give two")
    found = judge(chosen.before, chosen.after, parameters)
    if chosen.json:
        _print_json(found)
    else:
        print("\n".join([found["sentence"], *(f"Note: {note}" for note in found["notes"])]))
    return 0
