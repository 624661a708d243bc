"""Tests of what may not be read, where they run as root, who may read everything."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_VERSION = 0x20080522
_OVERRIDE = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of capabilities(7): modes of files do not count."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody may do anything with a file or directory meanwhile, this thread as root on Linux included."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with _heeding_modes():
            assert not os.access(path, os.R_OK, effective_ids=True), "modes do not count here"
            yield
    finally:
        path.chmod(mode)


@contextlib.contextmanager
def _heeding_modes() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()  # twice: effective, permitted, inheritable
    assert libc.capget(header, held) == 0, os.strerror(ctypes.get_errno())
    less = (ctypes.c_uint32 * 6)(*held)
    less[0] &= ~_OVERRIDE
    assert libc.capset(header, less) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0, os.strerror(ctypes.get_errno())
