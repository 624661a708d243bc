"""What runs in one process, and what begins first, where several processes share the tests (``--dist loadgroup``).

pytest-xdist's own groups come by a suffix of the test's id, which pytest from 9.2 on does not take from a plugin.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

SPARK = (
    "tests/result/test_spark.py",
    *(f"tests/spark/{name}/" for name in ("gold", "report", "silver", "steps", "views")),
    *(f"tests/spark/{name}.py" for name in ("stream/test_source", "stream/test_tables")),
    *(f"tests/spark/{name}.py" for name in ("tables/test_expectations", "tables/test_warehouse", "test_source")),
)
"""What shares a session of Spark: its JVM is slow until it is warm, and large."""

LONG = (
    *SPARK, "tests/live/test_stream.py", "tests/spark/test_submit.py", "tests/spark/stream/test_verb.py",
    "tests/spark/tables/test_spark_delta.py", "tests/spark/test_guide.py", "tests/spark/test_pipeline.py",
    "tests/spark/test_whole_run.py",
    "tests/notebooks/test_notebooks.py", "tests/live/test_quorum.py", "tests/spark/test_leaks.py",
    "tests/live/test_image.py", "tests/live/test_as_of.py", "tests/live/test_live_commands.py",
    "tests/live/test_features.py", "tests/live/test_health.py",
)  # fmt: skip
"""What takes minutes, the longest first: nothing waits at the end for what was begun late."""

THOROUGH = (
    "tests/canaries/", "tests/hostile/", "tests/notebooks/", "tests/spark/",
    "tests/client/sasl/test_oauthbearer.py", "tests/client/test_hostile_handshake.py", "tests/client/test_inference.py",
    "tests/client/test_dialects.py", "tests/client/test_leader.py", "tests/client/test_mutated_answers.py",
    "tests/client/test_transport.py", "tests/commands/test_blame.py",
    "tests/commands/test_diff.py::test_applied", "tests/commands/test_explain.py::test_every_byte",
    "tests/commands/test_explain.py::test_values", "tests/commands/test_export.py",
    "tests/commands/test_grep.py::test_a_pattern_that_takes", "tests/commands/test_live_answers.py::test_every",
    "tests/commands/test_past_in_sql.py", "tests/commands/test_recover.py::test_what_is_damaged",
    "tests/commands/test_reference.py", "tests/commands/test_save.py::test_it_reads",
    "tests/commands/test_registry.py::TestEach::test_answers_render", "tests/commands/test_report.py",
    "tests/commands/test_tables.py::TestEachTable", "tests/commands/test_timeline.py::test_is_the_image",
    "tests/commands/test_when.py::test_is_what", "tests/commands/test_why.py::test_agrees",
    "tests/commands/test_verify.py::test_a_flipped", "tests/commands/test_verify.py::test_what_kafka_wrote",
    "tests/commands/test_sql.py", "tests/commands/test_sql_history.py", "tests/commands/test_where_values.py",
    "tests/magic/test_kernel.py", "tests/mcp/test_calls.py",
    "tests/magic/test_saved.py", "tests/metadata/test_every_offset.py", "tests/metadata/test_image.py::test_as_of",
    "tests/metadata/test_image.py::test_the_image_is_the_same",
    "tests/metadata/test_story.py",
    "tests/plots/test_lanes.py", "tests/plots/test_pipeline.py", "tests/plots/test_plot.py",
    "tests/plots/test_plots.py::test_names_are", "tests/plots/test_plots.py::test_the_same",
    "tests/protocol/test_compression.py::test_data",
    "tests/protocol/test_decoder.py", "tests/protocol/test_framing.py", "tests/protocol/test_messages.py",
    "tests/protocol/test_walks.py",
    "tests/render/test_json_format.py", "tests/render/test_live.py", "tests/repl/test_terminal.py",
    "tests/sources/test_checkpoints.py", "tests/sources/test_damage.py", "tests/sources/test_download.py",
    "tests/sources/test_hostile_peers.py", "tests/sources/test_observer.py",
    "tests/sources/test_past", "tests/sources/test_quorum.py", "tests/test_dev.py", "tests/test_fixtures.py",
    "tests/test_startup.py::test_a_signal_at_any_time", "tests/top/", "tests/tree/test_concerns.py",
)  # fmt: skip
"""Many cases of one thing, two thirds of the time of the tests that need no server: ./dev fast leaves them out."""

QUICK = ("tests/spark/gold/test_declared.py",)
"""Of those, what takes a second and names what somebody who adds something has left out: ./dev fast runs it."""


def is_left_out(place: str) -> bool:
    """Whether the fast lane leaves out a test, or all that a file or a folder (with ``/`` at its end) has."""
    return place.startswith(THOROUGH) and not any(place.startswith(one) or one.startswith(place) for one in QUICK)


def group(test: str) -> str:
    """Return what a test shares with others: a session of Spark, or what its module sets up (for a Kafka release)."""
    if test.startswith(SPARK):
        return "spark"
    module, _, name = test.partition("::")
    release = re.search(r"\[.*?(\d+\.\d+\.\d+)", name)
    return f"{module} {release[1]}" if release else module


def rank(test: str) -> int:
    """Return when a test is to begin, among the others: the lower the sooner."""
    return next((i for i, start in enumerate(LONG) if test.startswith(start)), len(LONG))


def scheduler(config: pytest.Config, log: object) -> object:
    """Return what gives whole groups to processes, in the order in which the tests stand (xdist has no types)."""
    made: Any = importlib.import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    made._split_scope = group
    config.option.loadscopereorder = False
    return made
