"""What small files say is checked before it is used: no answer depends on nonsense, and none is a traceback."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kshell.errors import KshellError
from kshell.render import render
from kshell.sources.directory.files import METADATA_DIRECTORY, scan
from kshell.sources.directory.sidecar_files import leader_epochs, meta_properties, node_id, quorum_state
from kshell.sources.directory.source import DirectorySource
from kshell.spark.reconcile.copy_report import newest_quorum_state
from tests.builders import FIXTURES, batch, control_batch, leader_change, value, write_log
from tests.commands.shell import opened, run, sections
from tests.hostile.measured import check, measured

NODE = FIXTURES / "4.3.1/controller-3001"
COMMANDS = (
    "info",
    "status",
    "health",
    "quorum",
    "controllers",
    "ls /quorum",
    "find /quorum",
    "cat /quorum/leaderId",
    "dump",
)
EPOCHS, STATE, META = "leader-epoch-checkpoint", "quorum-state", "../meta.properties"
ADVICE = "copy it from the node again"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of a node's log directory; gives its metadata directory."""
    shutil.copytree(NODE, tmp_path / "node", copy_function=shutil.copyfile)
    return tmp_path / "node" / METADATA_DIRECTORY


def answers(directory: Path) -> list[str]:
    """Run every command, as JSON and as text; the notes of all."""
    notes: list[str] = []
    for command in COMMANDS:
        session = opened(directory)
        for output in ("json", "text"):
            try:
                shown = "".join(render(run(session, command), output))
            except KshellError as error:
                shown = error.message
            shown.encode()
        notes += session.notes()
    return list(dict.fromkeys(notes))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["voterId", "endpoints", "x"]), inner),
    max_leaves=6,
)
KEYS = ("leaderId", "leaderEpoch", "clusterId", "votedId", "appliedOffset", "currentVoters", "data_version")
STATES = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, VALUES)).map(lambda state: json.dumps(state).encode())
NUMBERS = st.integers(-(10**20), 10**20).map(str) | st.sampled_from(["", "x", "²", "1e3", "0x1", "9" * 5000, "-0"])
TABLES = st.lists(st.lists(NUMBERS, max_size=3).map(" ".join), max_size=5).map(lambda lines: "\n".join(lines).encode())
PROPERTIES = st.lists(
    st.tuples(st.sampled_from(["node.id", "broker.id", "cluster.id", "directory.id", "version"]), NUMBERS), max_size=4
).map(lambda pairs: "".join(f"{key}={word}\n" for key, word in pairs).encode())
FILES = st.fixed_dictionaries({}, optional={
    STATE: STATES | st.binary(max_size=40),
    EPOCHS: TABLES | st.binary(max_size=40),
    META: PROPERTIES | st.binary(max_size=40),
})  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(files=FILES)
@example(files={STATE: b'{"currentVoters": 5}'})
@example(files={STATE: b'{"currentVoters": [{"voterId": "x"}], "leaderId": true}'})
@example(files={STATE: b'{"currentVoters": [{"voterId": 1, "endpoints": 5}], "leaderEpoch": NaN}'})
@example(files={STATE: b'{"clusterId": "\\ud800"}'})
@example(files={STATE: b"[" * 200_000})
@example(files={STATE: b'{"leaderId": ' + b"9" * 10_000 + b"}"})
@example(files={EPOCHS: b"0\n1000000000\n1 0\n"})
@example(files={META: "node.id=²\ncluster.id=\x1b[31m\n".encode()})
@example(files={META: b"node.id=" + b"9" * 5000})
def test_whatever_the_small_files_say_every_command_answers(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "node" / METADATA_DIRECTORY
        directory.mkdir(parents=True)
        write_log(directory, control_batch([leader_change()]), batch([value("NO_OP")], 1))
        for name, raw in files.items():
            (directory / name).write_bytes(raw)
        answers(directory)
        newest_quorum_state([scan(str(directory))])


WRONG: list[tuple[str, bytes, str]] = [
    (STATE, b'{"currentVoters": 5}', "currentVoters is not a list of voters with their ids: it is not used"),
    (STATE, b'{"currentVoters": [{"voterId": -2}]}', "currentVoters is not a list of voters"),
    (STATE, b'{"leaderId": "3"}', "leaderId is not the id of a node"),
    (STATE, b'{"leaderEpoch": 2147483648}', "leaderEpoch is not an epoch"),
    (STATE, b'{"clusterId": ["x"]}', "clusterId is not a name"),
    (STATE, b'{\n"leaderId": 1,\n', "line 3: not JSON: the file is not used"),
    (STATE, b"[" * 100_000, "not the JSON object that Kafka writes"),
    (STATE, b"[1]", "not the JSON object that Kafka writes"),
    (STATE, b'{"a": "\xff"}', "byte 7: not text in UTF-8"),
    (STATE, b" " * (2 << 20), "is larger than 1048576 bytes"),
    (EPOCHS, b"1\n0\n", "line 1: not the version 0"),
    (EPOCHS, b"0\n", "line 2: not the number of lines that follow (0)"),
    (EPOCHS, b"0\n1000000000\n1 0\n", "line 2: not the number of lines that follow (1)"),
    (EPOCHS, b"0\n1\n1 x\n", "line 3: not an epoch and an offset"),
    (EPOCHS, b"0\n1\n2147483648 0\n", "line 3: not an epoch and an offset"),
    (EPOCHS, b"0\n2\n1 0\n1 5\n", "line 4: epochs and offsets must rise"),
    (EPOCHS, b"0\n2\n1 7\n2 5\n", "line 4: epochs and offsets must rise"),
    (META, b"node.id=x\n", "node.id is not the id of a node"),
    (META, b"node.id=99999999999\n", "node.id is not the id of a node"),
]


@pytest.mark.parametrize(("name", "raw", "reason"), WRONG)
def test_what_is_wrong_is_named_with_its_place_and_what_to_do(
    directory: Path, name: str, raw: bytes, reason: str
) -> None:
    path = (directory / name).resolve()
    path.unlink()
    path.write_bytes(raw)
    notes = [note for note in answers(directory) if note.startswith(f"{path}: ")]
    assert len(notes) == 1
    assert reason in notes[0]
    assert notes[0].endswith(ADVICE)


def test_what_is_right_stays(directory: Path) -> None:
    listing, notes = scan(str(directory)), list[str]()
    state = json.loads((directory / STATE).read_text())
    read = quorum_state(listing, notes)
    assert read["leaderId"] == state["leaderId"]
    assert read["leaderEpoch"] == state["leaderEpoch"]
    assert leader_epochs(listing, notes)
    assert node_id(meta_properties(listing, notes)) == 3001
    assert notes == []


@pytest.mark.parametrize("key", ["leaderId", "currentVoters"])
def test_the_keys_beside_a_wrong_one_are_used(tmp_path: Path, key: str) -> None:
    write_log(tmp_path, batch([value("NO_OP")]))
    right: dict[str, Any] = {"leaderId": 4, "leaderEpoch": -1, "clusterId": "", "currentVoters": [{"voterId": 4}]}
    (tmp_path / STATE).write_text(json.dumps(right | {key: {}}))
    listing = scan(str(tmp_path))
    assert quorum_state(listing) == {name: right[name] for name in right if name != key}
    assert newest_quorum_state([listing]) == ((None, None, ()) if key == "leaderId" else (4, -1, ()))


def test_a_gigabyte_of_a_small_file_is_not_read(directory: Path) -> None:
    for name in (STATE, EPOCHS, META):
        path = (directory / name).resolve()
        path.unlink()
        with path.open("wb") as file:
            file.truncate(1 << 30)
    took = measured("-d", str(directory), "status")
    check(took, 0)
    assert took.text.count("is larger than 1048576 bytes: it is not used") == 3
    assert took.memory < 100


def test_behind_a_first_segment_that_is_empty_offsets_are_missing(tmp_path: Path) -> None:
    write_log(tmp_path)
    write_log(tmp_path, batch([value("NO_OP")], 7), base_offset=7)
    for command in ("health", "status", "info"):
        took = measured("-d", str(tmp_path), command)
        check(took, 4)
        assert "the segment starts at offset 7, 0 was expected" in took.text


def test_empty_files_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / f"{5:020d}-{1:010d}.checkpoint").touch()
    for number in range(20):
        write_log(tmp_path, base_offset=number)
    for command in ("health", "status", "info", "dump", "find /"):
        took = measured("-d", str(tmp_path), *command.split())
        check(took, 4)


def test_a_directory_of_many_files_is_listed_in_time(tmp_path: Path) -> None:
    for number in range(20_000):
        (tmp_path / f"{number:020d}.snapshot").touch()
        (tmp_path / f"{10**15 + number}{'9' * 5}.log").touch()
    write_log(tmp_path, batch([value("NO_OP")]))
    took = measured("-d", str(tmp_path), "--timeout", "60", "info")
    check(took, 0, 4)
    assert took.seconds < 60


def test_names_that_are_no_offsets_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"{'9' * 20}.log").write_bytes(b"x")
    (tmp_path / f"{'9' * 20}-{'9' * 10}.checkpoint").write_bytes(b"x")
    write_log(tmp_path, batch([value("NO_OP")]))
    assert sections(opened(tmp_path), "info")["log"]["endOffset"] == 1
    assert DirectorySource(str(tmp_path)).load().damage == []
