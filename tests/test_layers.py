"""A module of the kit imports only from modules earlier in one order, and only packages that pyproject.toml names.

Imports that only a type checker sees are not imports here.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
ORDER = (
    *("terms", "numbers", "intervals", "prefix", "sample", "formats", "log", "reuse", "turns", "policies", "replay"),
    *("prices", "providers", "billing", "decide", "charts", "report", "analysis", "cli", "__main__"),
)
READS_RESULTS_ONLY = {"charts": {"terms", "numbers"}, "report": {"terms", "numbers", "charts"}}
KIT_FILES = sorted((PROJECT / "kit").rglob("*.py"))
MODULES = sorted({path.relative_to(PROJECT / "kit").parts[0].removesuffix(".py") for path in KIT_FILES})


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every imported module of a file as a dotted name, with its line; relative imports made absolute."""
    package = ".".join(path.relative_to(PROJECT).parent.parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {id(inner) for node in ast.walk(tree) if _is_for_types(node) for inner in ast.walk(node)}
    for node in filter(lambda node: id(node) not in for_types, ast.walk(tree)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([*base, node.module or ""]).strip(".")
            yield from ((f"{name}.{alias.name}", node.lineno) for alias in node.names)


def kit_imports(module: str) -> Iterator[tuple[str, str]]:
    """The kit modules that a module imports, each with the place where it does."""
    files = [PROJECT / "kit" / f"{module}.py", *(PROJECT / "kit" / module).rglob("*.py")]
    for path in filter(Path.exists, files):
        for name, line in imports(path):
            parts = name.split(".")
            if parts[0] == "kit" and len(parts) > 1 and parts[1] != "__version__":
                yield parts[1], f"{path.relative_to(PROJECT)}:{line}"


def test_every_module_has_its_place():
    assert [name for name in MODULES if name not in (*ORDER, "__init__", "__pycache__")] == []


@pytest.mark.parametrize("module", [name for name in ORDER if name in MODULES])
def test_imports_point_up_the_order(module: str):
    allowed = {*ORDER[: ORDER.index(module)], module}
    wrong = [f"{place} imports kit.{name}" for name, place in kit_imports(module) if name not in allowed]
    assert wrong == []


@pytest.mark.parametrize("module", sorted(READS_RESULTS_ONLY))
def test_charts_and_report_read_only_the_results(module: str):
    allowed = READS_RESULTS_ONLY[module] | {module}
    assert [f"{place} imports kit.{name}" for name, place in kit_imports(module) if name not in allowed] == []


def test_packages_are_declared():
    """What only the tests or the notebooks use may not slip into the kit."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=\[; ]", line)[0].replace("-", "_").lower() for line in project["dependencies"]}
    brought = {"vl_convert_python": {"vl_convert"}, "jinja2": {"markupsafe"}, "ipykernel": {"jupyter_client"}}
    brought["nbconvert"] = {"nbformat", "nbclient"}
    declared |= {name for package, names in brought.items() if package in declared for name in names}
    undeclared = [
        f"{path.relative_to(PROJECT)}:{line} imports {name}"
        for path in KIT_FILES
        for name, line in imports(path)
        if (top := name.split(".")[0]) not in declared | {"kit"} and top not in sys.stdlib_module_names
    ]
    assert undeclared == []
