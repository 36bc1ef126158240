"""Find a Chromium for the tests of the report, or bring one.

As a program (`make browser`) it brings one, as a module it only looks. Brought is the Debian package when root on a
Debian, otherwise Playwright's own download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LAUNCH = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync")  # fmt: skip


def _candidates() -> Iterator[str]:
    """Where a Chromium may be: the variable CHROMIUM, the usual commands, Playwright's own copy."""
    if named := os.environ.get("CHROMIUM"):
        yield named
    yield from filter(None, map(shutil.which, NAMES))
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            yield playwright.chromium.executable_path
    except Exception as reason:  # Playwright itself may be missing or unable to start: then there is no copy of its own
        print(f"browser: no Playwright to ask ({reason})", file=sys.stderr)


def _starts(path: str) -> bool:
    """Whether the program is there and its libraries too."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find() -> Path | None:
    """Path of a Chromium that starts, or None."""
    return next((Path(path) for path in _candidates() if _starts(path)), None)


def chromium() -> Path:
    """Path of a Chromium for a test; without one the test is skipped with its reason, and fails where CI=true."""
    import pytest

    path = find()
    if path is None:
        reason = "no Chromium to be found or brought: the report was NOT looked at in a browser (make browser says why)"
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def _run(*command: str) -> bool:
    print("browser:", " ".join(command), flush=True)
    try:
        return subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}).returncode == 0
    except OSError as reason:
        print(f"browser: {reason}", file=sys.stderr)
        return False


def bring() -> Path | None:
    """Install a Chromium and return its path; None where neither way works."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and Path("/etc/debian_version").exists():
        _run("apt-get", "update", "-q")
        if _run("apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium") and (path := find()):
            return path
    _run(sys.executable, "-m", "playwright", "install", "chromium")
    return find()


if __name__ == "__main__":
    found = find() or bring()
    print(f"browser: {found or 'none. The browser tests will be SKIPPED, or fail where CI=true.'}", flush=True)
