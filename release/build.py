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


def main(folder: Path) -> None:
    """Make everything, and say what there is."""
    wheel, archive = build(folder)
    one_file = zipapp.make(wheel, folder / "kshell.pyz")
    sums = [(hashlib.sha256(path.read_bytes()).hexdigest(), path) for path in (wheel, archive, one_file)]
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {path.name}\n" for digest, path in sums))
    for _, path in sums:
        print(f"{path.stat().st_size / 1e6:5.1f} MB  {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
