"""One fact has one level, whoever reports it: ``health`` on a source, or the pipeline's report on tables."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from kshell.metadata.health.check import checks
from kshell.spark.report.compose import compose
from kshell.spark.report.section import Attention, ReportSection, Scope
from kshell.spark.report.sections import sections
from kshell.spark.report.sections.copies import STATES
from kshell.spark.schemas import COPY_FIELDS
from tests.spark.report.answers import CLUSTER, made

WITHOUT_CHECK = {
    "availability": "a share of time past; health looks at one moment",
    "load": "how leadership is spread over a day",
    "drift": "configs against those of others",
    "anomalies": "hours against those of other weeks",
    "upgrades": "downgrades that have happened",
    "copies": "several copies of one log; health looks at one",
}
"""Sections that point out what no check of ``health`` finds, and why none does."""


def attention(scope: Scope) -> list[tuple[str, Attention]]:
    """What every section points out in a fleet, or a cluster, in which everything went wrong."""
    clusters = [CLUSTER, "QwJ3bX9xTV6n0pXv7a1b2c"] if scope.is_fleet else [CLUSTER]
    document = compose(scope, _everything(made(scope, clusters=clusters)), ())
    return [(section.name, found) for found, section in document.attention]


def _everything(answers: dict[str, Any]) -> dict[str, Any]:
    """With a broker that nobody misses, too, and replicas that are all in one rack."""
    brokers = [row | {"fenced": 3, "idle": 1, "ids": [1, 2], "idleIds": [9]} for row in answers["overview"]["brokers"]]
    racks = [row | {"oneRack": 1.0} for row in answers["load"]["racks"]]
    return answers | {
        "overview": {**answers["overview"], "brokers": brokers},
        "load": {**answers["load"], "racks": racks},
    }


@pytest.mark.parametrize("scope", [Scope(), Scope(CLUSTER)], ids=["fleet", "cluster"])
def test_every_fact_that_both_report_has_the_level_of_the_check(scope: Scope) -> None:
    found = attention(scope)
    shared = {one.fact for _, one in found if one.fact is not None}
    assert shared == {
        "offlinePartition", "underMinIsr", "underReplicated", "brokerFenced", "staleRegistration", "wideOpenAcl",
        "uncleanRecovery", "stuckReassignment", "rackViolation",
    }  # fmt: skip
    assert shared <= {check.name for check in checks()}
    assert {section for section, one in found if one.fact is None} <= WITHOUT_CHECK.keys()


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.name)
def test_a_level_of_its_own_is_for_what_no_check_finds(section: ReportSection) -> None:
    source = Path(inspect.getfile(section.describe)).read_text("utf-8")
    has_own = re.search(r"\bAttention\(", source) is not None
    assert has_own is (section.name in WITHOUT_CHECK)


def test_every_state_of_a_copy_is_sound_or_pointed_out() -> None:
    """A state that the report did not know would be left out of it in silence."""
    (about,) = [field.doc for field in COPY_FIELDS if field.name == "state"]
    assert set(re.split(", | or ", about)) == {"reference", "same", "behind", *STATES}
