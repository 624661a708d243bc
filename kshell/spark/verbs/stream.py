"""``kshell-pipeline stream``: keeps the tables up to date with directories that grow, in micro-batches."""

from __future__ import annotations

import json
import re
import signal
import sys

from kshell.engine.declaration import Arg, Example, Flag
from kshell.engine.result import Report
from kshell.errors import EXIT_INTERRUPTED, UsageError
from kshell.sources.points import Point, duration_ms
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, Verb
from kshell.spark.verbs.warehouse.flags import OUT, RETAIN, SINCE, SOURCE_FLAGS, SourcesArguments, sources_of
from kshell.spark.verbs.warehouse.opening import open_warehouse

_FEW = 8 << 20
"""Bytes of logs below which what speeds Spark up on much data (``is_brief`` leaves it out) costs more than it saves."""
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class StreamArguments(SourcesArguments):
    """Arguments and options of ``stream``."""

    checkpoint: str | None
    available_now: bool
    every: float | None
    max_bytes: int | None
    retain: int


def run(args: StreamArguments) -> Report:
    """Follow until a signal, or with ``--available-now`` until all is read. Exit codes of ``run``; 130 for Ctrl-C."""
    from kshell.spark.stream.tables import EVERY, Sources, TableStream
    from kshell.spark.verbs.warehouse.step_summary import report

    sources = Sources(_options(sources_of(args), args.max_bytes), args.cluster, args.since or Point())
    if not args.checkpoint:
        raise UsageError("no --checkpoint", hint="--checkpoint DIR is where the stream notes how far it is")
    if args.available_now and args.every:
        raise UsageError("--available-now and --every exclude each other")
    with open_warehouse(args) as place:

        def say(message: str) -> None:
            place.progress.clear()
            sys.stderr.write(f"{NAME}: {message}\n")
            sys.stderr.flush()

        stream = TableStream(place.warehouse, sources, say=say, progress=place.progress, retained_hours=args.retain)
        place.is_brief = args.available_now and stream.size() < _FEW
        with place.warehouse.writing():
            stopped = stream.run(args.checkpoint, None if args.available_now else args.every or EVERY)
        step_report = report(place.warehouse.place, len(stream.clusters), stream.summary)
    if stopped == signal.SIGINT:
        step_report.exit_code = EXIT_INTERRUPTED
    return step_report


def _options(paths: list[str], most: int | None) -> dict[str, str]:
    options = {"paths": json.dumps(paths)}
    return options if most is None else options | {"maxBytesPerTrigger": str(most)}


def _seconds(text: str) -> float:
    return duration_ms(text) / 1000


def _size(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,11})([kmg]?)", text.lower(), re.ASCII)
    if match is None:
        raise ValueError("bytes: 1000000, 512k, 64m, 1g")
    return int(match[1]) * _BYTES[match[2]]


VERB = Verb(
    name="stream",
    summary="tables that follow directories as they grow",
    run=run,
    arguments=StreamArguments,
    args=(Arg("more", "more sources, such as the paths that your shell makes of a glob", arity="*"),),
    flags=(
        *SOURCE_FLAGS,
        OUT,
        SINCE,
        Flag(("--checkpoint",), "a directory, local or a URI, where the stream notes how far it is", "DIR"),
        Flag(("--available-now",), "end when all that is there now is in the tables"),
        Flag(("--every",), "the time between micro-batches: 500ms, 30s, 5m (default: 30s)", "TIME", convert=_seconds),
        Flag(
            ("--max-bytes",),
            "about how many bytes of logs one micro-batch reads: 64m (default: all there is)",
            "SIZE",
            convert=_size,
        ),
        RETAIN,
        *SPARK_FLAGS,
    ),
    examples=(
        Example(
            f"{NAME} stream --source '/fleet/*/*/__cluster_metadata-0' --out tables --checkpoint follow",
            "every 30 seconds what is new",
        ),
        Example(
            f"{NAME} stream --source /var/lib/kafka --out tables --checkpoint follow --every 5s --max-bytes 64m",
            "soon, and in bounded steps",
        ),
        Example(
            f"{NAME} stream --source /var/lib/kafka --out tables --checkpoint follow --available-now",
            "what is there now; for a scheduler",
        ),
    ),
    description=(
        "The tables are the same as `run` makes of the same files. `run` can go on where a stream ended, and a stream"
        " where `run` ended, but not both at the same time. New clusters, copies and segments are found while it runs."
        " If it is killed at any moment, the next stream goes on where the tables are. Ctrl-C (exit code 130) and"
        " SIGTERM end it when the micro-batch that runs is done."
    ),
)
