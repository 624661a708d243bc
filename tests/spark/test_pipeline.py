"""``./dev pipeline`` as a newcomer runs it: no Java on the path, nothing at home."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kshell.spark.tables import catalog
from tests.spark.here import ROOT, need_spark, packaged_path
from tests.spark.warehouses import delta_tables

pytestmark = [pytest.mark.spark, pytest.mark.soak]


def test_the_sample_becomes_tables_and_a_report_without_java(tmp_path: Path) -> None:
    need_spark()
    path = packaged_path(tmp_path, packaged=True)
    assert path is not None
    venv = {name: os.environ[name] for name in ("KSHELL_VENV",) if name in os.environ}
    done = subprocess.run(
        [ROOT / "dev", "pipeline", tmp_path / "out"], env={"PATH": path, "HOME": str(tmp_path / "home")} | venv,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert catalog.tables().keys() <= listed.keys()
    made = {str(place.relative_to(tmp_path / "out/tables")) for place in delta_tables(tmp_path / "out/tables")}
    assert made == {spec.path for spec in catalog.tables().values()}
    page = (tmp_path / "out/report/report.html").read_text()
    assert "<svg" in page or "data:image/png" in page
    written = {str(path.relative_to(tmp_path / "home")) for path in (tmp_path / "home").rglob("*") if path.is_file()}
    ours = {path for path in written if not path.startswith(".rustup/")}  # pip asks rustc for its version
    assert all(path.startswith(".cache/kshell/java/") for path in ours), ours
