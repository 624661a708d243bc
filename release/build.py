"""What a release consists of: ``python -m release.build DIR``, which ``./dev build`` calls.

The wheel and the source archive are made by hatchling, which the lock pins; nothing is fetched for them. ``kshell.pyz``
is made of that wheel and of the pinned wheels that it depends on. The same sources give the same bytes every time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from release import zipapp

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> tuple[Path, Path]:
    """Make the wheel and the source archive, and return their paths."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(
            [sys.executable, "-I", "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", made],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        folder.mkdir(parents=True, exist_ok=True)
        wheel, archive = (next(Path(made).glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        return Path(shutil.copy(wheel, folder)), Path(shutil.copy(archive, folder))


def make(folder: Path) -> list[Path]:
    """Make the wheel, the source archive and ``kshell.pyz``, and return their paths."""
    wheel, archive = build(folder)
    return [wheel, archive, zipapp.make(wheel, folder / "kshell.pyz")]


def write_sums(files: Iterable[Path], folder: Path) -> Path:
    """Write the checksums of files, as ``sha256sum --check`` reads them."""
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    return sums


def main(folder: Path) -> None:
    """Make everything, and say what there is."""
    files = make(folder)
    write_sums(files, folder)
    for path in files:
        print(f"{path.stat().st_size / 1e6:5.1f} MB  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
