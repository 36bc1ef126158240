"""The project keeps what its README promises: pinned environments, commands that exist, clean files."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
README = (PROJECT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (PROJECT / "Makefile").read_text(encoding="utf-8")
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
NAMES = ["1_log.ipynb", "2_reuse.ipynb", "3_turns.ipynb", "4_replay.ipynb", "5_decision.ipynb", "report.ipynb"]


def pins(name: str) -> dict[str, list[Requirement]]:
    """Package -> its `==` lines in a file of pins (one per Python where they differ)."""
    found: dict[str, list[Requirement]] = {}
    for line in (PROJECT / name).read_text(encoding="utf-8").splitlines():
        if re.match(r"[a-z0-9]", line):
            one = Requirement(line.rstrip("\\ "))
            found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


def declared() -> list[Requirement]:
    """Everything that pyproject.toml asks for: the kit, its extras, the development group."""
    project = PYPROJECT["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in [*project["dependencies"], *extras, *PYPROJECT["dependency-groups"]["dev"]]]


@pytest.mark.parametrize("name", ["requirements.lock", "constraints.txt"])
def test_pins_fit_what_is_declared(name: str):
    pinned = pins(name)
    for wanted in declared():
        versions = [next(iter(pin.specifier)).version for pin in pinned[canonicalize_name(wanted.name)]]
        assert versions and all(wanted.specifier.contains(version) for version in versions), (str(wanted), versions)


def test_constraints_are_the_lock_without_hashes():
    as_text = [{name: sorted(map(str, lines)) for name, lines in pins(file).items()} for file in
               ("requirements.lock", "constraints.txt")]  # fmt: skip
    assert as_text[0] == as_text[1]


def test_lock_has_a_hash_for_every_pin_and_no_address():
    text = (PROJECT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    blocks = re.split(r"\n(?=[a-z0-9])", text)
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_what_the_lock_leaves_out_is_named():
    """`make lock` reads the overrides, so that the lock can be made again."""
    left_out = [line for line in (PROJECT / "lock-overrides.txt").read_text().splitlines() if line and line[0] != "#"]
    assert [
        Requirement(line).name
        for line in left_out
        if canonicalize_name(Requirement(line).name) in pins("requirements.lock")
    ] == []
    assert "--overrides lock-overrides.txt" in MAKEFILE


def test_conda_gets_the_same_set():
    environment = yaml.safe_load((PROJECT / "environment.yml").read_text(encoding="utf-8"))
    from_conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    from_pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert environment["channels"] == ["conda-forge"]
    assert [re.split(r"[=<>]", entry)[0] for entry in from_conda] == ["python", "pip"]
    python = from_conda[0].split("=")[1]
    assert SpecifierSet(PYPROJECT["project"]["requires-python"]).contains(f"{python}.0")
    assert from_pip == ["-c constraints.txt", "-e .[lab]"]
    assert "lab" in PYPROJECT["project"]["optional-dependencies"]


def test_make_commands_of_the_readme_exist():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)", README))
    assert {"report", "test", "env", "lab", "bench"} <= named <= targets


def test_kit_commands_of_the_readme_exist():
    pytest.importorskip("kit.cli", reason="the command line")
    usage = subprocess.run([sys.executable, "-m", "kit", "--help"], capture_output=True, text=True, cwd=PROJECT).stdout
    named = set(re.findall(r"python -m kit ([a-z]+)", README))
    assert {"report", "inspect"} <= named
    assert [name for name in named if not re.search(rf"\b{name}\b", usage)] == []


def test_continuous_integration_runs_make_test():
    assert "make test" in (PROJECT / ".ci" / "run").read_text(encoding="utf-8")


def _committed() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=PROJECT)
    if listed.returncode:
        pytest.skip("not a git checkout: no list of committed files")
    return [PROJECT / name for name in listed.stdout.split("\0") if name and (PROJECT / name).is_file()]


def test_no_file_names_a_machine():
    """No absolute path of somebody's disk, no package host, in anything that is text."""
    machine = re.compile(
        r"(?<![\w.:/])/(?:home|root|Users|work|mnt)/\w|--(?:extra-)?index-url|pypi\.org/simple|pythonhosted"
    )
    found = []
    for path in _committed():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path != Path(__file__).resolve():
            found += [f"{path.relative_to(PROJECT)}: {match.group()}" for match in machine.finditer(text)]
    assert found == []


def test_no_committed_file_is_large():
    assert [
        f"{path.name}: {path.stat().st_size:,} bytes" for path in _committed() if path.stat().st_size > 2_500_000
    ] == []


def test_the_readme_names_the_six_notebooks():
    """The table of the README and the folder hold the same six, in the same order."""
    assert [path.name for path in NOTEBOOKS] == NAMES
    assert re.findall(r"\(notebooks/([\w.]+\.ipynb)\)", README) == NAMES
