"""Send this package to the executors of a session on a cluster, so that they run the same kshell as the driver.

The packages that kshell needs (``crc32c`` and ``numpy``, which are compiled; ``pyarrow`` and ``pandas``, which Spark
needs, too) must be installed there, or sent in one of the ways in docs/spark.md.
"""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

from kshell.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "kshell"
NAME = f"{_PACKAGE}.zip"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship(spark: SparkSession, folder: str) -> None:
    """Make the package importable for the session's tasks; the zip for that is written to ``folder``."""
    spark.addArtifacts(zipped(folder), pyfile=True)


def zipped(folder: str) -> str:
    """Return the path of a zip with the package's code: the one it runs from, or a new one in ``folder``.

    The same code gives the same bytes. Raises UsageError if the code cannot be found.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.isfile(os.path.dirname(root)):
        return os.path.dirname(root)
    if not os.path.isdir(root):
        raise UsageError(f"{root}: no directory, so the package cannot be sent to executors", hint="give --py-files")
    path = os.path.join(folder, NAME)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_code(root)):
            entry = zipfile.ZipInfo(f"{_PACKAGE}/{os.path.relpath(file, root)}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with open(file, "rb") as source:
                archive.writestr(entry, source.read())
    return path


def _code(root: str) -> list[str]:
    return [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]
