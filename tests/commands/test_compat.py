"""compat: what a cluster can do, and who is in the way."""

from __future__ import annotations

import pytest

from kshell.engine.session import Session
from kshell.errors import EXIT_SOURCE, SourceError, UsageError
from tests.commands.shell import lines, rows, run
from tests.commands.test_api_versions import live, registered
from tests.server import Quorum, faults

FETCH, METADATA, SHARE_FETCH = 1, 3, 78


def test_a_feature_that_all_nodes_have() -> None:
    with Quorum(controllers=3) as quorum:
        result = run(live(quorum), "compat KIP-630")
        assert result.exit_code == 0
        (row,) = rows(live(quorum), "compat snapshot-fetch")
        assert list(row) == ["feature", "kip", "usable", "required", "shared", "inTheWay", "reason", "about"]
        assert (row["feature"], row["kip"], row["usable"], row["inTheWay"]) == ("snapshot-fetch", "KIP-630", True, [])
        assert row["required"] == {"FetchSnapshot": {"min": 0, "max": None}, "Fetch": {"min": 12, "max": None}}
        assert row["shared"] == {"FetchSnapshot": {"min": 0, "max": 1}, "Fetch": {"min": 4, "max": 18}}


def test_the_node_in_the_way_is_named() -> None:
    with Quorum(controllers=3) as quorum:
        quorum.node(2).ranges[FETCH] = (0, 11)
        session = live(quorum)
        result = run(session, "compat KIP-630")
        (row,) = rows(session, "compat KIP-630")
        assert (result.exit_code, row["usable"], row["inTheWay"]) == (1, False, ["2"])
        assert row["reason"] == "2: Fetch is offered 0-11, 12 or later is needed"
        assert "inTheWay  2" in [line.strip() for line in lines(session, "compat KIP-630")]


def test_each_reason_is_said_once_with_its_nodes() -> None:
    with Quorum(controllers=3) as quorum:
        for node in quorum.controllers[1:]:
            node.ranges[FETCH] = (0, 11)
        (row,) = rows(live(quorum), "compat KIP-630")
        assert row["reason"] == "2, 3: Fetch is offered 0-11, 12 or later is needed"


def test_a_level_that_is_not_finalized() -> None:
    """The pretend nodes finalize metadata.version alone."""
    with Quorum(controllers=1) as quorum:
        (row,) = rows(live(quorum), "compat KIP-853")
        assert (row["usable"], row["inTheWay"]) == (False, [])
        assert row["reason"] == "kraft.version is 0, 1 is needed"
        assert row["required"]["kraft.version"] == {"min": 1, "max": None}
        assert row["shared"]["kraft.version"] == {"min": 0, "max": 0}


def test_a_level_that_nobody_tells_is_unknown() -> None:
    with Quorum(controllers=1) as quorum:
        quorum.on("ApiVersions", faults.change(lambda body: body.update(finalizedFeatures=[])))
        result = run(live(quorum), "compat KIP-868")
        (row,) = rows(live(quorum), "compat KIP-868")
        assert (result.exit_code, row["usable"]) == (EXIT_SOURCE, None)
        assert row["reason"] == "the level of metadata.version, at least 13 is not reported"


def test_who_was_not_asked_may_be_in_the_way() -> None:
    with Quorum(controllers=3) as quorum:
        quorum.node(3).stop()
        session = live(quorum)
        (row,) = rows(session, "compat KIP-630")
        assert (row["usable"], row["reason"]) == (None, "controller 3 was not asked")
        quorum.node(1).ranges[FETCH] = (0, 11)
        (row,) = rows(live(quorum), "compat KIP-630")
        assert (row["usable"], row["inTheWay"]) == (False, ["1"])


def test_brokers_are_asked_from_controllers_too() -> None:
    with Quorum(controllers=1, brokers=2) as quorum:
        quorum.append(*(registered(node.id, node.port) for node in quorum.brokers))
        quorum.node(102).ranges[METADATA] = (0, 6)
        (row,) = rows(live(quorum), "compat leader-epoch-fencing")
        assert (row["usable"], row["inTheWay"]) == (False, ["102"])


def test_no_broker_is_known() -> None:
    with Quorum(controllers=1) as quorum:
        (row,) = rows(live(quorum), "compat transactions")
        assert (row["usable"], row["reason"]) == (None, "no broker is known")


def test_all_features_are_a_list_and_no_predicate() -> None:
    from kshell.client.compatibility import capabilities

    with Quorum(controllers=1) as quorum:
        session = live(quorum)
        assert [row["feature"] for row in rows(session, "compat")] == list(capabilities())
        assert run(session, "compat").exit_code == 0
        assert lines(session, "compat")[0].split() == ["feature", "kip", "usable", "inTheWay", "reason"]


def test_a_wrong_name_proposes_right_ones(sample: Session) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, "compat share-group")
    assert raised.value.hint == "did you mean share-groups or streams-groups?"


def test_a_directory_runs_no_nodes(sample: Session) -> None:
    with pytest.raises(SourceError):
        run(sample, "compat")


def test_rows_are_chosen() -> None:
    with Quorum(controllers=1) as quorum:
        session = live(quorum)
        every = rows(session, "compat")
        unknown = [row["feature"] for row in every if row["usable"] is None]
        assert 0 < len(unknown) < len(every)
        line = "compat --where 'usable == null' --columns feature"
        assert [row["feature"] for row in rows(session, line)] == unknown
        assert lines(session, line) == ["feature", *unknown]
        # One feature has a page, and rows where somebody asks for columns of it.
        assert lines(session, "compat transactions --columns usable,feature")[1].split() == ["unknown", "transactions"]
