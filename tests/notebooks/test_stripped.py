"""What is in git is what a person wrote: no outputs, no counts, nothing of the machine."""

from __future__ import annotations

import json
import re

import pytest

from tests.notebooks import running

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
EVERY = pytest.mark.parametrize("name", running.names())


@EVERY
def test_nothing_of_a_run_is_left(name: str) -> None:
    notebook = running.read(name)
    assert notebook["metadata"] == METADATA
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
        else:
            assert cell["cell_type"] == "markdown" and set(cell) == {"cell_type", "id", "metadata", "source"}


@EVERY
def test_ids_are_names_that_stay(name: str) -> None:
    """Tests, pictures and reviews refer to cells by them."""
    ids = [cell["id"] for cell in running.read(name)["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z-]{1,30}", one) for one in ids), ids


@EVERY
def test_written_as_jupyter_writes_it(name: str) -> None:
    """So that a change of a word is a change of a line."""
    raw = (running.NOTEBOOKS / f"{name}.ipynb").read_text("utf-8")
    assert raw == json.dumps(json.loads(raw), indent=1, ensure_ascii=False) + "\n"
    for cell in json.loads(raw)["cells"]:
        assert isinstance(cell["source"], list)
        assert all(line.endswith("\n") for line in cell["source"][:-1])


@EVERY
def test_begins_with_a_title_and_prose(name: str) -> None:
    first, *others = running.read(name)["cells"]
    assert first["cell_type"] == "markdown" and running.joined(first["source"]).startswith("# ")
    assert sum(cell["cell_type"] == "markdown" for cell in others) >= len(others) / 3


@EVERY
def test_links_lead_somewhere(name: str) -> None:
    for cell in running.read(name)["cells"]:
        if cell["cell_type"] == "markdown":
            for link in re.findall(r"\]\(([^)]+)\)", running.joined(cell["source"])):
                assert (running.NOTEBOOKS / link).is_file(), link
