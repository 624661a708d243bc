"""The groups of tests are what the tests are: modules that are named are there, and all that use Spark's session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.groups import LONG, SPARK, group, rank

TESTS = Path(__file__).parent


def test_what_is_named_is_there() -> None:
    assert not [name for name in (*SPARK, *LONG) if not (TESTS.parent / name).exists()]


def test_whoever_takes_the_session_is_in_its_group() -> None:
    taking = re.compile(r"^def test_\w+\([^)]*\bspark: ", re.MULTILINE)
    modules = [
        str(path.relative_to(TESTS.parent)) for path in TESTS.rglob("test_*.py") if taking.search(path.read_text())
    ]
    assert len(modules) > 5
    assert {group(f"{module}::test_one") for module in modules} == {"spark"}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("tests/live/test_a.py::test_one", "tests/live/test_a.py"),
        ("tests/live/test_a.py::test_one[4.3.1]", "tests/live/test_a.py 4.3.1"),
        ("tests/live/test_a.py::test_one[snapshots-3.9.2-no]", "tests/live/test_a.py 3.9.2"),
        ("tests/live/test_a.py::TestB::test_one[3.3.2/controller-3000]", "tests/live/test_a.py 3.3.2"),
    ],
)
def test_a_group_is_a_module_for_one_release(test: str, expected: str) -> None:
    assert group(test) == expected


def test_what_is_long_begins_first() -> None:
    assert rank("tests/spark/silver/test_versions.py::test_x") < rank("tests/live/test_stream.py::test_x")
    assert rank("tests/live/test_stream.py::test_x") < rank("tests/live/test_acls.py::test_x")
