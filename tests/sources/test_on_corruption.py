"""--on-corruption: what stop, tail and skip make of the same damage; none of them is silent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kshell
from kshell.engine.session import Session
from kshell.errors import UsageError
from kshell.metadata.families.topics import NAMES
from kshell.sources.choose import Choice, open_source
from kshell.sources.directory.files import ON_CORRUPTION, SKIP, STOP, TAIL
from kshell.sources.directory.source import DirectorySource
from tests import builders
from tests.commands.shell import run, sections

TOPICS = "/image/topics/byName"


def topic(number: int) -> bytes:
    return builders.value("TOPIC", name=f"t{number}", topicId=builders.uuid(number))


def written(folder: Path, *damaged: int) -> Path:
    """A log with a LeaderChange and topics t1 to t4, one a batch; of these batches, a byte is changed."""
    parts = [builders.control_batch([builders.leader_change()])]
    parts += [builders.batch([topic(number)], number) for number in range(1, 5)]
    for number in damaged:
        raw = bytearray(parts[number])
        raw[-3] ^= 1
        parts[number] = bytes(raw)
    builders.write_log(folder, *parts)
    return folder


def opened(folder: Path, how: str) -> Session:
    return Session(DirectorySource(str(folder), on_corruption=how))


def names(session: Session) -> list[str]:
    return sorted(session.image[NAMES])


@pytest.mark.parametrize("how", ON_CORRUPTION)
def test_what_is_whole_is_the_same(tmp_path: Path, how: str) -> None:
    session = opened(written(tmp_path), how)
    assert names(session) == ["t1", "t2", "t3", "t4"]
    assert session.exit_code() == 0 and session.problems() == []


@pytest.mark.parametrize(("how", "expected"), [(STOP, ["t1"]), (TAIL, ["t1"]), (SKIP, ["t1", "t3", "t4"])])
def test_damage_in_the_middle(tmp_path: Path, how: str, expected: list[str]) -> None:
    session = opened(written(tmp_path, 2), how)
    assert names(session) == expected
    assert session.exit_code() == 4
    assert "CRC" in session.problems()[0]


@pytest.mark.parametrize(("how", "code"), [(STOP, 4), (TAIL, 0), (SKIP, 4)])
def test_damage_at_the_end(tmp_path: Path, how: str, code: int) -> None:
    session = opened(written(tmp_path, 4), how)
    assert names(session) == ["t1", "t2", "t3"]
    assert session.exit_code() == code
    said = " ".join([*session.problems(), *session.notes()])
    assert "CRC" in said
    assert ("torn tail" in said) == (how == TAIL)
    assert ("are skipped" in said) == (how == SKIP)


def test_every_range_that_is_skipped_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path, 1, 3)
    session = opened(folder, SKIP)
    assert names(session) == ["t2", "t4"]
    batches = builders.batches((folder / builders.LOG).read_bytes())
    expected = [
        f"bytes {batches[number].position} to {batches[number].end - 1} are skipped: offsets {number} to {number}"
        for number in (1, 3)
    ]
    notes = [note for note in session.notes() if "are skipped" in note]
    assert len(notes) == 2 and all(text in note for text, note in zip(expected, notes, strict=True))
    problems = [row["reason"] for row in sections(session, "info")["problems"]]
    assert set(notes) <= set(problems)
    assert run(session, "info").exit_code == 4


def test_a_moment_behind_the_damage_is_shown_with_it(tmp_path: Path) -> None:
    session = opened(written(tmp_path, 2), SKIP)
    session.travels()
    then = session.reshape(point="3")
    assert names(then) == ["t1", "t3"]
    assert then.exit_code() == 4
    before = session.reshape(point="1")
    assert names(before) == ["t1"] and before.exit_code() == 0


def test_a_gap_between_segments_is_stepped_over_and_named(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch([topic(1)], 1))
    builders.write_log(tmp_path, builders.batch([topic(7)], 7), base_offset=7)
    assert names(opened(tmp_path, STOP)) == ["t1"]
    session = opened(tmp_path, SKIP)
    assert names(session) == ["t1", "t7"]
    assert session.exit_code() == 4 and "2 was expected" in session.problems()[0]


def test_python_and_the_command_line_have_the_option(tmp_path: Path) -> None:
    folder = written(tmp_path, 2)
    with kshell.open(directory=str(folder), on_corruption="skip") as session:
        assert session.run(f"ls {TOPICS}").to_dict()
        assert any("are skipped" in note for note in session._shell.notes())
    line = [sys.executable, "-m", "kshell", "-d", str(folder), "--on-corruption", "skip", "-o", "json", "ls", TOPICS]
    done = subprocess.run(line, check=False, capture_output=True, text=True, env=os.environ, timeout=60)
    assert done.returncode == 4
    assert json.loads(done.stdout) == ["t1", "t3", "t4"]
    assert "are skipped: offsets 2 to 2" in done.stderr


def test_any_other_word_and_any_other_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not one of stop, tail, skip"):
        open_source(Choice("directory", str(written(tmp_path))), "ignore")
    with pytest.raises(UsageError, match="for directories"):
        open_source(Choice("bootstrap_controllers", "localhost:1"), "skip")
