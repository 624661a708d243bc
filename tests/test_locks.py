"""The locked requirements install on every supported Python, from its first release on.

No network: ``requirements/files.tsv`` says which file of each pin pip takes on each Python, and what installed packages
say of themselves is compared with it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.locks import BESIDE, LOCKS, PYTHONS, REQUIREMENTS, File, Pin, faults, pins_of, read_lock, recorded_files

HASHES = ("0" * 64,)


def pin(name: str, version: str, marker: str = "") -> Pin:
    return Pin(canonicalize_name(name), Version(version), Marker(marker) if marker else None, HASHES)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", (*LOCKS, *BESIDE))
def test_every_pin_installs(lock: str, python: str) -> None:
    assert list(faults(pins_of(lock), recorded_files(), python)) == []


@pytest.mark.parametrize("lock", (*LOCKS, *BESIDE))
def test_every_pin_has_hashes_and_no_line_names_an_index_or_a_path(lock: str) -> None:
    pins = pins_of(lock)  # a line of another kind is an error
    assert len(pins) > 3
    assert [pin.name for pin in pins if not pin.hashes] == []


def test_an_index_in_a_lock_is_an_error() -> None:
    for line in ("--index-url https://example.org/simple", "--find-links /opt/wheels", "numpy @ file:///opt/numpy.whl"):
        with pytest.raises(ValueError):
            read_lock(f"{line}\n")


@pytest.mark.parametrize(("smaller", "larger"), [("runtime", "spark"), ("spark", "dev")])
def test_the_larger_lock_holds_every_pin_of_the_smaller(smaller: str, larger: str) -> None:
    for python in PYTHONS:
        few, many = (
            {(pin.name, pin.version) for pin in pins_of(lock) if pin.applies_to(python)} for lock in (smaller, larger)
        )
        assert few <= many


@pytest.mark.parametrize("lock", BESIDE)
@pytest.mark.parametrize("python", PYTHONS)
def test_builds_and_pages_can_share_the_developers_environment(lock: str, python: str) -> None:
    versions = {pin.name: pin.version for pin in pins_of(LOCKS[-1]) if pin.applies_to(python)}
    pins = [pin for pin in pins_of(lock) if pin.applies_to(python)]
    assert [pin for pin in pins if versions.get(pin.name, pin.version) != pin.version] == []
    assert any(pin.name in versions for pin in pins)


def test_the_record_is_what_the_packages_say_of_themselves() -> None:
    python = next(python for python in PYTHONS if Version(python).minor == sys.version_info.minor)
    compared = 0
    for file in recorded_files():
        if file.python != python:
            continue
        try:
            installed = distribution(file.name)
        except PackageNotFoundError:
            continue
        if Version(installed.version) == Version(file.version):
            wanted = installed.metadata.json.get("requires_python", "")
            assert (file.name, wanted) == (file.name, file.requires_python)
            compared += 1
    assert compared > 100


def test_a_pin_that_wants_a_later_patch_release_is_named() -> None:
    files = [
        File("3.11.0", "soupsieve", "4.1.2", ">=3.11.5", "soupsieve-4.1.2-py3-none-any.whl"),
        File("3.12.0", "soupsieve", "4.1.2", ">=3.11.5", "soupsieve-4.1.2-py3-none-any.whl"),
    ]
    pins = [pin("soupsieve", "4.1.2")]
    assert list(faults(pins, files, "3.11.0")) == ["soupsieve 4.1.2 on Python 3.11.0: wants Python >=3.11.5"]
    assert list(faults(pins, files, "3.12.0")) == []
    assert list(faults([pin("soupsieve", "4.1.2", "python_version >= '3.12'")], files, "3.11.0")) == []


@pytest.mark.parametrize(
    ("file", "fits"),
    [
        ("numpy-2.4.6-cp314-cp314-manylinux_2_28_x86_64.whl", True),
        ("numpy-2.4.6-cp313-cp313-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-cp314-cp314t-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-cp311-abi3-manylinux_2_28_x86_64.whl", True),
        ("numpy-2.4.6-cp315-abi3-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-py2.py3-none-any.whl", True),
        ("numpy-2.4.6-py3-none-manylinux_2_28_x86_64.whl", True),
        ("numpy-2.4.6-py2-none-any.whl", False),
        ("numpy-2.4.6.tar.gz", False),
    ],
)
def test_a_wheel_for_another_python_and_a_source_archive_are_named(file: str, fits: bool) -> None:
    found = list(faults([pin("numpy", "2.4.6")], [File("3.14.0", "numpy", "2.4.6", ">=3.11", file)], "3.14.0"))
    assert (found == []) is fits


def test_a_pin_that_the_record_lacks_is_named() -> None:
    files = [File("3.14.0", "numpy", "2.4.5", ">=3.11", "numpy-2.4.5-py3-none-any.whl")]
    assert list(faults([pin("numpy", "2.4.6")], files, "3.14.0")) == ["numpy 2.4.6 on Python 3.14.0: not in files.tsv"]


def test_every_python_that_the_package_names_is_one_of_them() -> None:
    project = tomllib.loads((REQUIREMENTS.parent / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert [python.rpartition(".")[0] for python in PYTHONS] == named
    assert project["requires-python"] == f">={named[0]}"
