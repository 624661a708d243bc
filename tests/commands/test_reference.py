"""The generated reference is what the declarations and the sample give now."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests import docs_reference


def test_is_up_to_date(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine: the size of ``support-bundle``'s facts about it was once part of the page."""
    monkeypatch.setenv("KSHELL_OF_ANOTHER_MACHINE", "1")
    monkeypatch.setattr(platform, "platform", lambda: "a machine that nobody else has")
    assert docs_reference.main(["--check"]) == 0, capsys.readouterr().err


def test_check_writes_nothing_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs_reference, "REFERENCE", tmp_path / "reference")
    pages = {"tree.md": "the tree", "commands/status.md": "a command"}  # the real ones take seconds
    monkeypatch.setattr(docs_reference, "PARTS", {"pages": lambda: pages})
    assert docs_reference.main(["--check"]) == 1
    assert not (tmp_path / "reference").exists()
    assert docs_reference.main([]) == 0
    assert docs_reference.main(["--check"]) == 0
    (tmp_path / "reference" / "tree.md").write_text("old")
    assert docs_reference.main(["--check"]) == 1
    assert docs_reference.main([]) == 0
    (tmp_path / "reference" / "commands" / "gone.md").write_text("a command that is no more")
    assert docs_reference.main(["--check"]) == 1
    assert docs_reference.main([]) == 0
    assert {path.name: path.read_text() for path in tmp_path.rglob("*.md")} == {
        "tree.md": "the tree",
        "status.md": "a command",
    }
    assert not (tmp_path / "reference" / "commands" / "gone.md").exists()


@pytest.mark.parametrize("part", list(docs_reference.PARTS))
def test_no_page_depends_on_the_time_or_the_place(part: str) -> None:
    pages = docs_reference.PARTS[part]()
    assert pages
    assert [name for name, text in pages.items() if " ago" in text or str(Path.cwd()) in text] == []
