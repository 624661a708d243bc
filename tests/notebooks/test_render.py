"""Pages of docs/notebooks: what of an output survives where they are read, and whether they are up to date."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import render, running


def page(*outputs: dict[str, Any], source: str = "%kafka ls") -> render.Page:
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": source, "outputs": list(outputs)}
    return render.Page("tour", {"cells": [cell]})


def shown(**data: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {key.replace("_", "/"): form for key, form in data.items()}}


def test_pages_belong_to_the_cells_of_their_notebooks() -> None:
    assert list(render.complaints()) == []


def test_pages_tell_nothing_of_a_machine() -> None:
    for name in running.names():
        text = (render.TARGET / f"{name}.md").read_text("utf-8")
        assert not any(word in text for word in ("/tmp/", "/home/", "/root", "site-packages", "Traceback", "style=")), (
            name
        )


def test_every_picture_is_used() -> None:
    pages = "".join((render.TARGET / f"{name}.md").read_text("utf-8") for name in running.names())
    assert all(f"images/{path.name}" in pages for path in (render.TARGET / "images").iterdir())


def test_a_page_is_old_when_a_cell_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source counts, not what a run left in the notebook."""
    cell: dict[str, Any] = {"cell_type": "code", "id": "a", "metadata": {}, "source": ["x = 1"], "outputs": []}
    notebook = {"cells": [cell]}
    monkeypatch.setattr(running, "NOTEBOOKS", tmp_path)
    (tmp_path / "tour.ipynb").write_text(json.dumps(notebook), "utf-8")
    target = tmp_path / "docs"
    target.mkdir()
    assert list(render.complaints(target)) == ["tour.md: missing"]
    (target / "tour.md").write_text(render.heading("tour", notebook) + "\n", "utf-8")
    assert list(render.complaints(target)) == []
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    (tmp_path / "tour.ipynb").write_text(json.dumps(notebook), "utf-8")
    assert list(render.complaints(target)) == []
    cell["source"] = ["x = 2"]
    (tmp_path / "tour.ipynb").write_text(json.dumps(notebook), "utf-8")
    assert list(render.complaints(target)) == ["tour.md: older than the cells of tour.ipynb"]
    (tmp_path / "tour.ipynb").unlink()
    assert list(render.complaints(target)) == ["tour.md: there is no such notebook"]


def test_check_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert render.main(["--check"]) == 0
    assert capsys.readouterr().out == "docs/notebooks is up to date\n"


def test_html_without_styles_and_empty_lines() -> None:
    html = (
        '<div style="x">\n<style scoped>\np {}\n</style>\n'
        '<table border="1" class="dataframe">\n\n  <tr><td>1</td></tr></table></div>'
    )
    made = page(shown(text_html=html, text_plain="1")).text
    assert made.endswith("```\n\n<div>\n<table>\n<tr><td>1</td></tr></table></div>\n")


def test_a_fence_that_nothing_closes() -> None:
    made = page({"output_type": "stream", "name": "stdout", "text": "```\n<b>\n"}, source="print()").text
    assert made.endswith("```python\nprint()\n```\n\n````text\n```\n<b>\n````\n")


def test_a_picture_is_a_file_with_its_words() -> None:
    png = base64.b64encode(b"\x89PNG").decode()
    output = {
        "output_type": "execute_result",
        "data": {"image/png": png, "text/plain": "no words"},
        "metadata": {"image/png": {"width": 880, "alt": 'a "picture" <of>'}},
    }
    made = page(output)
    assert made.pictures == {"tour-one.png": b"\x89PNG"}
    words = "a &quot;picture&quot; &lt;of&gt;"
    assert f'<img src="images/tour-one.png" alt="{words}" width="880">' in made.text


def test_links_lead_to_pages() -> None:
    source = ["[next](incident.ipynb), [x](x.png), [y](../docs/spark.md)"]
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": source}
    assert "[next](incident.md), [x](x.png), [y](../spark.md)" in render.Page("tour", {"cells": [cell]}).text
