"""A limit on the size of files stands in for a full disk."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def file_size_limit(most: int) -> Iterator[None]:
    """Let no file of this process grow beyond ``most`` bytes.

    Bytecode is not written meanwhile: Python leaves a file that is cut off, and later imports fail on it. A process of
    its own that has such a limit is to run with ``-B`` for the same reason.
    """
    before, wrote_none = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = wrote_none
