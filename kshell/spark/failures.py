"""What went wrong in a task, as an error for people. Whatever a Python worker raises reaches the driver as text in an
error of Spark's; what is known of it is read out of that.
"""

from __future__ import annotations

import re

from kshell.errors import CommandError
from kshell.spark.warehouse.parts import SHARED

_REFUSED = re.compile(rf"^{re.escape(CommandError.__module__)}\.{CommandError.__name__}: (.+)$", re.MULTILINE)
"""The line of an error of ours in what Python prints of it."""
_LACKS = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'$", re.MULTILINE)
_INSTALL = (
    "the Python of the executors (PYSPARK_PYTHON, or spark.pyspark.python, says which) needs"
    " `pip install 'kraft-shell[spark]'`, or an environment that is sent along: docs/spark.md"
)


def of_task(error: BaseException) -> CommandError | None:
    """What kept a task from its work; ``None`` where it is no error of Spark's, or of another kind."""
    if not type(error).__module__.startswith("pyspark."):
        return None
    said = str(error)
    if (found := _REFUSED.search(said)) is not None:
        return CommandError(found[1], hint=SHARED)
    if (found := _LACKS.search(said)) is not None:
        return CommandError(f"executors have no Python module {found[1]}", hint=_INSTALL)
    return None
