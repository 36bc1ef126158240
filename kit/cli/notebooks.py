"""The six notebooks of a report, executed by papermill on the finished analysis, two at a time.

Threads are enough: the work is in the kernels. Kernels talk over files instead of ports (several runs never collide),
their start-up noise is dropped, and every one of them is stopped when the run is interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from kit.analysis.store import STORE_VARIABLE

NAMES = ("1_log", "2_reuse", "3_turns", "4_replay", "5_decision", "report")
CELL_TIMEOUT_SECONDS = 600
START_TIMEOUT_SECONDS = 120


class NotebookError(RuntimeError):
    """A notebook that did not finish: which one, the error's name and its first line."""


def source_folder() -> Path:
    """Where the notebooks are: beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if all((folder / f"{name}.ipynb").exists() for name in NAMES):
            return folder
    raise NotebookError(f"the notebooks {', '.join(NAMES)} are not beside the package; install from a checkout")


def check(folder: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse a notebook without a kernel or a tagged parameters cell, and unknown parameters, before any work."""
    for name in NAMES:
        book = json.loads((folder / f"{name}.ipynb").read_text())
        if not book.get("metadata", {}).get("kernelspec", {}).get("name"):
            raise NotebookError(f"{name}.ipynb names no kernel; choose one in JupyterLab and save it")
        tagged = [c for c in book["cells"] if "parameters" in c.get("metadata", {}).get("tags", [])]
        if len(tagged) != 1:
            raise NotebookError(f"{name}.ipynb has {len(tagged)} cells tagged `parameters`; it needs exactly one")
        text = "".join(tagged[0]["source"])
        missing = [p for p in parameters if f"{p}:" not in text]
        if missing:
            raise NotebookError(f"{name}.ipynb does not know the parameter {missing[0]!r}")


def run(
    target: Path,
    store: Path,
    parameters: Mapping[str, Any],
    jobs: int = 2,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, float]:
    """Execute the notebooks into `target`; NotebookError names the first that failed and stops the others.

    Comes back: seconds from start to end of each ("notebook 1_log"; `jobs` run at a time) and of all ("notebooks").
    `progress` hears of each when it is done.
    """
    source, began, took = source_folder(), time.perf_counter(), {}
    target.mkdir(parents=True, exist_ok=True)
    kernels: list[Any] = []
    manager = _manager_class(store.resolve(), target.resolve(), kernels)
    pool = ThreadPoolExecutor(jobs)
    futures = {
        pool.submit(_execute, source / f"{name}.ipynb", target / f"{name}.ipynb", parameters, manager): name
        for name in NAMES
    }
    try:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
            for future in done:
                took[f"notebook {futures[future]}"] = future.result()
                progress(f"notebook {futures[future]}")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        while running := [future for future in futures if not future.done()]:
            _stop(kernels)  # again and again: one may still be starting
            wait(running, timeout=0.2)
        _stop(kernels)
        pool.shutdown(wait=True)
    return {"notebooks": round(time.perf_counter() - began, 3), **took}


def _execute(source: Path, target: Path, parameters: Mapping[str, Any], manager: type) -> float:
    """Seconds the execution of one notebook took."""
    began = time.perf_counter()
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # 35 grammars compiled at import
    import papermill

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # what fails is said once, by NotebookError
    try:
        papermill.execute_notebook(
            str(source),
            str(target),
            parameters=dict(parameters),
            kernel_name="python3",
            kernel_manager_class=manager,
            progress_bar=False,
            log_output=False,
            execution_timeout=CELL_TIMEOUT_SECONDS,
            start_timeout=START_TIMEOUT_SECONDS,
        )
    except papermill.PapermillExecutionError as error:
        first = str(error.evalue).strip().splitlines()[:1]
        raise NotebookError(f"{source.name} stopped: {error.ename}: {''.join(first)}") from error
    _forget_paths(target)
    return round(time.perf_counter() - began, 3)


def _forget_paths(book: Path) -> None:
    """Take this machine's paths out of what papermill notes in an executed notebook: it is made to be shared."""
    found = json.loads(book.read_text(encoding="utf-8"))
    noted = found["metadata"].get("papermill", {})
    for name in ("input_path", "output_path"):
        noted[name] = Path(noted.get(name) or book.name).name
    book.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _manager_class(store: Path, folder: Path, kernels: list[Any]) -> type:
    """A kernel manager whose kernels work in `folder`, know the unfinished store, stay silent, and are listed.

    papermill's own `cwd` would change the folder of this whole process, for all threads.
    """
    from jupyter_client.manager import AsyncKernelManager

    class QuietKernels(AsyncKernelManager):
        """Kernels over local sockets, each in a folder of its own, with the store's path in their environment."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.transport = "ipc"
            self.socket_folder = tempfile.TemporaryDirectory(prefix="kernel-")
            self.ip = os.path.join(self.socket_folder.name, "k")

        async def _async_pre_start_kernel(self, **kw: Any) -> Any:
            env = {**(kw.get("env") or os.environ), STORE_VARIABLE: str(store)}
            env.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
            kw |= {"env": env, "cwd": str(folder), "stderr": subprocess.DEVNULL}
            out = await super()._async_pre_start_kernel(**kw)
            kernels.append(self)
            return out

    return QuietKernels


def _stop(kernels: list[Any]) -> None:
    """End kernels still alive, by their own process id."""
    for manager in kernels:
        process = getattr(manager.provisioner, "process", None) if manager.provisioner else None
        if process is not None and process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        manager.socket_folder.cleanup()
