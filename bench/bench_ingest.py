"""How fast a log is read, beside DuckDB's own reader on the same file in the same run.

    python bench/bench_ingest.py [--requests 200000] [--larger 4] [FILE...]

For each layout a seeded file is drawn (or the named files are used). Each is read in a fresh process: seconds, MB/s and
peak MiB of `kit.log.load` (every check, nodes and facts included) and of DuckDB's `read_csv`, `read_json` or
`read_parquet` into a table. The drawn layouts are read again with `--larger` times as many requests: peak memory should
grow far slower than the file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

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
path, who, warm = sys.argv[1:]
if who == 'kit':
    from kit.log import load
    load(warm).con.close()
    begin = time.perf_counter()
    load(path)
else:
    import duckdb
    con = duckdb.connect()
    begin = time.perf_counter()
    con.execute(f"CREATE TABLE x AS FROM {who}('{path}')")
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
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


def measured(path: Path, who: str, warm: Path) -> tuple[float, float]:
    """Seconds and peak MiB of one reading in a process of its own."""
    command = [sys.executable, "-c", CHILD, str(path), who, str(warm)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def compare(path: Path, warm: Path) -> None:
    """One line for one file."""
    suffix = next((part for part in (".csv", ".parquet") if part in path.suffixes), ".jsonl")
    megabytes = path.stat().st_size / 1e6
    own, own_peak = measured(path, "kit", warm)
    peer, peer_peak = measured(path, READER.get(suffix[1:], "read_json"), warm)
    print(
        f"{path.name:<32} {megabytes:8.1f} MB  kit {own:7.2f} s {megabytes / own:7.1f} MB/s {own_peak:6.0f} MiB   "
        f"duckdb {peer:7.2f} s {megabytes / peer:7.1f} MB/s {peer_peak:6.0f} MiB   {own / peer:5.1f} x",
        flush=True,
    )


def main() -> None:
    """Read every layout, small and larger."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--requests", type=int, default=200_000)
    given.add_argument("--larger", type=int, default=4)
    given.add_argument("files", nargs="*", type=Path)
    chosen = given.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm = draw(folder, "mooncake.jsonl", 10)
        for path in chosen.files:
            compare(path, warm)
        for layout in LAYOUTS if not chosen.files else ():
            for requests in (chosen.requests, chosen.requests * chosen.larger):
                compare(draw(folder, layout, requests), warm)


if __name__ == "__main__":
    main()
