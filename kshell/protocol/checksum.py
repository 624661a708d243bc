"""CRC-32C, computed by the ``crc32c`` package's extension module.

The package's own ``__init__`` imports ``importlib.metadata`` and ``argparse``: measured, a third of the start-up time
of a one-shot command. So its extension is loaded without it; where that fails, the package is imported as usual.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder


def _extension() -> Callable[[bytes | memoryview], int] | None:
    package = PathFinder.find_spec("crc32c")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(folder, f"_crc32c{suffix}")
            spec = importlib.util.spec_from_file_location("crc32c._crc32c", path) if os.path.exists(path) else None
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                function: Callable[[bytes | memoryview], int] = module.crc32c
                return function
    return None


def _package() -> Callable[[bytes | memoryview], int]:
    import crc32c as package

    return package.crc32c


crc32c = _extension() or _package()
"""The CRC-32C (Castagnoli) of some bytes, as an unsigned 32-bit number."""
