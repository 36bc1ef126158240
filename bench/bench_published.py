"""The published systems on several logs: what they keep against LRU, and what SAECache-style costs per touch.

    python bench/bench_published.py [--repeat N] [--table data/published.md]

Logs: the bundled week, made-up weeks with fewer and fewer chat requests (the published evaluation's mixes, down to
single calls only), and the public traces where they lie beside the project. Printed is the CPU time of the thread in ns
per touched entry, SAECache-style and LRU in turn, median of the repeats. `--table` writes the comparison, every log and
every budget, as it comes out. Coding sessions are cut into larger blocks than their trace has (said in the table), so
that policies without segments finish in seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from kit import log, prefix, sample
from kit.analysis import mismatch, own_columns, published
from kit.replay import Setting, replay

PROJECT = Path(__file__).resolve().parent.parent
WEEK = PROJECT / "data" / "sample_week.parquet"
TRACES = PROJECT.parent / "shared" / "data"
EXPIRY_SECONDS = 300.0
CODING_BLOCK_TOKENS = 4096
PUBLIC = (
    ("coding_blocks64.jsonl", f"coding sessions, in blocks of {CODING_BLOCK_TOKENS:,} tokens", CODING_BLOCK_TOKENS),
    ("taubench_gpt4o_airline.jsonl", "tau-bench airline (typed prompts, no clock: time is order only)", None),
    ("claude_agents_week.csv", "agent sessions of one week (chains, no token types)", None),
    ("mooncake_conversation.jsonl", "Mooncake conversation (no sessions, no types)", None),
)
BY_REQUEST = "the same coding sessions and blocks, token types BY REQUEST (what its input was)"
BY_CHARACTERS = ("claude_agents_week.csv", "the same agent sessions, token types ESTIMATED from characters by type")
MIXES = ((33, 0, 67), (12, 0, 88), (0, 0, 100))


def logs(folder: Path) -> Iterator[tuple[str, prefix.Paths | None]]:
    """Every log with its title: the week, the mixes, the public traces (None where one is absent)."""
    yield "the sample week (45 chat : 35 agent : 20 single, and a nightly job)", prefix.load_paths(log.load([WEEK]))
    for mix in MIXES:
        file = folder / f"mix{mix[0]}.parquet"
        sample.sample_week(mixture=mix, scan=False).write_parquet(file)
        title = f"made-up week, {mix[0]} % of requests chat, {mix[2]} % single calls"
        yield title, prefix.load_paths(log.load([file]))
    for name, title, block in PUBLIC:
        file = TRACES / name
        yield title, prefix.load_paths(log.load([file]), block_tokens=block) if file.exists() else None
    file = TRACES / PUBLIC[0][0]
    yield BY_REQUEST, own_columns.typed_by_request(log.load([file]), file, PUBLIC[0][2]) if file.exists() else None
    file, title = TRACES / BY_CHARACTERS[0], BY_CHARACTERS[1]
    yield title, own_columns.typed_by_characters(log.load([file]), file) if file.exists() else None


def ns_per_touch(paths: prefix.Paths, policy: str, budget: int, touches: int) -> float:
    """Thread CPU time of one replay, in ns per touch."""
    started = time.thread_time()
    replay(paths, policy, capacity_tokens=budget)
    return (time.thread_time() - started) / touches * 1e9


def speed(title: str, paths: prefix.Paths, repeat: int) -> None:
    """One line: both policies in turn at LRU's knee, block by block."""
    whole = paths.by_unit
    used = whole.leaf[whole.leaf >= 0]
    touches, budget = int((whole.depth[used] + 1).sum()), published.budgets_around_the_knee(paths, 1)[0]
    taken: dict[str, list[float]] = {"lru": [], "saecache": []}
    for policy in taken:
        replay(whole, policy, capacity_tokens=budget)  # compiles where it is the first
    for _ in range(repeat):
        for policy, times in taken.items():
            times.append(ns_per_touch(whole, policy, budget, touches))
    lru, sae = median(taken["lru"]), median(taken["saecache"])
    print(f"{touches:>10,} touches  LRU {lru:>5.0f} ns  SAECache-style {sae:>5.0f} ns  {sae / lru:>5.1f}x   {title}",
          flush=True)  # fmt: skip


