"""Whether the locked requirements serve every supported Python, and the record that shows it without a network.

``python -m tests.locks`` asks pip which file of each pin it would install on each supported Python, and writes the
answers to ``requirements/files.tsv``. ``./dev lock`` does so at its end.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
RECORD = REQUIREMENTS / "files.tsv"
LOCKS = ("runtime", "spark", "dev")
"""Each holds every pin of those before it."""

BESIDE = ("build", "docs")
"""What builds and pages need. They can stand in one environment with the last of ``LOCKS``."""

PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
"""The first release of each supported Python: what a later one of the series can do, this one may lack."""

SOURCE_ARCHIVES = frozenset({"pyspark"})
"""Pins without a wheel. They must build without a compiler: pyspark is Python and jars."""

_PLATFORM = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
_PIN = re.compile(r"(?P<requirement>[A-Za-z0-9][^\\#]*?)(?: \\)?")
_HASH = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}(?: \\)?")


class Pin(NamedTuple):
    """One package of a lock."""

    name: NormalizedName
    version: Version
    marker: Marker | None
    hashes: tuple[str, ...]

    def applies_to(self, python: str) -> bool:
        """Whether Linux installs it on CPython ``python`` (``3.11.0``)."""
        return self.marker is None or self.marker.evaluate(_environment(python))


class File(NamedTuple):
    """What pip installs of one pin on one Python."""

    python: str
    name: str
    version: str
    requires_python: str
    file: str

    @property
    def is_wheel(self) -> bool:
        return self.file.endswith(".whl")


def _environment(python: str) -> dict[str, str]:
    environment = {name: str(value) for name, value in default_environment().items()} | _PLATFORM
    return environment | {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "implementation_version": python,
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
    }


def read_lock(text: str) -> list[Pin]:
    """The pins of a lock.

    Raises:
        ValueError: a line is neither a pin with one exact version, nor a hash, nor a comment. Options (an index, a
            place to find files), addresses and paths are such lines.
    """
    pins: list[Pin] = []
    for line in text.splitlines():
        if not line or line.lstrip().startswith("#"):
            continue
        if _HASH.fullmatch(line) and pins:
            digest = line.partition("sha256:")[2].partition(" ")[0]
            pins[-1] = pins[-1]._replace(hashes=(*pins[-1].hashes, digest))
        elif (match := _PIN.fullmatch(line)) is not None:
            pins.append(_pin(match["requirement"]))
        else:
            raise ValueError(f"neither a pin nor a hash: {line}")
    return pins


def _pin(text: str) -> Pin:
    requirement = Requirement(text)
    specifiers = list(requirement.specifier)
    if requirement.url or len(specifiers) != 1 or specifiers[0].operator != "==" or requirement.extras:
        raise ValueError(f"not one exact version of one package: {text}")
    return Pin(canonicalize_name(requirement.name), Version(specifiers[0].version), requirement.marker, ())


def pins_of(lock: str) -> list[Pin]:
    """The pins of one of ``LOCKS`` or ``BESIDE``."""
    return read_lock((REQUIREMENTS / f"{lock}.txt").read_text())


def faults(pins: Iterable[Pin], files: Iterable[File], python: str) -> Iterator[str]:
    """What keeps these pins from being installed on a Python, as sentences.

    Args:
        pins: those of a lock.
        files: the record; rows of other Pythons are ignored.
        python: a release, ``3.11.0``.
    """
    recorded = {(canonicalize_name(file.name), Version(file.version)): file for file in files if file.python == python}
    for pin in pins:
        if not pin.applies_to(python):
            continue
        label = f"{pin.name} {pin.version} on Python {python}"
        file = recorded.get((canonicalize_name(pin.name), pin.version))
        if file is None:
            yield f"{label}: not in {RECORD.name}"
        elif python not in SpecifierSet(file.requires_python):
            yield f"{label}: wants Python {file.requires_python}"
        elif file.is_wheel and not _fits(file.file, python):
            yield f"{label}: {file.file} is for another Python"
        elif not file.is_wheel and pin.name not in SOURCE_ARCHIVES:
            yield f"{label}: has no wheel, only {file.file}"


def _fits(wheel: str, python: str) -> bool:
    """Whether CPython ``python`` can install a wheel, by the wheel's own tags; the platform is not looked at."""
    minor = int(python.split(".")[1])
    for tag in parse_wheel_filename(wheel)[3]:
        interpreter = re.fullmatch(r"(py|cp)3(\d*)", tag.interpreter)
        if interpreter is None:
            continue
        since = int(interpreter[2] or 0)
        if tag.abi == f"cp3{minor}" and since == minor:
            return True
        if tag.abi == "abi3" and since <= minor:
            return True
        if tag.abi == "none" and (since <= minor if interpreter[1] == "py" else since == minor):
            return True
    return False


def recorded_files() -> list[File]:
    """The record, as it was written by the last ``./dev lock``."""
    with RECORD.open(newline="") as stream:
        rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [File(*row) for row in rows]


def ask_pip(pins: Sequence[Pin], python: str) -> list[File]:
    """What pip would install of these pins on a Python: a dry run, which asks the package index.

    Raises:
        CalledProcessError: pip finds no file for a pin; it has said which.
    """
    # pip takes the markers to be about the Python that runs it, so only what applies is handed to it, without them.
    applicable = [pin for pin in pins if pin.applies_to(python)]
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "pins.txt"), Path(folder, "report.json")
        wanted.write_text(
            "".join(
                " ".join([f"{pin.name}=={pin.version}", *(f"--hash=sha256:{digest}" for digest in pin.hashes)]) + "\n"
                for pin in applicable
            )
        )
        command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--dry-run", "--ignore-installed", "--no-deps", "--require-hashes", "--prefer-binary"]
        command += ["--python-version", python, "--target", os.path.join(folder, "target")]
        command += ["--report", str(report), "-r", str(wanted)]
        subprocess.run(command, check=True)
        return sorted(
            File(
                python,
                canonicalize_name(item["metadata"]["name"]),
                item["metadata"]["version"],
                item["metadata"].get("requires_python", ""),
                item["download_info"]["url"].rpartition("/")[2],
            )
            for item in json.loads(report.read_text())["install"]
        )


def main() -> int:
    """Write the record. The exit code is 1 when some pin cannot be installed on some Python."""
    pins = list({pin[:3]: pin for lock in (LOCKS[-1], *BESIDE) for pin in pins_of(lock)}.values())
    files = []
    for python in PYTHONS:
        print(f"locks: which files Python {python} installs", file=sys.stderr)
        files += ask_pip(pins, python)
    with RECORD.open("w", newline="") as stream:
        rows = csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
        rows.writerow(File._fields)
        rows.writerows(files)
    found = [fault for python in PYTHONS for fault in faults(pins, files, python)]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
