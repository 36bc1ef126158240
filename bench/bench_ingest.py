"""How fast a log is read, beside DuckDB's own reader on the same file in the same run.

    python bench/bench_ingest.py [--requests 200000] [--larger 4] [--repeats 3] [FILE...]

For each layout a seeded file is drawn (or the named files are used). Both readers take turns, each reading in a fresh
process into a DuckDB file that is there when it ends. DuckDB's `read_csv`, `read_json` or `read_parquet` puts all
columns of the file into one table, with the types it finds itself. `kit.log.load` does all it ever does: fingerprint,
every check of every value, rejected rows with their line, the requests in order, turns, nodes and facts. Printed are
the medians of processor seconds (all threads: a loaded machine changes them little), MB of file per second of those,
and the ratio; and the peak MiB, with what the process had before it read anything. The drawn layouts are read again
with `--larger` times as many requests: peak memory should grow far slower than the file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import duckdb

STAMP = "strftime(TIMESTAMP '2026-02-01' + to_microseconds({at}), '%Y-%m-%dT%H:%M:%S.%gZ')"
LAYOUTS = {
    "agent_usage.csv": f"""
        SELECT 'q' || i AS request_id, {STAMP.format(at="i * 600000")} AS ts_start,
          {STAMP.format(at="i * 600000 + 5000000")} AS ts_last, 's' || (i // 50) AS session_id, 'main' AS agent_id,
          'w' || (i // 5000) AS workdir_id, 'claude-opus-4-6' AS model, '2.1' AS client_version,
          CASE WHEN i % 50 = 0 THEN 'user' ELSE 'tool_result' END AS trigger,
          CASE WHEN i % 50 > 0 THEN 'q' || (i - 1) END AS parent_request_id, 3 AS input_tokens,
          0 AS cache_write_5m_tokens, 1500 AS cache_write_1h_tokens, 1500 AS cache_write_tokens,
          16000 + 1500 * (i % 50) AS cache_read_tokens, 300 AS output_tokens FROM range($requests) AS numbers(i)""",
    "mooncake.jsonl": """
        SELECT i * 300 AS "timestamp", 512 * 20 - 17 AS input_length, 100 AS output_length,
          list_concat([0, 1, 2], list_transform(range(17), lambda x: (i // 4) * 20 + x + 10)) AS hash_ids
        FROM range($requests) AS numbers(i)""",
    "openai_usage.jsonl": """
        SELECT 'r' || i AS id, 1772407800 + i AS created, 'gpt-x' AS model, {'prompt_tokens': 2000 + i % 999,
          'completion_tokens': 300, 'prompt_tokens_details': {'cached_tokens': 1920}} AS usage
        FROM range($requests) AS numbers(i)""",
    "canonical.parquet": """
        SELECT TIMESTAMPTZ '2026-02-01 00:00:00+00' + to_microseconds(i * 600000) AS ts, 'm' AS model,
          'k' || (hash(i) % 50000) AS prefix_key, 1000 + (hash(hash(i) % 50000) % 8000)::BIGINT AS prefix_tokens,
          9500 AS input_tokens, 's' || (i // 10) AS session_id FROM range($requests) AS numbers(i)""",
}
COPY = {"csv": "FORMAT csv, HEADER", "jsonl": "FORMAT json", "parquet": "FORMAT parquet"}
READER = {"csv": "read_csv", "parquet": "read_parquet"}
CHILD = """
import resource, sys, time
path, who, warm, target = sys.argv[1:]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
if who == 'kit':
    from kit.log import load
    load(warm).con.close()
    before, begin = peak(), time.process_time()
    load(path, target).con.close()
else:
    import duckdb
    duckdb.connect().execute(f"CREATE TABLE x AS FROM read_json('{warm}')")
    before, begin = peak(), time.process_time()
    con = duckdb.connect(target)
    con.execute(f"CREATE TABLE x AS FROM {who}('{path}')")
    con.close()
print(time.process_time() - begin, peak(), before)
"""


def draw(folder: Path, name: str, requests: int) -> Path:
    """A file of the layout with so many requests."""
    path = folder / f"{requests}-{name}"
    query = LAYOUTS[name].replace("$requests", str(requests))
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute(f"COPY ({query}) TO '{path}' ({COPY[path.suffix[1:]]})")
    con.close()
    return path


def measured(path: Path, who: str, warm: Path) -> tuple[float, float, float]:
    """Processor seconds and peak MiB of one reading in a process of its own, and the MiB it had before."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", CHILD, str(path), who, str(warm), f"{folder}/log.duckdb"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, before = done.stdout.splitlines()[-1].split()
    return float(seconds), float(peak), float(before)


def compare(path: Path, warm: Path, repeats: int) -> None:
    """One line for one file."""
    suffix = next((part for part in (".csv", ".parquet") if part in path.suffixes), ".jsonl")
    megabytes = path.stat().st_size / 1e6
    readers = ("kit", READER.get(suffix[1:], "read_json"))
    runs = [[measured(path, who, warm) for who in readers] for _ in range(repeats)]
    own, peer = ([median(run[who][part] for run in runs) for part in range(3)] for who in (0, 1))
    print(
        f"{path.name:<32} {megabytes:8.1f} MB  kit {own[0]:7.2f} s {megabytes / own[0]:7.1f} MB/s {own[1]:6.0f} MiB "
        f"({own[2]:.0f} before)   duckdb {peer[0]:7.2f} s {megabytes / peer[0]:7.1f} MB/s {peer[1]:6.0f} MiB   "
        f"{own[0] / peer[0]:5.1f} x",
        flush=True,
    )


def main() -> None:
    """Read every layout, small and larger."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--requests", type=int, default=200_000)
    given.add_argument("--larger", type=int, default=4)
    given.add_argument("--repeats", type=int, default=3)
    given.add_argument("files", nargs="*", type=Path)
    chosen = given.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm = draw(folder, "mooncake.jsonl", 10)
        for path in chosen.files:
            compare(path, warm, chosen.repeats)
        for layout in LAYOUTS if not chosen.files else ():
            for requests in (chosen.requests, chosen.requests * chosen.larger):
                compare(draw(folder, layout, requests), warm, chosen.repeats)


if __name__ == "__main__":
    main()
