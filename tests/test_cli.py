"""The command line as a user meets it: what is printed, which exit code, and that nothing half-made is left behind."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import jsonschema
import pytest

from kit.__main__ import run as command_line
from kit.analysis.folders import log_name, whole_or_nothing
from kit.analysis.parameters import Parameters
from kit.cli import failures, main, notebooks, reporting
from kit.cli.arguments import UsageError, pairs
from kit.cli.batch import left_out, named_logs
from kit.cli.progress import Progress
from tests.conftest import PROJECT, shared_data

SCHEMA = json.loads((PROJECT / "kit" / "results.schema.json").read_text())
KEPT = {"report.html", "results.json", "run.json", "log.duckdb", "notebooks", "replay_point.csv", "decision_trail.csv"}


def small_log(folder: Path, name: str = "small.csv", requests: int = 300) -> Path:
    """300 requests, 10 s apart, that read 15 flat keys of 1,000 tokens in turn."""
    folder.mkdir(exist_ok=True)
    rows = [f"{10 * n},k{n % 15},1000,1200" for n in range(requests)]
    path = folder / name
    path.write_text("\n".join(["ts,prefix_key,prefix_tokens,input_tokens", *rows]) + "\n")
    return path


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kit", *arguments], capture_output=True, text=True, cwd=PROJECT, timeout=1800
    )


@pytest.fixture(scope="module")
def batch(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A batch of three logs on two workers: one good, one empty, one that is no log."""
    folder = tmp_path_factory.mktemp("batch")
    small_log(folder / "logs")
    (folder / "logs" / "empty.csv").write_text("")
    (folder / "logs" / "other.csv").write_text("colour,size\nred,3\n")
    return folder, run("batch", str(folder / "logs"), "--out", str(folder / "out"), "--jobs", "2", "--set", "seed=2")


