"""What went wrong in a task, as an error for people. Whatever a Python worker raises reaches the driver as text in an
error of Spark's; what is known of it is read out of that.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from typing import Any

from kshell.errors import CommandError
from kshell.spark.tables.data_files import SHARED

_REFUSED = re.compile(rf"^{re.escape(CommandError.__module__)}\.{CommandError.__name__}: (.+)$", re.MULTILINE)
"""The line of an error of ours in what Python prints of it."""
_LACKS = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'$", re.MULTILINE)
_INSTALL = (
    "the Python of the executors (PYSPARK_PYTHON, or spark.pyspark.python, says which) needs"
    " `pip install 'kraft-shell[spark]'`, or an environment that is sent along: docs/spark.md"
)

_PATIENCE = 30.0
"""Seconds for an import."""
WORKER_STARTS = 5
"""How often the Python of a stream is started before its failure counts: each start has Spark's ten seconds."""
_LATE_WORKER = "Python worker failed to connect back"


def is_late_worker(error: BaseException | None) -> bool:
    """Whether a Python worker was not up in time, which on a busy machine means that it was slow.

    Spark waits ten seconds for a worker that it starts by itself, as it does for the source of each stream, and no
    setting changes that (``PythonWorkerFactory.createSimpleWorker``). Nothing has been read by then, so that starting
    the stream again loses nothing and repeats nothing.
    """
    return error is not None and _LATE_WORKER in str(error)


def check_workers(spark: Any) -> None:
    """Raises CommandError where the Python that a classic session starts its workers with on this machine cannot import
    this package: Spark would say it in a page of Java, and of the last line only.

    A virtual environment is enough for that, where PYSPARK_PYTHON is not set: workers are whatever ``python3`` is on
    the path. Sessions on clusters have their workers elsewhere.
    """
    from kshell.spark.session import is_here, spark_home  # late: it imports this package's Java

    if not is_here(spark):
        return
    python = shutil.which(spark.sparkContext.pythonExec)
    if python is None or python == sys.executable:
        return
    command = [python, "-c", "import kshell.spark.source"]
    libraries = glob.glob(os.path.join(glob.escape(spark_home(os.environ)), "python", "lib", "*.zip"))
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([*libraries, os.environ.get("PYTHONPATH", "")])}
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False, env=variables)
    except (OSError, subprocess.TimeoutExpired):
        return  # Spark will say what it is
    if process.returncode and (lacks := _LACKS.search(process.stderr)) is not None:
        raise CommandError(
            f"the Python of Spark's workers, {python}, has no module {lacks[1]}",
            hint=f"set PYSPARK_PYTHON={sys.executable} before the session starts",
        )


def of_task(error: BaseException) -> CommandError | None:
    """What kept a task from its work; ``None`` where it is no error of Spark's, or of another kind."""
    if not type(error).__module__.startswith("pyspark."):
        return None
    message = str(error)
    if (match := _REFUSED.search(message)) is not None:
        return CommandError(match[1], hint=SHARED)
    if (match := _LACKS.search(message)) is not None:
        return CommandError(f"executors have no Python module {match[1]}", hint=_INSTALL)
    return None
