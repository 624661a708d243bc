"""``log`` finds the paths and changes of some records without replaying all that lies between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import node_name, recorded, write_log
from tests.commands.shell import lines, opened
from tests.metadata.test_every_offset import nonsense

LOGS = 8


@pytest.fixture(params=[0, 5, 64], ids=["nothing is replayed", "a little is", "as it is"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.history.few_paths._FEW", request.param)


def check(directory: Path) -> None:
    every = lines(opened(directory), "log --noop")
    by_type: dict[str, list[str]] = {}
    for line in every:
        by_type.setdefault(line.split()[2], []).append(line)
    for name, shown in by_type.items():
        assert lines(opened(directory), f"log --type {name}") == shown
    for step in (2, 29):
        some = every[::step][-100:]
        where = " or ".join(f"offset == {line.split()[0]}" for line in some)
        assert lines(opened(directory), f"log --noop --where '{where}'") == some
    assert lines(opened(directory), "log --noop --newest-first --count 7") == every[:-8:-1]


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_recorded_logs(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.history.few_paths._FEW", 0)
    check(node / METADATA_DIRECTORY)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(LOGS))
def test_nonsensical_logs(tmp_path: Path, seed: int) -> None:
    write_log(tmp_path, nonsense(seed))
    check(tmp_path)
