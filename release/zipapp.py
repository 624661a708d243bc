"""``kshell.pyz``: kshell and what it depends on, in one file that any Python 3.11 or later runs, without pip.

Plain Python is imported from the file. One package is compiled, crc32c: its extensions for Linux are inside, and
``kshell.protocol.checksum`` unpacks the one that fits; elsewhere :mod:`release.crc32c_in_python` takes its place.
cryptography, which key stores and PEM keys need, is left out: it exists in compiled form only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

RUNTIME = Path(__file__).parents[1] / "requirements" / "runtime.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = (
    ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    ("musllinux_1_2_x86_64",),
    ("musllinux_1_2_aarch64",),
)
"""Of each, the tags that its wheels may have. Others compute checksums in Python."""

COMPILED = "crc32c"
LEFT_OUT = frozenset({"cffi", "cryptography", "pycparser"})
"""Pins that have no form in Python."""

_START = """\
import sys

if sys.version_info < (3, 11):  # even an old one must be able to read this
    sys.stderr.write("kshell: needs Python 3.11 or newer, this is %d.%d\\n" % sys.version_info[:2])
    sys.exit(2)

from kshell.__main__ import entry

entry()
"""
_DATE = (2020, 2, 2, 0, 0, 0)  # hatchling's: one build is the same as the next


EVERYWHERE = tuple((python, platform) for python in PYTHONS for platform in PLATFORMS)


def make(wheel: Path, target: Path, compiled_for: Iterable[tuple[str, tuple[str, ...]]] = EVERYWHERE) -> Path:
    """Write the file, with kshell as ``wheel`` has it. pip fetches the other wheels, and checks their hashes."""
    files: dict[str, bytes] = {"__main__.py": _START.encode()}
    with tempfile.TemporaryDirectory() as folder:
        names = pins(RUNTIME.read_text()).keys() - LEFT_OUT
        for path in download(names, Path(folder), PYTHONS[0], PLATFORMS[0]):
            files |= dict(_members(path))
        for python, platform in compiled_for:
            for path in download([COMPILED], Path(folder), python, platform):
                with zipfile.ZipFile(path) as archive:
                    extensions = [name for name in archive.namelist() if name.endswith(".so")]
                    files |= {name: archive.read(name) for name in extensions}
    for name, content in _members(wheel):
        if name.startswith("kshell/"):
            files[name] = content
        elif name.endswith("/LICENSE"):
            files["LICENSE"] = content
    files[f"{COMPILED}/__init__.py"] = (Path(__file__).parent / "crc32c_in_python.py").read_bytes()
    temporary = target.with_name(f".{target.name}.part")
    with open(temporary, "wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in sorted(files.items()):
                member = zipfile.ZipInfo(name, _DATE)
                member.external_attr = 0o100644 << 16
                archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    temporary.chmod(0o755)
    temporary.replace(target)
    return target


def _members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """What is of use in the file: code, data, licences, and what ``importlib.metadata`` reads a version from.

    crc32c's wheel has its sources in C. They stay in: its licence, the LGPL, wants them to go with the extension.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            folder, _, rest = name.partition("/")
            is_metadata = folder.endswith(".dist-info")
            if name.endswith(("/", ".so", ".pyi")) or folder.endswith(".data"):
                continue
            if (
                not is_metadata
                or rest == "METADATA"
                or "licen" in rest.lower()
                or rest.startswith(("COPYING", "AUTHORS"))
            ):
                yield name, archive.read(name)


def pins(lock: str) -> dict[str, str]:
    """The lines of each pin of a lock, with its hashes, by name."""
    blocks: dict[str, str] = {}
    name = ""
    for line in lock.splitlines():
        if line and not line.startswith((" ", "#")):
            name = line.partition("==")[0]
        if name and not line.lstrip().startswith("#"):
            blocks[name] = f"{blocks.get(name, '')}{line}\n"
    return blocks


def download(names: Iterable[str], folder: Path, python: str, platform: Iterable[str]) -> list[Path]:
    """Fetch the pinned wheels of some packages for a Python and a platform, into a new directory below ``folder``.

    Raises:
        CalledProcessError: pip finds no wheel, or one with another hash; it has said so.
    """
    blocks = pins(RUNTIME.read_text())
    place = Path(tempfile.mkdtemp(dir=folder))
    wanted = place / "pins.txt"
    wanted.write_text("".join(blocks[name] for name in sorted(names)))
    tags = [f"--platform={tag}" for tag in platform]
    subprocess.run(
        [
            *(sys.executable, "-I", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
            *("--no-deps", "--only-binary=:all:", "--require-hashes", "--implementation=cp"),
            *(f"--python-version={python}", *tags, "-d", str(place), "-r", str(wanted)),
        ],
        check=True,
        env=os.environ | {"PIP_NO_PYTHON_VERSION_WARNING": "1"},
    )
    return sorted(place.glob("*.whl"))