def section(title: str, paths: prefix.Paths) -> str:
    """One log as Markdown: systems down, budgets across, then the sentences; then the same with a provider's expiry."""
    rows = published.compare_published(paths)
    expiring = published.compare_published(paths, setting=Setting(ttl_seconds=EXPIRY_SECONDS), variants=False)
    said = f"{published.where_it_loses(rows)} {published.learners_worth(rows)}"
    return "\n".join([
        f"## {title[0].upper()}{title[1:]}", "",
        f"{paths.requests:,} requests; intervals over {paths.block_basis}.", "",
        published.as_markdown(rows), "", said, "", f"With entries that also expire after {EXPIRY_SECONDS:g} s unused:",
        "", published.as_markdown(expiring), "", str(published.where_it_loses(expiring)), "",
    ])  # fmt: skip


HEAD = """# What the published systems keep

Share of input tokens found cached; after a figure its difference to LRU in points, with the paired 95 % interval over
blocks of sessions (or over what each section names). Budgets double from a quarter of LRU's knee (80 % of its
ceiling) to four times it. Every log that was run stands here, with every budget and system. "SAECache-style" and
"LPC" are re-implementations from the papers without their neural predictors: these figures say nothing about those.
The constants they ran with stand at the end.

Written by `python bench/bench_published.py --table data/published.md`.
"""


def fitted_elsewhere() -> str:
    """The mismatch experiment as Markdown."""
    rows = mismatch.workload_mismatch(mismatch.made_up_weeks(1), mismatch.made_up_weeks(2))
    frame = mismatch.as_table(rows).frame
    lines = [frame.columns, ["---", *["---:"] * (frame.width - 1)], *(list(line) for line in frame.iter_rows())]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    mixes = "; ".join(f"{name} {chat} : {agents} : {single}" for name, (chat, agents, single) in mismatch.MIXES.items())
    return (f"## SAECache-style fitted on one mix, run frozen on another\n\nMade-up weeks of {mismatch.REQUESTS:,} "
            f"requests (chat : agents : single calls, {mixes}), each at LRU's knee; parameters fitted on weeks of "
            "another seed. After a figure its difference to the policy as it learns, in points, with the paired 95 % "
            "interval."
            f"\n\n{table}\n\n{mismatch.what_travels(rows)}\n")  # fmt: skip


def constants() -> str:
    """Every parameter of every system, as it ran."""
    ran = (*published.SYSTEMS, *published.VARIANTS)
    lines = [f"- {who.title}: {said}" for who in ran if (said := published.settings_of(who))]
    return "\n".join(["## Parameters", "", *lines, ""])


def h2o() -> str:
    """What can be said of H2O."""
    note = published.h2o_note()
    share = f"{note['resident_memory_fraction']:.0%}"
    return (f"## H2O\n\nIt keeps {share} of a sequence resident at its published ratios. "
            f"There is no hit ratio: {note['why']}.\n")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--table", type=Path, help="write the comparison to this Markdown file")
    chosen, parts = parser.parse_args(), [HEAD]
    with tempfile.TemporaryDirectory() as folder:
        for title, paths in logs(Path(folder)):
            if paths is None:
                print(f"left out, the trace is not beside the project: {title}")
                parts.append(f"Left out, the trace is not beside the project: {title}.\n")
                continue
            speed(title, paths, chosen.repeat)
            if chosen.table:
                parts.append(section(title, paths))
    if chosen.table:
        chosen.table.write_text("\n".join([*parts, fitted_elsewhere(), h2o(), constants()]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
