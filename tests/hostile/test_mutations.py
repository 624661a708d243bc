"""Random damage: typed errors or right answers, at most two seconds and 256 MiB each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.hostile.measured import MEMORY, ROOT
from tests.hostile.mutating import FILES, KINDS, SEALED

_A_PROCESS = 2_500
_IN_ALL = 100_000
"""Cases of each kind under ``./dev soak``, the same ones every time; the ordinary run takes the first of them."""


def _run(kind: str, first: int, count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.mutating", kind, str(first), str(count)],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        timeout=1_500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *wrong, last = done.stdout.splitlines()
    assert not wrong, done.stdout
    ran, memory = map(int, last.split())
    assert ran == count
    assert memory < MEMORY


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "count"), [(FILES, 150), (SEALED, 150)])
def test_some_mutations_are_named_or_harmless(kind: str, count: int) -> None:
    _run(kind, 0, count)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(2_000)
@pytest.mark.parametrize("first", range(0, _IN_ALL, _A_PROCESS))
@pytest.mark.parametrize("kind", KINDS)
def test_mutations_are_named_or_harmless(kind: str, first: int) -> None:
    _run(kind, first, _A_PROCESS)
