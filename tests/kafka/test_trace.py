"""The judge of system call traces lets reads pass and sees every kind of change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kafka import trace

DIRECTORY = Path("/data/kraft")


@pytest.mark.parametrize(
    "line",
    [
        '12 openat(AT_FDCWD</w>, "/data/kraft/0.log", O_RDONLY|O_CLOEXEC) = 3</data/kraft/0.log>',
        '12 newfstatat(3</data/kraft/0.log>, "", {st_mode=S_IFREG|0644}, AT_EMPTY_PATH) = 0',
        "12 mmap(NULL, 42, PROT_READ, MAP_SHARED, 3</data/kraft/0.log>, 0) = 0x7f",
        "12 fcntl(3</data/kraft/0.log>, F_DUPFD_CLOEXEC, 0) = 4</data/kraft/0.log>",
        "12 getdents64(3</data/kraft>, 0x1 /* 9 entries */, 32768) = 300",
        '12 <... read resumed>"/data/kraft/x", 8) = 8',
        '12 openat(AT_FDCWD</w>, "/data/kraft-copy/x", O_WRONLY|O_CREAT, 0666) = 3</data/kraft-copy/x>',
        '12 write(1</dev/null>, "x", 1) = 1',
        '12 write(1<pipe:[7]>, "</data/kraft/0.log>", 20) = 20',
    ],
)
def test_reading_passes(line: str) -> None:
    assert trace.changes(line, DIRECTORY) == []


@pytest.mark.parametrize(
    "line",
    [
        '12 openat(AT_FDCWD</w>, "/data/kraft/.lock", O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 3</data/kraft/.lock>',
        '12 openat(AT_FDCWD</w>, "/data/kraft/0.log", O_RDONLY|O_CREAT, 0666) = 3</data/kraft/0.log>',
        '12 openat(3</data/kraft>, "0.log", O_WRONLY) = 4</data/kraft/0.log>',
        "12 flock(3</data/kraft/0.log>, LOCK_SH) = 0",
        "12 fcntl(3</data/kraft/0.log>, F_SETLK, {l_type=F_RDLCK}) = 0",
        '12 write(3</data/kraft/0.log>, "x", 1) = 1',
        "12 mmap(NULL, 42, PROT_READ|PROT_WRITE, MAP_SHARED, 3</data/kraft/0.log>, 0) = 0x7f",
        '12 unlink("/data/kraft/0.log") = -1 ENOENT',
        '12 rename("/data/kraft/a", "/data/kraft/b") = 0',
        '12 mkdir("/data/kraft/__pycache__", 0777) = 0',
        '12 utimensat(AT_FDCWD</w>, "/data/kraft/0.log", NULL, 0) = 0',
        "12 ftruncate(3</data/kraft/0.log>, 0) = 0",
        "12 fchmod(3</data/kraft/0.log>, 0600) = 0",
    ],
)
def test_a_change_is_seen(line: str) -> None:
    assert trace.changes(line, DIRECTORY) == [line]


@trace.NEEDED
def test_a_real_trace(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "trace"
    data.mkdir()
    (data / "x").write_text("x")
    program = "import os; os.listdir({0!r}); open(os.path.join({0!r}, 'x')).read()".format(str(data))
    assert trace.run([sys.executable, "-c", program], log).returncode == 0
    assert trace.touches(log.read_text(), data) >= 2
    assert trace.changes(log.read_text(), data) == []
    program = f"import os; os.chdir({str(data)!r}); open('y', 'w').close(); os.remove('y')"
    assert trace.run([sys.executable, "-c", program], log).returncode == 0
    assert any("openat" in line for line in trace.changes(log.read_text(), data)), log.read_text()
