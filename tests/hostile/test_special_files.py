"""Pipes, devices, sockets, directories and loops of links under the names of Kafka's files: none of them is opened."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kshell
from kshell.commands import strays
from kshell.errors import CommandError, SourceError
from kshell.sources.directory.files import METADATA_DIRECTORY, open_read, read_small
from tests.builders import FIXTURES, LOG, batch, uuid, value, write_log, write_snapshot
from tests.builders import snapshot as whole_snapshot
from tests.hostile.measured import ROOT, check, measured

NODE = FIXTURES / "4.3.1/controller-3001"
COMMANDS = ("info", "status", "health", "quorum", "controllers", "dump", "log", "ls /quorum", "mark")
DEADLINE = 30


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket has 107 bytes at the most
    try:
        made.bind(path.name)
    finally:
        os.chdir(here)
        made.close()


def link_to_pipe(path: Path) -> None:
    pipe(path.with_name("target"))
    path.symlink_to("target")


KINDS: dict[str, Callable[[Path], None]] = {
    "a named pipe": pipe,
    "a socket": listening,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a directory": lambda path: path.mkdir(),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a pipe": link_to_pipe,
}
SMALL = ("leader-epoch-checkpoint", "quorum-state", "../meta.properties", "partition.metadata")
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of a node's log directory; gives its metadata directory."""
    shutil.copytree(NODE, tmp_path / "node", copy_function=shutil.copyfile)
    return tmp_path / "node" / METADATA_DIRECTORY


@every_kind
@pytest.mark.parametrize("name", SMALL)
def test_a_small_file_that_is_none_is_a_note_and_the_answer_goes_on(directory: Path, kind: str, name: str) -> None:
    path = (directory / name).resolve()
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    commands = [word for command in COMMANDS for word in ("-c", command)]
    took = measured("-d", str(directory), "--keep-going", *commands)
    check(took, 0, 1)
    assert took.seconds < DEADLINE
    if name != "partition.metadata":
        assert f"{path}: " in took.text, took.text
        assert "it is not used; copy it from the node again" in took.text


@every_kind
@pytest.mark.parametrize("name", [f"{40:020d}.log", f"{40:020d}-{1:010d}.checkpoint"])
def test_a_segment_or_a_snapshot_that_is_none_is_left_out_with_a_note(tmp_path: Path, kind: str, name: str) -> None:
    write_log(tmp_path, batch([value("TOPIC", name="orders", topicId=uuid(1))]))
    KINDS[kind](tmp_path / name)
    took = measured("-d", str(tmp_path), "find", "/image/topics/byName")
    check(took, 0)
    assert "/image/topics/byName/orders" in took.text
    assert f"{tmp_path / name}: " in took.text
    assert "left out" in took.text


@every_kind
@pytest.mark.parametrize("name", [LOG, f"{0:020d}-{1:010d}.checkpoint", "anything", "x.log", "x.checkpoint"])
def test_given_as_the_source_it_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    KINDS[kind](tmp_path / name)
    took = measured("-d", str(tmp_path / name), "info")
    check(took, 3)
    assert took.seconds < DEADLINE
    assert name in took.text


def test_links_to_files_are_files(directory: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in directory.iterdir():
        (linked / file.name).symlink_to(file)
    assert open_read(str(linked / LOG)) >= 0
    assert measured("-d", str(linked), "info", "-o", "json").code == 0


@pytest.mark.parametrize("flag", ["--config", "-f"])
def test_what_the_user_gives_may_come_through_a_pipe(tmp_path: Path, flag: str) -> None:
    """A process substitution of the shell: ``-f <(…)``."""
    reading, writing = os.pipe()
    os.write(writing, b"pwd\n" if flag == "-f" else b"client.id=x\n")
    os.close(writing)
    answer = _with(reading, "--demo", flag, f"/dev/fd/{reading}", *([] if flag == "-f" else ["-c", "pwd"]))
    assert answer == "/\n"


def _with(descriptor: int, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kshell", *words],
        pass_fds=[descriptor],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=True,
        cwd=ROOT,
    )
    os.close(descriptor)
    return done.stdout


def test_a_file_that_becomes_a_pipe_while_it_is_opened_is_closed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "quorum-state"
    pipe(path)
    regular = os.stat(write_snapshot(tmp_path, whole_snapshot([]), 1))
    monkeypatch.setattr("kshell.sources.directory.files.os.stat", lambda _: regular)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SourceError, match="a named pipe, not a file"):
        open_read(str(path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_small_file_is_not_larger_than_small(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(11))
    assert read_small(str(path), 11) == bytes(11)
    with pytest.raises(SourceError, match="is larger than 10 bytes"):
        read_small(str(path), 10)
    assert stat.S_ISREG(path.stat().st_mode)


def test_the_owner_of_a_log_directory_is_asked_of_a_file(directory: Path) -> None:
    root = directory.parent
    (root / "meta.properties").unlink()
    pipe(root / "meta.properties")
    (root / "orders-0").mkdir()
    pipe(root / "orders-0/partition.metadata")
    (found,) = strays.read(str(root), 1).replicas
    assert (found.topic, found.topic_id) == ("orders", None)
    with pytest.raises(CommandError, match=r"has no meta\.properties that names its broker"):
        strays.read(str(root), None)


# --- nothing else opens files of a source ----------------------------------------------------------------------------

OWN = {
    "lossy_stream": "the null device",
    "cli": "a file of commands, which may be a pipe",
    "commands/source": "a file of commands",
    "tables/export": "writes",
    "sources/directory/writer": "writes a new directory",
    "commands/strays": "a listing that the user names, which may be a pipe",
    "client/properties": "the user's",
    "client/sasl/oauth": "the user's",
    "client/key_stores": "the user's",
    "own_files": "kshell's own",
    "unpacking": "kshell's own, out of kshell.pyz",
    "render/output": "writes",
    "repl/history": "kshell's own",
    "spark/java": "kshell's own",
    "spark/report/write": "writes",
    "spark/session": "the kernel's, Spark's, and kshell's own code",
    "spark/tables/steps": "the warehouse's lock",
    "sources/directory/files": "here all files of a source are opened",
}
"""The modules that open files by themselves, and why they are not files of a source."""
_MODULES = {"os", "io", "gzip", "np", "numpy"}
_METHODS = {"read_text", "read_bytes"}
"""Of a path, whatever it is called."""
_FUNCTIONS = {"open", "fromfile", "memmap", "FileIO"}


def _opens(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _FUNCTIONS
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    return function.attr in _METHODS or (owner in _MODULES and function.attr in _FUNCTIONS)


def openers() -> Iterator[str]:
    root = Path(kshell.__file__).parent
    for path in root.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if any(isinstance(node, ast.Call) and _opens(node.func) for node in nodes):
            yield path.relative_to(root).with_suffix("").as_posix()


def test_files_of_a_source_are_opened_in_one_place() -> None:
    found = set(openers())
    assert found - OWN.keys() == set(), "open files of a source with kshell.sources.directory.files.open_read"
    assert OWN.keys() - found == set(), "these open no file any more"
