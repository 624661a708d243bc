"""Recognize known causes of failed Spark tasks, and turn them into errors that say what to do.

An exception in a Python worker reaches the driver only as text within an exception of Spark's; this text is searched.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from kshell import errors
from kshell.errors import CommandError
from kshell.spark.tables.data_files import WRITE_HINT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REPORTED = re.compile(rf"^{re.escape(CommandError.__module__)}\.(\w+): (.+)$", re.MULTILINE)
"""The last line of a traceback that ends with an error of kshell."""
_LACKS = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'$", re.MULTILINE)
_FULL = re.compile("No space left on device|File too large|Disk quota exceeded")
"""What the system calls a full disk, in errors of Java and of Python."""
_SILENT = re.compile("An error occurred while calling .*|Answer from Java side is empty|Error while .*")
"""What py4j says where Java did not answer."""
_INSTALL = (
    "the Python of the executors (PYSPARK_PYTHON, or spark.pyspark.python, says which) needs"
    " `pip install 'kraft-shell[spark]'`, or an environment that is sent along: docs/spark.md"
)

_PATIENCE = 30.0
"""Seconds that the import of this package may take in another Python."""
WORKER_STARTS = 5
"""How often a stream is started until its Python worker is up: each time Spark waits ten seconds for it."""
_LATE_WORKER = "Python worker failed to connect back"
_DEAD_WORKER = "Python worker exited unexpectedly"


def is_late_worker(error: BaseException | None) -> bool:
    """Whether an error says that a Python worker did not start in time, as happens on a busy machine.

    Spark waits ten seconds for the worker of a stream's source, and no setting changes that
    (``PythonWorkerFactory.createSimpleWorker``). Nothing was read by then, so the stream can simply be started again.
    """
    return error is not None and _LATE_WORKER in str(error)


def check_workers(spark: SparkSession) -> None:
    """Raise CommandError if the Python workers of a classic session on this machine cannot import this package.

    That happens in a virtual environment if PYSPARK_PYTHON is not set, because workers run the first ``python3`` on the
    path; Spark would report it in a page of Java. Sessions on clusters are not checked: their workers run elsewhere.
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
        return  # the cause is unclear; Spark will report it
    if process.returncode and (lacks := _LACKS.search(process.stderr)) is not None:
        raise CommandError(
            f"the Python of Spark's workers, {python}, has no module {lacks[1]}",
            hint=f"set PYSPARK_PYTHON={sys.executable} before the session starts",
        )


def of_task(error: BaseException) -> CommandError | None:
    """Return the cause of a failed task: kshell's error, a full disk, a process that ended; ``None`` if not known."""
    is_of_spark = type(error).__module__.startswith(("pyspark.", "py4j."))
    message = str(error)
    if is_of_spark and (match := _LACKS.search(message)) is not None:
        return CommandError(f"executors have no Python module {match[1]}", hint=_INSTALL)
    if is_of_spark and (reported := of_worker(error)) is not None:
        return reported
    if (is_of_spark or isinstance(error, OSError)) and _FULL.search(message):  # pyspark writes temporary files, too
        if isinstance(error, OSError) and error.filename is not None:
            return CommandError(f"{os.fsdecode(error.filename)}: {error.strerror}", hint="make room there")
        return CommandError(
            "no space left in Spark's directory for temporary files (spark.local.dir, /tmp unless set)",
            hint="make room there, or --conf spark.local.dir=DIR",
        )
    # py4j adds a trace if a call was answered at all.
    is_silent = type(error).__name__ in ("Py4JError", "Py4JNetworkError") and _SILENT.fullmatch(message) is not None
    if is_silent or isinstance(error, ConnectionRefusedError) or (is_of_spark and _DEAD_WORKER in message):
        return CommandError(
            f"{'a Python worker' if _DEAD_WORKER in message else 'the Java process'} of Spark was killed, or failed",
            hint="run it again; if memory was short, with less work at a time: --master local[1]",
        )
    return None


def of_worker(error: BaseException) -> CommandError | None:
    """Return the error of kshell that ended a Python process of Spark's; ``None`` for another one.

    Of the hints only that of a CommandError comes back: tasks raise it if they cannot write.
    """
    match = _REPORTED.search(str(error))
    if match is None:
        return None
    reported = CommandError(match[2], hint=WRITE_HINT if match[1] == CommandError.__name__ else None)
    reported.exit_code = getattr(errors, match[1], CommandError).exit_code
    return reported
