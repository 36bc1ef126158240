"""A frame of requests to a file in the canonical log format."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from kit.sample.week import LIST_COLUMNS

ENDINGS = (".parquet", ".csv", ".jsonl", ".csv.gz", ".jsonl.gz")


def _text_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame for a text file: times as ISO with a Z."""
    return frame.with_columns(pl.col(pl.Datetime("us", "UTC")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))


def _csv(frame: pl.DataFrame) -> bytes:
    lists = [name for name in LIST_COLUMNS if name in frame.columns]
    as_json = [pl.Series(name, [json.dumps(v, separators=(",", ":")) for v in frame[name].to_list()]) for name in lists]
    return _text_frame(frame).with_columns(*as_json).write_csv().encode()


def _jsonl(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    _text_frame(frame).write_ndjson(out)
    return out.getvalue()


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Keys and times as differences (neighbours on a path are neighbours in number), everything else by dictionary."""
    table = frame.to_arrow()
    step = [
        name
        for name, kind in frame.schema.items()
        if kind in (pl.Datetime("us", "UTC"), pl.List(pl.Int64)) and name != "path_tokens"
    ]
    lists = {name for name, kind in frame.schema.items() if isinstance(kind, pl.List)}
    leaf = {name: f"{name}.list.element" if name in lists else name for name in frame.columns}
    pq.write_table(
        table, path, compression="zstd", compression_level=19, version="2.6", data_page_version="2.0",
        use_dictionary=[leaf[name] for name in frame.columns if name not in step],
        column_encoding={leaf[name]: "DELTA_BINARY_PACKED" for name in step},
    )  # fmt: skip


def write(frame: pl.DataFrame, path: str | Path) -> Path:
    """Write a week by the file's suffix (.parquet, .csv, .jsonl, .csv.gz, .jsonl.gz) and return the path.

    Lists become JSON arrays in a CSV. The file appears whole or not at all, and its bytes depend on the frame alone.
    Raises ValueError for another suffix.
    """
    path = Path(path)
    packed = path.suffix == ".gz"
    text = {".csv": _csv, ".jsonl": _jsonl}.get(Path(path.stem).suffix if packed else path.suffix)
    if path.suffix != ".parquet" and text is None:
        raise ValueError(f"{path}: cannot write this kind of file; name it {', '.join(ENDINGS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if text is None:
            _write_parquet(frame, part)
        else:
            part.write_bytes(gzip.compress(text(frame), mtime=0) if packed else text(frame))
        os.replace(part, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)
    return path
