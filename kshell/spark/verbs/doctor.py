"""``kshell-pipeline doctor``: checks which Java, Python and packages there are, and whether Spark works with them."""

from __future__ import annotations

import os

from kshell.engine.declaration import Example, Flag
from kshell.engine.result import Report
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, SparkArguments, Verb


class DoctorArguments(SparkArguments):
    """Arguments and options of ``doctor``."""

    quick: bool


def run(args: DoctorArguments) -> Report:
    """Return the findings; exit code 1 if something that is needed is missing or does not work."""
    from kshell.spark.doctor import examine

    return examine(
        os.environ,
        start=not args.quick,
        master=args.master,
        settings=dict(args.conf or ()),
        log_level=args.spark_log,
    )


VERB = Verb(
    name="doctor",
    summary="which Java, Python and packages there are, and whether Spark works with them",
    run=run,
    arguments=DoctorArguments,
    flags=(Flag(("--quick",), "look only: start no session, try nothing"), *SPARK_FLAGS),
    examples=(
        Example(f"{NAME} doctor", "look, start a session, and try what the pipeline needs"),
        Example(f"{NAME} doctor --quick -o json", "the versions, for a report"),
    ),
    description=(
        "Sessions and tables are tried by writing and reading a little in a temporary directory."
        " Exit code 1: something that is needed is missing or does not work."
    ),
)
