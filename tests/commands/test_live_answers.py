"""What the commands for running nodes answer, in every format; the golden texts are those of a pretend quorum."""

from __future__ import annotations

import json
import re

import pytest

from kshell.engine.session import Session
from kshell.render import render
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.commands.shell import FORMATS, run
from tests.commands.test_api_versions import registered
from tests.commands.test_loggers import live
from tests.server import Quorum, faults, settings

LINES = (
    "quorum",
    "controllers",
    "api-versions",
    "api-versions --all",
    "compat",
    "compat KIP-853",
    "loggers 1",
    "loggers 1 set root DEBUG --yes",
)


def answer(session: Session, line: str, fmt: str) -> str:
    """As a program that reads it sees it."""
    chunks = list(render(run(session, line), fmt, width=None))
    assert chunks
    assert all(chunk.endswith("\n") for chunk in chunks)
    return "".join(chunks)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format(fmt: str, line: str) -> None:
    with Quorum(controllers=2, brokers=1) as quorum:
        quorum.append(registered(101, quorum.brokers[0].port))
        shown = answer(live(quorum), line, fmt)
        if fmt == "json":
            json.loads(shown)
        elif fmt == "jsonl":
            assert [json.loads(row) for row in shown.splitlines()]


def test_quorum_reads() -> None:
    def then(body: dict) -> None:  # type: ignore[type-arg]
        partition = body["topics"][0]["partitions"][0]
        for number, replica in enumerate(partition["currentVoters"] + partition["observers"]):
            at = 1_700_000_000_000 - 250 * number
            replica |= {"lastFetchTimestamp": at, "lastCaughtUpTimestamp": at - 40_000 * number}

    with Quorum(controllers=2, brokers=1) as quorum:
        quorum.on("DescribeQuorum", faults.change(then))
        shown = answer(live(quorum), "quorum", "text")
        for node in quorum.nodes:
            shown = shown.replace(str(node.port), f"port{node.id}")
        assert shown == (
            "Quorum\n"
            f"  clusterId      {quorum.cluster_id}\n"
            "  leaderId       1\n"
            "  leaderEpoch    1\n"
            "  highWatermark  1\n"
            "\n"
            "Voters and observers\n"
            "  role       id  lag  lastFetch  lastCaughtUp  endpoints\n"
            "  leader      1    0  0.0 s ago  0.0 s ago     CONTROLLER://127.0.0.1:port1\n"
            "  voter       2    0  0.2 s ago  40 s ago      CONTROLLER://127.0.0.1:port2\n"
            "  observer  101    0  0.5 s ago  1 min ago     -\n"
        )


def test_compat_reads() -> None:
    with Quorum(controllers=2) as quorum:
        quorum.node(2).ranges[1] = (0, 11)
        assert answer(live(quorum), "compat KIP-630", "text") == (
            "snapshot-fetch (KIP-630)\n"
            "  about     Snapshots of the metadata log are fetched\n"
            "  usable    no\n"
            "  inTheWay  2\n"
            "  reason    2: Fetch is offered 0-11, 12 or later is needed\n"
            "\n"
            "What snapshot-fetch needs\n"
            "  name           required  shared\n"
            "  FetchSnapshot  0+        0-1\n"
            "  Fetch          12+       4-11\n"
        )


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_servers_say_is_never_interpreted(fmt: str) -> None:
    """Hosts, listeners, directory ids, loggers: none of it reaches a terminal or a page as it is."""
    evil = '\x1b[31m<b>\u202e"'

    def spoil(body: dict) -> None:  # type: ignore[type-arg]
        for node in body["nodes"]:
            node["listeners"] = [{"name": evil, "host": evil, "port": 1}]

    with Quorum(controllers=1) as quorum:
        session = live(quorum)
        quorum.configs[8, "1"][0] |= {"name": evil, "value": evil}
        quorum.on("DescribeQuorum", faults.change(spoil))
        points = [{"name": evil, "host": evil, "port": 1, "securityProtocol": 0}]
        quorum.append(
            builders.value("REGISTER_CONTROLLER", controllerId=1, incarnationId=builders.uuid(1),
                           zkMigrationReady=False, endPoints=points, features=[])
        )  # fmt: skip
        for line in ("quorum", "controllers", "loggers 1"):
            shown = answer(session, line, fmt)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown), line
            assert "<b>" not in shown or fmt not in ("html", "markdown"), line


HISTORY = ("dump", "dump --from 3", "log /", "diff 2 4", "blame /image/topics/byName", "find /image --as-of 4")


@pytest.mark.parametrize("line", HISTORY)
def test_a_snapshot_that_ends_where_the_log_does_hides_nothing_of_it(line: str) -> None:
    """Then nothing of the log is here at first: what is asked of it must not be told of the snapshot instead."""

    def told(*, has_snapshot: bool) -> list[str]:
        with Quorum(controllers=1) as quorum:
            topics = [builders.value("TOPIC", name=f"t{n}", topicId=builders.uuid(n)) for n in range(5)]
            for topic in topics:
                quorum.append(topic)
            if has_snapshot:
                quorum.snapshot(topics, delete=False)
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            assert (session.loaded.snapshot is not None) == has_snapshot
            return answer(session, line, "jsonl").replace(quorum.bootstrap, "QUORUM").splitlines()

    # With a snapshot, the first batch is not asked for: the first LeaderChange.
    without = [row for row in told(has_snapshot=False) if "LEADER_CHANGE" not in row]
    assert len(without) > 1
    assert told(has_snapshot=True) == without
