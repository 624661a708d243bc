"""The system calls of a program, and which of them could change a directory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.needed import is_required

_READING = frozenset(
    """
    access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs readlink readlinkat getcwd chdir
    getdents getdents64 lseek read readv pread64 preadv mmap madvise fadvise64 close execve inotify_add_watch
    getxattr lgetxattr fgetxattr
    """.split()
)
"""Calls that leave a file and its locks alone, whatever their arguments (``open`` and others are looked at closely)."""

_CALL = re.compile(r"^(?:\[?\w* ?\d*\]? *)?(\w+)\((.*)$")
_OPEN_TO_CHANGE = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
_LOCK = re.compile(r"F_(OFD_)?SETLK|F_SETLEASE|F_SETSIG")


def missing() -> str | None:
    """Return why no program can be traced here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return f"strace does not work here: {done.stderr.strip()}" if done.returncode else None


NEEDED = pytest.mark.skipif(missing() is not None and not is_required(), reason=str(missing()))
"""For tests that trace a program."""


def run(command: Sequence[str], log: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program under strace, its threads and children too; file descriptors are logged with their paths."""
    traced = ["strace", "-f", "-y", "-s", "4096", "-o", str(log), *command]
    return subprocess.run(traced, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=cwd, check=False)


def changes(log: str, directory: Path) -> list[str]:
    """Return the logged calls that name something in a directory and could write, lock, create or remove it."""
    inside = re.compile(re.escape(str(directory)) + r'(?=[/"<>])')
    return [line for line in log.splitlines() if inside.search(line) and not _harmless(line, directory)]


def touches(log: str, directory: Path) -> int:
    """Return how many logged calls name something in a directory: a trace without any proves nothing."""
    return log.count(str(directory))


def _harmless(line: str, directory: Path) -> bool:
    match = _CALL.match(line)
    if match is None:  # an unfinished call's end, a signal, an exit
        return "<... " in line or line.rstrip().endswith("+++") or "--- SIG" in line
    name, arguments = match.groups()
    if name in ("open", "openat", "openat2"):
        return not _OPEN_TO_CHANGE.search(arguments)
    if name == "mmap":
        return not ("PROT_WRITE" in arguments and "MAP_SHARED" in arguments)
    if name == "fcntl":
        return not _LOCK.search(arguments)
    if name == "ioctl":
        return "TCGETS" in arguments or "FIOCLEX" in arguments
    if name in ("write", "pwrite64", "writev", "sendto", "sendmsg"):  # the data may name the directory
        return not arguments.partition(">")[0].partition("<")[2].startswith(str(directory))
    return name in _READING
