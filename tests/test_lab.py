"""The notebooks as a reader runs them: Run All in JupyterLab, in a browser that may talk to this machine only."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.cli.notebooks import NAMES, source_folder
from tests import browser
from tests.conftest import PROJECT

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: JupyterLab was not opened")
pytest.importorskip("jupyterlab", reason="jupyterlab is not installed: the notebooks were not opened in it")

RUN_ALL = """async (path) => {
  await jupyterapp.restored;
  const panel = await jupyterapp.commands.execute('docmanager:open', {path});
  await panel.context.ready;
  await panel.sessionContext.ready;
  jupyterapp.shell.activateById(panel.id);
  await jupyterapp.commands.execute('notebook:run-all-cells');
  return panel.content.model.toJSON().cells.filter(cell => cell.cell_type === 'code');
}"""
DRAWN = """() => document.querySelectorAll('.jp-OutputArea canvas, .jp-OutputArea .vega-embed svg').length"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the notebooks and the sample week, so that nothing of the checkout is written to."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(source_folder(), folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    (folder / "data").mkdir()
    shutil.copy(PROJECT / "data" / "sample_week.parquet", folder / "data")
    return folder


@pytest.fixture(scope="module")
def lab(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a JupyterLab of its own, with folders of its own; stopped at the end."""
    home, token = tmp_path_factory.mktemp("jupyter"), secrets.token_hex(8)
    news = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = {"CONFIG": "config", "DATA": "data", "RUNTIME": "runtime"}
    places = {f"JUPYTER_{name}_DIR": str(home / folder) for name, folder in names.items()}
    places |= {f"JUPYTERLAB_{name}_DIR": str(home / name.lower()) for name in ("SETTINGS", "WORKSPACES")}
    options = [f"--port={port}", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={place}"]
    options += ["--no-browser", "--ip=127.0.0.1", "--ServerApp.port_retries=0", "--allow-root"]
    options += ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url="]
    options += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with (home / "lab.log").open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            env={**os.environ, **places, "IPYTHONDIR": str(home / "ipython")},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status?token={token}", server, home / "lab.log")
        yield f"http://127.0.0.1:{port}/lab?token={token}&reset"
    finally:
        server.terminate()
        server.wait(timeout=60)


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start: {log.read_text()[-500:]}")


@pytest.fixture(scope="module")
def page(lab: str) -> Iterator[Any]:
    path = browser.chromium()
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(path), args=list(browser.LAUNCH))
        context = chromium.new_context(viewport={"width": 1280, "height": 4000})
        context.set_default_timeout(300_000)
        opened = context.new_page()
        opened.asked_outside = []
        outside = re.compile(r"^https?://(?!127\.0\.0\.1)")
        context.route(outside, lambda route: (opened.asked_outside.append(route.request.url), route.abort()))
        opened.goto(lab)
        opened.wait_for_function("() => window.jupyterapp")
        yield opened
        chromium.close()


@pytest.mark.parametrize("name", NAMES)
def test_run_all(page: Any, name: str) -> None:
    cells = page.evaluate(RUN_ALL, f"notebooks/{name}.ipynb")
    outputs = [out for cell in cells for out in cell["outputs"]]
    assert all(cell["execution_count"] for cell in cells)
    assert [out for out in outputs if out["output_type"] in ("error", "stream")] == []
    charts = [out for out in outputs if "image/svg+xml" in out.get("data", {})]
    if charts:
        page.wait_for_function(f"() => ({DRAWN})() >= 1")
    assert page.asked_outside == []
