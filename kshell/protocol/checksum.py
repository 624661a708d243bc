"""CRC-32C, the checksum of record batches, computed by the extension module of the ``crc32c`` package.

The package's own ``__init__`` imports ``importlib.metadata`` and ``argparse``: measured, a third of the start-up time
of a one-shot command. So the extension is loaded without it; where that fails, the package is imported as usual.

In ``kshell.pyz`` the package has the extensions of many platforms. The one that fits is unpacked and loaded; where none
fits, the package computes in plain Python, which is slow.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from zipimport import zipimporter


def _extension() -> Callable[[bytes | memoryview], int] | None:
    package = PathFinder.find_spec("crc32c")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(folder, f"_crc32c{suffix}")
            if os.path.exists(path):
                return _loaded(path)
            if (unpacked := _unpacked(package, path)) is not None:
                try:
                    return _loaded(unpacked)
                except ImportError:  # the file system is mounted noexec, or the C library is older
                    return None
    return None


def _unpacked(package: ModuleSpec | None, path: str) -> str | None:
    """Unpack the extension from the archive that has the package (``kshell.pyz``); return its path, or ``None``."""
    loader: object = package.loader if package is not None else None
    if not isinstance(loader, zipimporter):
        return None
    try:
        content = loader.get_data(path)
    except OSError:
        return None
    from kshell.unpacking import unpack

    folder = unpack({os.path.basename(path): content})
    return None if folder is None else os.path.join(folder, os.path.basename(path))


def _loaded(path: str) -> Callable[[bytes | memoryview], int]:
    spec = importlib.util.spec_from_file_location("crc32c._crc32c", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[bytes | memoryview], int] = module.crc32c
    return function


class _InPython:
    """A checksum function in plain Python that notes whether it was called: then a note says why reading is slow."""

    def __init__(self, function: Callable[[bytes | memoryview], int]) -> None:
        self._function = function
        self.was_used = False

    def __call__(self, data: bytes | memoryview) -> int:
        self.was_used = True
        return self._function(data)


def _package() -> Callable[[bytes | memoryview], int]:
    import crc32c as package

    return _InPython(package.crc32c) if hasattr(package.crc32c, "__code__") else package.crc32c


crc32c = _extension() or _package()
"""Compute the CRC-32C (Castagnoli) of some bytes, as an unsigned 32-bit number."""


def was_in_python() -> bool:
    """Whether a checksum was computed in plain Python, which is slow, in this process."""
    return isinstance(crc32c, _InPython) and crc32c.was_used
