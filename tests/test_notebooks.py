"""The notebooks as files: thin, typed, with true outputs. Their figures are compared by nbval (make test)."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest

from kit.cli.notebooks import NAMES, source_folder

FOLDER = source_folder()
EYEBROW_LINES = 10
LOOPS_AND_FUNCTIONS = (ast.For, ast.While, ast.FunctionDef, ast.ClassDef, ast.ListComp, ast.DictComp, ast.SetComp)


def book(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.ipynb").read_text())
    return found


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def tagged(name: str, tag: str) -> list[dict[str, Any]]:
    return [cell for cell in book(name)["cells"] if tag in cell["metadata"].get("tags", [])]


def code(name: str) -> list[dict[str, Any]]:
    return [cell for cell in book(name)["cells"] if cell["cell_type"] == "code"]


def test_there_are_six() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_title_comes_first_and_asks(name: str) -> None:
    first = text(book(name)["cells"][0])
    assert first.startswith("# ")
    if name != "report":
        assert first.splitlines()[0].endswith("?")


def test_parameters_are_the_same_in_all_six() -> None:
    cells = {text(tagged(name, "parameters")[0]) for name in NAMES}
    assert len(cells) == 1
    for line in cells.pop().splitlines():
        statement = ast.parse(line).body[0]
        assert isinstance(statement, ast.AnnAssign), line
        ast.literal_eval(statement.value)  # type: ignore[arg-type]
        assert re.search(r"  # \w", line), f"unit and meaning are missing: {line}"


@pytest.mark.parametrize("name", NAMES)
def test_papermill_reads_every_parameter(name: str) -> None:
    import papermill

    found = papermill.inspect_notebook(str(FOLDER / f"{name}.ipynb"))
    assert len(found) == len(text(tagged(name, "parameters")[0]).splitlines())
    assert all(one["inferred_type_name"] != "None" and one["help"] for one in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_thin(name: str) -> None:
    """No loop, no function, no long select outside the cell that shows a policy of one's own."""
    for cell in code(name):
        tags = cell["metadata"].get("tags", [])
        if "user-policy" in tags:
            continue
        tree = ast.parse(text(cell))
        assert not [node for node in ast.walk(tree) if isinstance(node, LOOPS_AND_FUNCTIONS)], text(cell)
        assert len(text(cell).splitlines()) <= EYEBROW_LINES


def test_a_policy_of_ones_own_is_in_one_cell_only() -> None:
    assert {name: len(tagged(name, "user-policy")) for name in NAMES if tagged(name, "user-policy")} == {"4_replay": 1}


@pytest.mark.parametrize("name", NAMES)
def test_prose_holds_no_typed_figures(name: str) -> None:
    """A number in prose is computed: markdown may name notebooks and the pessimistic setting's own constants only."""
    allowed = {"1", "5", "20"}
    for cell in book(name)["cells"]:
        if cell["cell_type"] == "markdown":
            assert set(re.findall(r"\d+(?:[.,]\d+)*", text(cell))) <= allowed, text(cell)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_kept_and_clean(name: str) -> None:
    found = book(name)
    assert found["metadata"]["kernelspec"]["name"] == "python3"
    assert "papermill" not in found["metadata"]
    numbers = [cell["execution_count"] for cell in code(name)]
    assert numbers == list(range(1, len(numbers) + 1)), "run afresh from top to bottom: make notebooks"
    kinds = {out["output_type"] for cell in code(name) for out in cell["outputs"]}
    assert kinds <= {"execute_result", "display_data"}, "no error and nothing printed on the side"
    assert str(source_folder().parent) not in json.dumps(found) and "/home/" not in json.dumps(found)


def test_every_chart_has_words_and_a_picture() -> None:
    charts = [
        out["data"]
        for name in NAMES
        for cell in code(name)
        for out in cell["outputs"]
        if "image/svg+xml" in out.get("data", {})
    ]
    assert len(charts) >= 6
    for data in charts:
        assert "".join(data["text/plain"]).startswith("<figure: ")
        assert "application/vnd.vegalite.v5+json" in data
        assert "text/html" not in data  # JupyterLab would prefer it to the live chart


def test_the_last_word_of_each_is_a_verdict() -> None:
    for name in NAMES:
        last = code(name)[-1]["outputs"][-1]["data"]
        assert "".join(last["text/markdown"]).strip()


HOSTILE = """week'; import os; os.abort() #"\\\n%%bash\nrm -rf x\n{{x}} </script>=cmd|'/c calc'!A1.csv"""


@pytest.mark.parametrize("name", ["log_path", "policies", "settings", "reading"])
def test_a_hostile_name_stays_a_literal_in_the_parameters_cell(name: str) -> None:
    """What the command line hands over (file names, owners, models) becomes one literal, never code of its own."""
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    value: Any = {"provider": HOSTILE, HOSTILE: 1} if name == "settings" else HOSTILE
    source = load_notebook_node(str(FOLDER / "5_decision.ipynb"))
    made = parameterize_notebook(source, {name: value}, kernel_name="python3", language="python")
    [cell] = [cell for cell in made.cells if "injected-parameters" in cell.metadata.get("tags", [])]
    [statement] = ast.parse(cell.source).body
    assert isinstance(statement, ast.Assign) and ast.literal_eval(statement.value) == value
