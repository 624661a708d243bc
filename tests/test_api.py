"""``kshell.open`` and what it gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import kshell
from kshell.errors import KshellError, SourceNotFoundError, UsageError

DIRECTORY = str(Path(__file__).parents[1] / "kshell/demo")


def test_a_result_is_rows_and_json() -> None:
    with kshell.open(DIRECTORY) as session:
        result = session.run("find /image/cluster/brokers -type broker --values")
        assert [row["value"]["id"] for row in result.rows] == [1, 2, 3]
        assert len(result) == 3
        assert [row["path"] for row in result] == [f"/image/cluster/brokers/{n}" for n in (1, 2, 3)]
        assert '"epoch": 14' in result.to_json()
        assert result.to_dict() == result.rows
        assert result.exit_code == 0


def test_a_value_is_an_object() -> None:
    session = kshell.open(DIRECTORY)
    leaf = session.run("cat /image/cluster/brokers/3")
    assert leaf.to_dict()["fenced"] is True
    assert leaf.rows == [leaf.to_dict()]
    assert "fenced" in str(leaf)
    assert "<" in str(leaf._repr_html_()) and "|" in str(leaf._repr_markdown_())


def test_the_working_directory_stays() -> None:
    session = kshell.open(DIRECTORY)
    session.run("cd /image/features")
    assert session.run("pwd").to_dict() == "/image/features"
    assert session.run("cat metadataVersion").to_dict() == "4.3-IV0"


def test_points_in_time() -> None:
    session = kshell.open(DIRECTORY)
    path = "cat /image/topics/byName/legacy-import/0"
    assert session.run(path).to_dict()["leader"] == -1
    assert session.at(160).run(path).to_dict()["leader"] == 3
    assert kshell.open(DIRECTORY, as_of=160).run(path).to_dict()["leader"] == 3
    assert session.image.provenance.offset == 206


def test_secrets_only_on_demand() -> None:
    path = "cat /image/scram/SCRAM-SHA-256/alice"
    assert kshell.open(DIRECTORY).run(path).to_dict()["salt"] == "[redacted]"
    assert kshell.open(DIRECTORY, show_secrets=True).run(path).to_dict()["salt"] != "[redacted]"


def test_the_environment_names_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSHELL_DIRECTORY", DIRECTORY)
    assert kshell.open().run("pwd").to_dict() == "/"


@pytest.mark.parametrize(
    ("line", "error"), [("ls | wc", UsageError), ("ls > x", UsageError), ("", UsageError), ("cat /nope", KshellError)]
)
def test_wrong_lines(line: str, error: type[KshellError]) -> None:
    with pytest.raises(error):
        kshell.open(DIRECTORY).run(line)


def test_a_wrong_directory() -> None:
    with pytest.raises(SourceNotFoundError):
        kshell.open("/nowhere/at/all")


def test_every_public_name_is_there() -> None:
    assert all(hasattr(kshell, name) for name in kshell.__all__)
    with pytest.raises(AttributeError):
        kshell.nothing  # noqa: B018


def test_importing_the_package_imports_little() -> None:
    import subprocess

    code = "import sys, kshell; print(sorted(m for m in sys.modules if m.startswith('kshell')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['kshell', 'kshell.version']"


def test_the_remarks_of_a_command_are_not_those_of_the_next() -> None:
    """``pwd`` reads nothing, so it has nothing to remark on, whatever ran before it."""
    session = kshell.open(DIRECTORY)
    remarks = [note for note in session.run("configs --effective").notes if "needs -q or -b" in note]
    assert remarks
    assert remarks[0] not in session.run("pwd").notes