def test_report_on_the_claude_week(tmp_path: Path) -> None:
    log = shared_data("claude_agents_week.csv")
    done = run("report", str(log), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[0].split() == ["rows", "read", "5,964"]
    assert printed[1].split() == ["rows", "rejected", "0"]
    assert printed[2].startswith("rule fired")
    folder = tmp_path / "claude_agents_week"
    assert printed[-1].split()[-1] == str(folder / "report.html")
    assert {path.name for path in folder.iterdir()} >= KEPT
    results = json.loads((folder / "results.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(results)
    sentence = results["decision"]["sentence"]
    assert sentence in done.stdout
    assert sentence in (folder / "report.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["claude_agents_week"]
    for name in notebooks.NAMES:
        book = json.loads((folder / "notebooks" / f"{name}.ipynb").read_text())
        assert "error" not in {out["output_type"] for cell in book["cells"] for out in cell.get("outputs", [])}
        assert str(tmp_path) not in json.dumps(book), "no machine path in what is made to be shared"
    for quiet_line in done.stderr.splitlines():
        assert " s  " in quiet_line, "one quiet line per step, no noise from kernels"


def test_batch_finishes_the_others_and_exits_1(batch: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = batch
    assert done.returncode == 1, done.stderr
    rows = {row["name"]: row for row in json.loads((folder / "out" / "batch.json").read_text())}
    assert {name: row["status"] for name, row in rows.items()} == {
        "empty": "failed", "other": "failed", "small": "made",
    }  # fmt: skip
    assert "empty" in rows["empty"]["reason"]
    assert rows["small"]["report"] == "small/report.html"
    index = (folder / "out" / "index.html").read_text()
    assert all(name in index for name in rows)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["batch.json", "index.html", "small"]
    assert json.loads((folder / "out" / "small" / "results.json").read_text())["parameters"]["seed"] == 2


def test_batch_does_not_redo_what_is_finished(batch: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = batch
    report = folder / "out" / "small" / "report.html"
    before = report.stat().st_mtime_ns
    again = run("batch", str(folder / "logs" / "small.csv"), "--out", str(folder / "out"), "--set", "seed=2", "--json")
    assert again.returncode == 0, again.stderr
    assert [row["status"] for row in json.loads(again.stdout)] == ["kept"]
    assert report.stat().st_mtime_ns == before


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    log = small_log(tmp_path / "logs")
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "kit", "report", str(log), "--out", str(out)],
        cwd=PROJECT,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 600
    while not list(out.glob(".small.*.partial/notebooks")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1].startswith("kit: interrupted")
    assert list(out.iterdir()) == []


def test_an_interrupt_while_the_kit_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "kit.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "kit.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert command_line() == 130
    assert capsys.readouterr().err == "kit: interrupted; nothing half-made was left behind\n"


@pytest.mark.parametrize("at", ["reading the log", "replay", "storing"])
@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt, duckdb.InterruptException, RuntimeError("Query interrupted")], ids=str
)
def test_an_interrupt_at_any_step_is_one_line_and_exit_code_130(
    at: str,
    raised: type | Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, out, told = small_log(tmp_path / "logs"), tmp_path / "out", Progress.__call__

    def stop(self: Progress, step: str) -> None:
        told(self, step)
        if step == at:
            raise raised

    monkeypatch.setattr(Progress, "__call__", stop)
    assert main(["report", str(log), "--out", str(out), "--set", "what_if=false"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "kit: interrupted; nothing half-made was left behind"
    assert list(out.iterdir()) == []


def test_the_bar_counts_the_cells_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    progress = Progress(total=2, stream=Terminal())
    progress("replay")
    progress.part(3, 12)
    assert progress._bar.n == 0.25 and progress._bar.desc.startswith("replay 3/12")
    progress("bounds")
    assert progress._bar.n == 1
    progress.close()
    quiet = Progress(total=2, stream=(lines := io.StringIO()))
    quiet("replay")
    quiet.part(3, 12)
    assert lines.getvalue().count("\n") == 1


def test_replicas_samples_and_shapes_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(small_log(tmp_path / "logs"))
    asked = ["replay", log, "--policies", "lru", "--capacities", "50000", "--json"]
    assert main([*asked, "--routing", "root,random", "--set", "replicas=3"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["routing"], row["replicas"]) for row in rows} == {("root", 3), ("random", 3)}
    assert main([*asked, "--sample", "0.5"]) == 0
    told = {(row["policy"], row["sample_rate"]) for row in json.loads(capsys.readouterr().out)}
    assert told == {("lru", None)}  # LRU alone is always replayed on the whole log
    assert main(["replay", log, "--policies", "lru,lfu", "--capacities", "50000", "--json", "--sample", "0.5"]) == 0
    told = {(row["policy"], row["sample_rate"]) for row in json.loads(capsys.readouterr().out)}
    assert told == {("lru", None), ("lfu", 0.5)}
    assert main(["shapes", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= {"llama-3.1-8b"}
    for more, said in (
        (["--routing", "session"], "--routing needs several replicas"),
        (["--routing", "logged", "--set", "replicas=2"], "the log does not name a replica for every request"),
        (["--routing", "nearest", "--set", "replicas=2"], "accepted: logged, session, root, round_robin"),
        (["--sample", "1.5"], "sample must be a share above 0 and at most 1, auto or none"),
        (["--policies", "tensorrt_priority"], "tensorrt_priority is left out: it needs priority of the requests"),
        (["--set", "capacity_gib=1", "--set", "kv_shape=nosuch"], "no key-value shape for model 'nosuch'"),
        (["--set", "capacity_gib=1"], "capacity_gib needs kv_shape"),
    ):
        assert main([*asked, *more]) in (1, 2)
        error = capsys.readouterr().err.strip().splitlines()
        assert len(error) == 1 and said in error[0]


def test_a_failing_notebook_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(tmp_path / "logs")
    target = tmp_path / "out" / "small"
    target.mkdir(parents=True)
    (target / "report.html").write_text("yesterday's")
    (target / "results.json").write_text("{}")
    books = tmp_path / "notebooks"
    shutil.copytree(notebooks.source_folder(), books)
    broken = json.loads((books / "2_reuse.ipynb").read_text())
    broken["cells"][-1]["source"] = ["1 / 0"]
    (books / "2_reuse.ipynb").write_text(json.dumps(broken))
    monkeypatch.setattr(notebooks, "source_folder", lambda: books)
    with pytest.raises(notebooks.NotebookError, match=r"2_reuse\.ipynb stopped: ZeroDivisionError: division by zero"):
        reporting.make([str(log)], tmp_path / "out", Parameters(), quiet=True)
    assert (target / "report.html").read_text() == "yesterday's"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["small"]


@pytest.mark.parametrize("damage", ["no kernel", "no tag", "unknown parameter"])
def test_a_notebook_that_cannot_run_is_refused_before_any_work(tmp_path: Path, damage: str) -> None:
    books = tmp_path / "notebooks"
    shutil.copytree(notebooks.source_folder(), books)
    book = json.loads((books / "1_log.ipynb").read_text())
    if damage == "no kernel":
        del book["metadata"]["kernelspec"]
    if damage == "no tag":
        book["cells"][1]["metadata"] = {}
    (books / "1_log.ipynb").write_text(json.dumps(book))
    given = {"nosuch": 1} if damage == "unknown parameter" else {"seed": 1}
    with pytest.raises(notebooks.NotebookError, match=r"1_log\.ipynb"):
        notebooks.check(books, given)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["report"], 2, "LOG"),
        (["nosuch"], 2, "invalid choice"),
        (["report", "x.csv", "--set", "nosuch=1"], 2, "unknown parameter 'nosuch'"),
        (["report", "x.csv", "--set", "ttl_seconds=nan"], 2, "finite"),
        (["report", "x.csv", "--map", "ts"], 2, "canonical=column"),
        (["replay", "x.csv", "--capacities", "many"], 2, "whole tokens"),
        (["replay", "x.csv", "--policies", "nosuch"], 2, "unknown policy 'nosuch'"),
        (["batch", "nosuch-*.csv"], 2, "no log files"),
        (["report", "absent.csv"], 1, "absent.csv"),
        (["inspect", "absent.csv"], 1, "absent.csv"),
        (["compare", "a.csv", "a.csv"], 2, "same log"),
        (["sample", "week.docx"], 2, ".parquet"),
    ],
)
def test_errors_are_one_line_with_the_right_code(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    printed = capsys.readouterr()
    last = printed.err.strip().splitlines()[-1]
    assert last.startswith("kit: ")
    assert message in last
    assert "Traceback" not in printed.err
    assert list(tmp_path.glob("reports/*")) == []


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "absent.csv", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["policies", "formats", "prices"])
def test_catalogues_are_bare_arrays_with_names(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows and all(row["name"] for row in rows)
    assert main([command]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("name")


def test_inspect_says_what_a_log_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = small_log(tmp_path)
    assert main(["inspect", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["rows"], found["kept"], found["rejected"]) == ("canonical", 300, 300, {})
    assert {"columns", "missing", "cannot_tell"} <= found.keys()
    assert main(["inspect", str(log)]) == 0


def test_inspect_shortens_long_lists_for_people_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"extra_{number}" for number in range(100)]
    (tmp_path / "wide.csv").write_text(",".join(["ts", "input_tokens", *names]) + "\n" + ",".join(["1"] * 102) + "\n")
    assert main(["inspect", str(tmp_path / "wide.csv")]) == 0
    assert "extra_37; and 62 more (--json lists all)" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "wide.csv"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["columns"]) == 102


def test_replay_gives_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """15 keys of 1,000 tokens in turn, in blocks of 100: at 15,000 tokens all 285 returns hit, at 14,000 none."""
    log = small_log(tmp_path)
    arguments = ["replay", str(log), "--policies", "lru", "--capacities", "14000,15000", "--set", "block_tokens=100"]
    assert main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    plain = {r["capacity_tokens"]: r for r in rows if (r["assumption"], r["window"]) == ("neutral", "cold")}
    assert {capacity: row["hit_tokens"] for capacity, row in plain.items()} == {14_000: 0, 15_000: 285_000}
    assert main(arguments) == 0
    assert "285,000" in capsys.readouterr().out


def test_sample_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        assert main(["sample", str(tmp_path / name), "--seed", "3", "--requests", "500"]) == 0
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_hash_says_what_it_wrote_and_what_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"role": "user", "content": "hello " * 100}
    rows = [{"ts": 1, "messages": [said]}, {"ts": 2, "messages": []}, {"ts": "soon", "messages": [said]}]
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{cut\n")
    assert main(["hash", str(tmp_path / "dump.jsonl"), str(tmp_path / "out.parquet")]) == 0
    first, *reasons = capsys.readouterr().out.splitlines()
    assert first.startswith("wrote 2 requests to ") and ", 1 of them without a prompt and so without keys (2 " in first
    assert sorted(reasons) == ["  1 damaged line: not JSON", "  1 ts is not an ISO time or an epoch"]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    commands = ("report", "batch", "inspect", "replay", "compare", "hash", "policies", "formats", "prices", "sample")
    assert all(name in text for name in commands)


def test_names_of_report_folders(tmp_path: Path) -> None:
    assert log_name(["logs/week.jsonl.gz"]) == "week"
    assert log_name(["a/one two.csv", "a/b.csv"]) == "one_two+1"
    assert log_name(["/srv/logs/"]) == "logs"
    for name in ("week.csv", "week.jsonl"):
        (tmp_path / name).write_text("x")
    assert list(named_logs([str(tmp_path)])) == ["week", "week-2"] and left_out([str(tmp_path)]) == []
    for name in ("upper.CSV", "tab.tsv", "notes.md"):
        (tmp_path / "more" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "more" / name).write_text("x")
    (tmp_path / "more" / "inner").mkdir()
    assert list(named_logs([str(tmp_path / "more")])) == ["tab", "upper"]
    folder, notes = left_out([str(tmp_path / "more")])
    assert folder.endswith("inner (a folder)") and notes.endswith("notes.md (no log by its ending)")
    (tmp_path / "manifest.list").write_text("# this week\nweek.csv\n\nweek.jsonl\n")
    assert named_logs([f"@{tmp_path}/manifest.list"]) == named_logs([str(tmp_path)])
    for nothing in (str(tmp_path / "*.parquet"), f"@{tmp_path}/absent"):
        with pytest.raises(UsageError):
            named_logs([nothing])


def test_a_log_named_twice_is_one_log(tmp_path: Path) -> None:
    (tmp_path / "week.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "week.csv")
    other = f"{tmp_path}/../{tmp_path.name}/week.csv"
    week = str(tmp_path / "week.csv")
    assert named_logs([week, other, str(tmp_path / "link.csv")]) == {"week": week}
    assert log_name([week, other]) == "week"
    assert log_name(["x.csv.csv.csv.csv"]) == "x", "the name of a folder is its own name"
    (tmp_path / "manifest.list").write_text("\ufeffweek.csv\n", encoding="utf-8")
    assert named_logs([f"@{tmp_path}/manifest.list"]) == {"week": week}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policies", "lru,lfu,lru"], "policies names lru twice"),
        (["--set", "policies=lru,lru"], "policies names lru twice"),
        (["--policies", "lru", "--set", "policies=lfu"], "policies is given twice, as lfu and as lru"),
        (["--capacities", "5,6,5"], "--capacities names 5 twice"),
        (["--routing", "root,root"], "--routing names root twice"),
        (["--set", "seed=1", "--set", "seed=2"], "seed is given twice, as 1 and as 2; give it once"),
        (["--sample", "0.5", "--set", "sample=0.1"], "sample is given twice, as 0.1 and as 0.5"),
        (["--format", "azure", "--set", "format=mooncake"], "format is given twice, as azure and as mooncake"),
        (["--map", "ts=a", "--map", "ts=b"], "--map names ts twice, as a and as b; name it once"),
        (["--routing", "nearest"], "--routing 'nearest' is not known; accepted: logged, session, root"),
        (["--routing", ","], "--routing takes names separated by commas, got ','"),
        (["--policies", "lur"], "unknown policy 'lur' (did you mean lru?)"),
    ],
)
def test_what_is_given_twice_is_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(small_log(tmp_path)), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_same_value_twice_is_one_value(tmp_path: Path) -> None:
    mapping = tmp_path / "map.toml"
    mapping.write_text('ts = "when"\nowner = "team"\n')
    assert pairs([str(mapping), "ts=began", "ts=began"], "--map") == {"ts": "began", "owner": "team"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sample", "x.csv", "--seed", "-1"], "argument --seed: must be a whole number from 0 to "),
        (["sample", "x.csv", "--seed", "one"], "argument --seed: must be a whole number from 0 to "),
        (["sample", "x.csv", "--requests", "1.5"], "argument --requests: must be a whole number from 1 to 50,000,000, "
         "got '1.5'"),
        (["batch", "x.csv", "--jobs", "0"], "argument --jobs: must be a whole number from 1 to 1,024, got '0'"),
        (["hash", "x", "y.parquet", "--block-tokens", "-5"], "argument --block-tokens: must be a whole number from 1 "),
        (["hash", "x", "y.csv"], "OUT y.csv: cannot write this kind of file; name it .parquet"),
        (["hash", "x", "y.parquet", "--salt", ""], "--salt takes a secret text, got nothing"),
        (["sample", "x.txt"], "OUT x.txt: cannot write this kind of file; name it .parquet, .csv"),
        (["report", "x.csv", "--name", "a/b"], "--name takes the name of one folder, got 'a/b'"),
        (["report", "x.csv", "--out", ""], "--out takes a folder, got an empty text"),
        (["sample", ""], "OUT takes the name of a file, got an empty text"),
        (["batch", ""], "a log was named by an empty text; give files"),
        (["inspect", "x.csv", "--map", "absent.toml"], "--map absent.toml: no such file; check the path"),
        (["report", "x.csv", "--name", ""], "--name takes the name of one folder, got ''"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_with_what_is_accepted(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", [["sample"], ["hash", "x.jsonl"], ["report", "x.csv", "--out"],
                                     ["batch", "x.csv", "--out"]])  # fmt: skip
def test_an_output_that_cannot_be_is_said_before_any_work(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    for folder, said in (("file", "is a file, not a folder"), ("link", "is a link to ")):
        assert main([*command, str(tmp_path / folder / "out.parquet")]) == 1
        error = capsys.readouterr().err.splitlines()
        assert len(error) == 1 and said in error[0] and str(tmp_path / folder) in error[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_an_error_of_the_system_is_a_line_with_what_to_do() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/out/week.csv")
    assert failures.line(full) == "/out/week.csv: no space left on the disk; free some, or choose another place"
    assert failures.line(PermissionError(errno.EACCES, "x")) == "no permission; change that, or choose another place"
    told = duckdb.IOException('Could not write file "/out/.week.x.partial/.log.duckdb.1.part": No space left on device')
    assert failures.line(told) == "/out: no space left on the disk; free some, or choose another place"
    assert failures.line(OSError("two\nlines")) == "two lines" and failures.line(KeyError("x")) == "KeyError: 'x'"


def test_a_kernel_that_starts_while_all_are_ended_is_ended_too(tmp_path, monkeypatch):
    ended, rounds = threading.Event(), []

    def execute(source: Path, target: Path, parameters: object, manager: object) -> float:
        if source.stem == notebooks.NAMES[0]:
            raise notebooks.NotebookError("stopped")
        assert ended.wait(60), "nobody ended the kernel that came late"
        return 0.0

    def stop(kernels: list[object]) -> None:
        rounds.append(kernels)
        if len(rounds) > 1:
            ended.set()

    monkeypatch.setattr(notebooks, "_execute", execute)
    monkeypatch.setattr(notebooks, "_stop", stop)
    with pytest.raises(notebooks.NotebookError, match="stopped"):
        notebooks.run(tmp_path / "books", tmp_path / "store", {})
    assert len(rounds) > 1


def test_a_folder_is_published_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "week"
    with whole_or_nothing(target) as work:
        (work / "a").write_text("1")
        (work / "results.json").write_text("{}")
        assert not target.exists()
    with pytest.raises(KeyboardInterrupt), whole_or_nothing(target) as work:
        (work / "a").write_text("2")
        raise KeyboardInterrupt
    assert (target / "a").read_text() == "1"
    assert os.listdir(tmp_path) == ["week"]


def test_what_the_kit_did_not_make_is_never_replaced(tmp_path: Path) -> None:
    mine, log = tmp_path / "mine", tmp_path / "logs" / "three.csv"
    for folder in (mine, log.parent):
        folder.mkdir()
    (mine / "precious.txt").write_text("x")
    log.write_text("ts,input_tokens\n1,1\n")
    file = tmp_path / "three"
    file.write_text("x")
    for target, said in ((mine, "holds no report"), (log.parent, "holds the log"), (file, "is a file"),
                         (file / "below", "is a file, not a folder")):  # fmt: skip
        with pytest.raises(ValueError, match=said), whole_or_nothing(target, [str(log)]):
            raise AssertionError("the work must not begin")
    assert (mine / "precious.txt").exists() and log.exists() and file.is_file()


@pytest.mark.parametrize(
    "text",
    ["policies=nosuch", "policies=LRU", "seed=-1", "capacity_tokens=1", "capacity_tokens=99999999999999999999",
     "ttl_seconds=1e300", "block_tokens=99999999999999999999"],
)  # fmt: skip
def test_a_parameter_out_of_reach_is_named_and_is_a_usage_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(PROJECT / "data" / "sample_week.parquet"), "--set", text]) == 2
    assert text.partition("=")[0] in capsys.readouterr().err


def test_each_notebook_is_said_to_take_its_own_time(tmp_path, monkeypatch):
    """What a notebook took is measured in it: not the time until the next one is done."""
    took = {name: float(place) for place, name in enumerate(notebooks.NAMES)}
    monkeypatch.setattr(notebooks, "_execute", lambda source, target, parameters, manager: took[source.stem])
    found = notebooks.run(tmp_path / "books", tmp_path / "store", {})
    assert {name: found[f"notebook {name}"] for name in notebooks.NAMES} == took and found["notebooks"] >= 0
