"""The package as a zip: whole, the same each time, and able to run from there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from kshell.spark.session import zipped
from tests.spark.here import ROOT

_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import kshell.commands, kshell.spark.decoding.decode, kshell.spark.steps.ingest, kshell.spark.verbs
from kshell.metadata.records import record_types
from kshell.spark.tables import catalog
from kshell.spark import session
print(kshell.__file__)
print(session.zipped(sys.argv[2]))
print(*kshell.spark.verbs.names())
print(*catalog.tables())
print(*sorted(kind.name for kind in record_types().values()))
"""


def test_the_zip_holds_the_code_and_is_the_same_each_time(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(Path(zipped(str(tmp_path / name))))
    assert made[0].read_bytes() == made[1].read_bytes() and made[0].name == "kshell.zip"
    with zipfile.ZipFile(made[0]) as zip_:
        assert set(zip_.namelist()) == {str(path.relative_to(ROOT)) for path in (ROOT / "kshell").rglob("*.py")}


def test_what_is_found_in_the_package_is_found_in_the_zip(tmp_path: Path) -> None:
    path = zipped(str(tmp_path))
    said = []
    for place in (path, str(ROOT)):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, place, str(tmp_path)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, env={}, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    from_zip, from_checkout = said
    assert from_zip[0] == f"{path}/kshell/__init__.py"
    assert from_zip[1] == path, "what runs from a zip ships that zip"
    assert from_zip[2:] == from_checkout[2:]
    assert len(from_zip[3].split()) > 20
