"""Files of kshell's own, when something else stands in their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kshell import own_files
from kshell.errors import UsageError


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_directory_is_no_such_file_and_leaves_nothing_open(tmp_path: Path) -> None:
    before = descriptors()
    for _ in range(5):
        with pytest.raises(UsageError, match="not a file of marks") as raised:
            own_files.read(str(tmp_path), "marks", 1000, "remove it")
        assert raised.value.hint == "remove it"
    assert descriptors() == before
