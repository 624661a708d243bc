"""Completion at positions inside cells, as IPython's completer (and so JupyterLab, VS Code, a terminal) is told it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders
from tests.magic.shell import Cells

SOME = "…"
"""In an expectation: more candidates may follow."""


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        # commands
        ("%kafka timel|", ["%kafka timeline"]),
        ("%kafka topi|", ["%kafka topics"]),
        ("%kafka con|", ["%kafka configs", "%kafka connect", "%kafka context", "%kafka controllers"]),
        ("x = %kafka timel|", ["x = %kafka timeline"]),
        ("    %kafka timel|", ["    %kafka timeline"]),
        ("a = 1\n%kafka timel|\nb = 2", ["%kafka timeline"]),
        ("%kafka timel| --all", ["%kafka timeline"]),
        ("%%kafka\ntimel|", ["timeline"]),
        ("%%kafka\npwd\n# word\ntimel|\nls", ["timeline"]),
        ("%%kafka --keep-going\ntimel|", ["timeline"]),
        ("%kafka help timel|", ["%kafka help timeline"]),
        ("%kafka watch timel|", ["%kafka watch timeline"]),
        # paths
        ("%kafka ls /ima|", ["%kafka ls /image/"]),
        ("%kafka ls /image/to|", ["%kafka ls /image/topics/"]),
        ("%kafka cat /image/topics/byName/ord|", ["%kafka cat /image/topics/byName/orders/"]),
        ("%kafka cat /image/topics/byName/legacy-import/|", ["%kafka cat /image/topics/byName/legacy-import/0", SOME]),
        ("%%kafka\nls /image/to|", ["ls /image/topics/"]),
        ("x = %kafka ls /image/to|", ["x = %kafka ls /image/topics/"]),
        ("%kafka ls '/image/to|", ["%kafka ls '/image/topics/"]),
        ("%kafka ls /image/nope|", []),
        ("%kafka log /image/cluster/bro|", ["%kafka log /image/cluster/brokers/"]),
        # flags
        ("%kafka topics --wh|", ["%kafka topics --where"]),
        ("%kafka topics --where 'offline > 0' --so|", ["%kafka topics --where 'offline > 0' --sort"]),
        ("%kafka ls --no-h|", ["%kafka ls --no-header"]),
        ("%kafka ls --in|", ["%kafka ls --into"]),
        ("%kafka --keep|", ["%kafka --keep-going"]),
        ("%%kafka --as|", ["%%kafka --as-of"]),
        ("%kafka --no-i|", ["%kafka --no-interp"]),
        ("%kafka connect --de|", ["%kafka connect --demo"]),
        ("%kafka connect --bootstrap-c|", ["%kafka connect --bootstrap-controllers"]),
        # values
        ("%kafka ls -o js|", ["%kafka ls -o json", "%kafka ls -o jsonl"]),
        ("%kafka -o mark|", ["%kafka -o markdown"]),
        ("%kafka health --fail-on cr|", ["%kafka health --fail-on critical"]),
        ("%kafka topics --columns nam|", ["%kafka topics --columns name"]),
        ("%kafka topics --sort -off|", ["%kafka topics --sort -offline"]),
        ("%kafka topics --where offl|", ["%kafka topics --where offline"]),
        ("%kafka can User:alice REA|", ["%kafka can User:alice READ"]),
        ("%kafka why orders-|", ["%kafka why orders-0", SOME]),
        # sessions
        ("%kafka --context de|", ["%kafka --context demo"]),
        ("%kafka --context demo ls /image/to|", ["%kafka --context demo ls /image/topics/"]),
        ("%kafka ls --context de|", ["%kafka ls --context demo"]),
        ("%%kafka --context de|\nls", ["%%kafka --context demo"]),
        ("%kafka --close de|", ["%kafka --close demo"]),
        # what is not ours
        ("%%kafka |\nls", ["%%kafka --context", SOME]),
        ("%kafka ls # /ima|", []),
    ],
)
def test_positions(cells: Cells, cell: str, lines: list[str]) -> None:
    found = cells.complete(cell)
    if SOME in lines:
        lines = lines[: lines.index(SOME)]
        assert len(found) > len(lines)
        found = found[: len(lines)]
    assert found == lines


def test_python_completes_its_own(cells: Cells) -> None:
    cells.run("topic_name = 'orders'")
    assert "topic_name" in cells.complete("topic_na|")
    assert any("topic_name" in line for line in cells.complete("%kafka ls /image/topics/byName/{{topic_na|"))
    assert cells.complete("print('%kafka timel|")[:1] != ["print('%kafka timeline"]


def test_a_session_that_is_not_open_completes_commands_only(bare: Cells) -> None:
    assert bare.complete("%kafka timel|") == ["%kafka timeline"]
    assert bare.complete("%kafka ls /image/|") == []


def test_completion_survives_a_source_that_is_gone(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("gone")

    monkeypatch.setattr("kshell.magic.matcher.complete", broken)
    assert cells.complete("%kafka ls /image/nothing-like-that|") == []


def test_a_name_is_never_completed_to_python(bare: Cells, tmp_path: Path) -> None:
    name = "{{print(1)}}"
    values = [
        builders.value("TOPIC", name=name, topicId=builders.uuid(1)),
        builders.value(
            "ACCESS_CONTROL_ENTRY",
            id=builders.uuid(2),
            resourceType=2,
            resourceName=name,
            patternType=3,
            principal=f"User:{name}",
            host="*",
            operation=3,
            permissionType=3,
        ),
    ]
    builders.write_log(tmp_path / "data", builders.control_batch([builders.leader_change()]), builders.batch(values, 1))
    bare.run(f"%kafka connect -d {tmp_path / 'data'};")
    assert bare.complete("%kafka ls /image/topics/byName/|") == [r"%kafka ls /image/topics/byName/\{\{print(1)\}\}/"]
    for line in ('%kafka ls "/image/topics/byName/|', '%kafka can "User:|', '%kafka acls --principal "User:|'):
        assert not any("print(1)" in one for one in bare.complete(line))
