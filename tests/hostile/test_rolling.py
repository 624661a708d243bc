"""A server rolls its log, writes a snapshot and removes old files at any moment of any command: that is no damage.

Kafka renames what it removes to ``….deleted``, and unlinks it a minute later. Here either happens at once, at one
moment of a command: when it is about to look at the directory for the first time, the second time, and so on.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kshell.cli import main
from kshell.sources.directory.files import DELETED, METADATA_DIRECTORY, named
from tests.builders import FIXTURES

RECORDED = FIXTURES / "4.2.1-rolled/controller-3002" / METADATA_DIRECTORY
NEWEST = ("00000000000000000687-0000000004.checkpoint", "00000000000000000699.log")
"""What the server writes meanwhile."""
ACTIVE = "00000000000000000539.log"
"""The segment before: its end comes meanwhile."""


class Retained(NamedTuple):
    """From where on a server retains log and snapshots."""

    log_start: int
    oldest_snapshot: int


ALL, SOME, LESS = Retained(0, 0), Retained(171, 240), Retained(305, 450)
"""LESS: also the snapshot is gone that SOME would begin with."""
OUT = "OUT"
MOMENTS = 3
"""So many of each command, of about thirty to a hundred; a soak takes all of them."""

COMMANDS = (
    "verify -o json", "verify --deep -o json", "info -o json", "health -o json", "status -o json", "hash",
    "find /image --values -o jsonl", "log -o jsonl", "log --stat -o json", "log --since end-20s -o jsonl",
    "log /image/topics -r --count 3", "dump -o jsonl", "topics -o json", "why broker-1 -o json", "timeline -o json",
    "blame /image/topics -o json", "diff 500 now -o json", "diff end-20s now -o json", "cat /log -o json",
    "hash --as-of 600", "hash --as-of 450", "when topics --where 'partitions > 0' -o json", "explain 550 -o json",
    "sql 'SELECT count(*) FROM history_topics'", "save OUT/saved", "recover DIR -o json",
    "compare-logs DIR DIR -o json", "drain-check 1 -o json", "quorum -o json",
)  # fmt: skip
OF_MANY = ("support-bundle OUT/b.zip", "report --to OUT/r.html")
"""These run many of the others."""
ALARM = re.compile(
    r'damage(?!": (?:null|\[\]))|corrupt|vanish|incomplete|disagree|no(?:t a)? whole|was expected|Traceback'
    r"|fault of kshell"
)


# --- the server -------------------------------------------------------------------------------------------------------


def as_before(folder: Path) -> Path:
    """Make a log directory as it is before the server goes on; return its metadata directory."""
    metadata = folder / METADATA_DIRECTORY
    shutil.copytree(RECORDED.parent, folder, ignore=shutil.ignore_patterns(*NEWEST))
    active = metadata / ACTIVE
    raw = active.read_bytes()
    active.chmod(0o600)
    active.write_bytes(raw[: len(raw) * 2 // 3])
    return metadata


def go_on(metadata: Path, remove: Callable[[Path], object], retained: Retained) -> None:
    """Append, roll, write a snapshot, and remove what is old."""
    (metadata / ACTIVE).write_bytes((RECORDED / ACTIVE).read_bytes())
    for name in NEWEST:
        shutil.copyfile(RECORDED / name, metadata / f"{name}.part")
        (metadata / f"{name}.part").rename(metadata / name)
    clean(metadata, remove, retained)


def clean(metadata: Path, remove: Callable[[Path], object], retained: Retained) -> None:
    """Remove what is old: first segments, then snapshots."""
    files = [(parsed, file) for file in sorted(metadata.iterdir()) if (parsed := named(file.name))]
    for parsed, file in files:
        if parsed.epoch is None and parsed.offset < retained.log_start:
            remove(file)
    for parsed, file in files:
        if parsed.epoch is not None and parsed.offset < retained.oldest_snapshot:
            remove(file)


def rename(file: Path) -> None:
    file.rename(f"{file}{DELETED}")


class Moment:
    """Does something when a directory is looked at for the so-manieth time."""

    def __init__(self, folder: Path, number: int, act: Callable[[], object]) -> None:
        self.looks = 0
        self._prefix = str(folder)
        self._number = number
        self._act = act
        self._is_acting = False

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(path: Any, *args: Any, **more: Any) -> Any:
            if not self._is_acting and isinstance(path, str) and path.startswith(self._prefix):
                self.looks += 1
                if self.looks == self._number:
                    self._is_acting = True
                    self._act()
                    self._is_acting = False
            return call(path, *args, **more)

        return watching


class Ended(NamedTuple):
    code: int
    said: str
    looks: int


def run(
    line: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    remove: Callable[[Path], object],
    retained: tuple[Retained, Retained] = (ALL, SOME),
) -> Ended:
    """Run a command on a directory that changes at a moment; 0: before the command, -1: never."""
    data = folder / "data"
    metadata = as_before(data)
    clean(metadata, Path.unlink, retained[0])
    if not number:
        go_on(metadata, remove, retained[1])
    moment = Moment(data, number, lambda: go_on(metadata, remove, retained[1]))
    out, errors = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    words = [word.replace("OUT", str(folder)).replace("DIR", str(data)) for word in shlex.split(line)]
    with monkeypatch.context() as patch:
        for name in ("open", "scandir", "stat"):
            patch.setattr(os, name, moment.watched(getattr(os, name)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", errors)
        code = main(["-d", str(data), *words])
    said = out.buffer.getvalue().decode() + errors.getvalue()
    shutil.rmtree(folder)
    return Ended(code, said, moment.looks)


# --- any command ------------------------------------------------------------------------------------------------------


def check(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, remove: Callable[[Path], object], most: int
) -> None:
    quiet = [run(line, folder / "quiet", monkeypatch, number, remove) for number in (-1, 0)]
    assert not any(ALARM.search(ended.said) for ended in quiet), quiet
    assert {ended.code for ended in quiet} <= {0, 1}, quiet  # an answer, and no refusal that would look alike each time
    step = max(1, quiet[0].looks // most)
    for number in range(1 + len(line) % step, quiet[0].looks + 1, step):
        ended = run(line, folder / "busy", monkeypatch, number, remove)
        assert ended.code in {each.code for each in quiet}, (number, ended)
        assert not ALARM.search(ended.said), (number, ended.said)


REMOVALS = pytest.mark.parametrize("remove", [rename, Path.unlink], ids=["renamed", "unlinked"])


@REMOVALS
@pytest.mark.parametrize("line", COMMANDS)
def test_what_a_server_removes_is_no_damage(
    line: str, remove: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(line, tmp_path, monkeypatch, remove, MOMENTS)


@REMOVALS
@pytest.mark.parametrize("line", ["log --stat -o json", "log -o jsonl", "log /image/topics -r --count 3"])
def test_the_snapshot_that_an_answer_would_begin_with_is_removed(
    line: str, remove: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names before the log's start are looked up in the first snapshot after it, which may just be going."""
    at_every_moment(line, tmp_path, monkeypatch, remove, code=0)


@pytest.mark.parametrize(
    ("line", "code"), [("diff end-20s now --stat", 1), ("diff end-2m now --stat", 1), ("topics --as-of end-20s", 0)]
)
def test_the_state_that_a_point_meant_is_removed(
    line: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the records that came meanwhile, the point means another state, which can be shown."""
    at_every_moment(line, tmp_path, monkeypatch, Path.unlink, code)


def at_every_moment(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, remove: Callable[[Path], object], code: int
) -> None:
    """A command that begins with a snapshot which is removed at one moment of it, at every moment in turn."""
    looks = run(line, folder / "quiet", monkeypatch, -1, remove, (SOME, LESS)).looks
    for number in range(1, looks + 1):
        ended = run(line, folder / "busy", monkeypatch, number, remove, (SOME, LESS))
        assert (ended.code, ALARM.search(ended.said)) == (code, None), (number, ended)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
@REMOVALS
@pytest.mark.parametrize("line", COMMANDS + OF_MANY)
def test_what_a_server_removes_at_any_moment_is_no_damage(
    line: str, remove: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(line, tmp_path, monkeypatch, remove, 1 << 20)
