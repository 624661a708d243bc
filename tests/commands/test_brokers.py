"""``brokers``: what is known of each, and the software that each says it runs, or that its APIs speak for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kshell.client.connection import NodeVersions
from kshell.client.inference import span
from kshell.client.releases import RELEASES
from kshell.cluster.nodes import inferred
from kshell.engine.session import Session
from kshell.errors import SourceError
from kshell.metadata.image import EMPTY
from kshell.metadata.values import Provenance
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests.builders import uuid, value
from tests.commands.shell import lines, rows, run
from tests.server import Quorum, settings
from tests.server.quorum import ranges_of

ROW = (
    "id epoch fenced inControlledShutdown rack listeners softwareName softwareVersion softwareSource".split()
)  # the interface's
HOSTILE = "red\x1b[31m\u202e\n" + "x" * 5000


def registration(node: Any, *, protocol: int = 0) -> bytes:
    point = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": node.port, "securityProtocol": protocol}
    return value("REGISTER_BROKER", 0, brokerId=node.id, incarnationId=uuid(9), brokerEpoch=5, endPoints=[point],
                 features=[], rack=None, fenced=False)  # fmt: skip


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def at_brokers(quorum: Quorum, **properties: str) -> Session:
    return Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings(**properties))))


def at_controllers(quorum: Quorum, **properties: str) -> Session:
    return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings(**properties))))


def test_a_directory(sample: Session) -> None:
    found = rows(sample, "brokers")
    assert [row["id"] for row in found] == [1, 2, 3]
    assert [row["fenced"] for row in found] == [False, False, True]
    assert found[0]["epoch"] == 21
    assert found[0]["listeners"][0]["name"] == "EXTERNAL"
    assert {row["softwareSource"] for row in found} == {"unknown"}
    assert {row["softwareVersion"] for row in found} == {None}


def test_exact_rows_have_the_interfaces_columns(sample: Session) -> None:
    shown = json.loads("".join(render(run(sample, "brokers"), "json")))
    assert list(shown[0])[: len(ROW)] == ROW


def test_text_shows_software_only_where_it_was_asked_for(sample: Session) -> None:
    head, first, *_ = lines(sample, "brokers")
    assert "softwareSource" not in head
    assert "EXTERNAL://kafka-1.shop.example:9094,PLAINTEXT://127.0.0.1:" in first


def test_wide_has_every_column(sample: Session) -> None:
    result = run(sample, "brokers")
    head = next(iter(render(result, "wide")))
    assert sorted(head.split()) == sorted(json.loads("".join(render(result, "json")))[0])
    narrow = "".join(render(result, "text", width=80)).splitlines()[-1]
    assert f" of {len(head.split())} columns" in narrow


def test_a_directory_cannot_be_asked_for_software(sample: Session) -> None:
    with pytest.raises(SourceError) as raised:
        run(sample, "brokers --software")
    assert "-q" in (raised.value.hint or "")


class TestSoftware:
    @pytest.mark.parametrize(
        ("dialect", "at"),
        # KIP-885 drafts DescribeCluster for brokers, before KIP-919 gave it to controllers: they are not asked so.
        [("kip-885", at_brokers), ("kip-885-apiversions", at_brokers), ("kip-885-apiversions", at_controllers)],
    )
    def test_reported(self, dialect: str, at: Any) -> None:
        with Quorum(brokers=2, dialects=[dialect]) as quorum:
            quorum.append(*map(registration, quorum.brokers))
            quorum.software = {101: ("apache-kafka", "4.3.1"), 102: ("fork", "4.10.0-rc1")}
            found = rows(at(quorum, dialect=dialect), "brokers --software")
        told = [(row["softwareName"], row["softwareVersion"], row["softwareSource"]) for row in found]
        assert told == [("apache-kafka", "4.3.1", "reported"), ("fork", "4.10.0-rc1", "reported")]
        assert {(row["lowestSoftwareVersion"], row["highestSoftwareVersion"]) for row in found} == {
            ("4.3.1", "4.10.0-rc1")
        }

    @pytest.mark.parametrize("dialect", ["kip-885", "kip-885-apiversions"])
    def test_null_is_not_told(self, dialect: str) -> None:
        with Quorum(brokers=2, dialects=[dialect]) as quorum:
            quorum.software = {101: ("only-a-name", None)}
            first, second = rows(at_brokers(quorum, dialect=dialect), "brokers --software")
        assert (first["softwareName"], first["softwareVersion"], first["softwareSource"]) == (
            "only-a-name",
            None,
            "reported",
        )
        assert (second["softwareName"], second["softwareSource"]) == (None, "inferred")

    @pytest.mark.parametrize("release", ["3.3", "3.6", "3.9", "4.0", "4.1", "4.3"])
    def test_inferred(self, release: str) -> None:
        with Quorum(brokers=1, release=release) as quorum:
            (row,) = rows(at_brokers(quorum), "brokers --software")
        low, high = (
            tuple(map(int, row[f"{end}SoftwareVersion"].split()[0].split("."))) for end in ("lowest", "highest")
        )
        assert low <= tuple(map(int, release.split("."))) <= high
        assert (row["softwareName"], row["softwareSource"]) == (None, "inferred")
        assert row["evidence"]

    def test_by_the_registrations_that_controllers_have(self) -> None:
        with Quorum(brokers=3) as quorum:
            one, two, three = quorum.brokers
            quorum.append(registration(one), registration(two, protocol=3), registration(three))
            three.stop()
            found = rows(at_controllers(quorum), "brokers --software")
        assert [row["softwareSource"] for row in found] == ["inferred", "unknown", "unknown"]
        assert "no listener with PLAINTEXT" in found[1]["evidence"][0]
        assert f"127.0.0.1:{three.port}" in found[2]["evidence"][0]

    def test_what_a_server_says_is_bounded_and_escaped(self) -> None:
        with Quorum(brokers=1, dialects=["kip-885-apiversions"]) as quorum:
            quorum.software = {101: (HOSTILE, HOSTILE)}
            session = at_brokers(quorum, dialect="kip-885-apiversions")
            result = run(session, "brokers --software")
            printed = {fmt: "".join(render(result, fmt)) for fmt in ("text", "wide", "html", "csv")}
        assert printed["text"].count("inferred") == 0
        assert all("\x1b" not in text and "\u202e" not in text for fmt, text in printed.items() if fmt != "csv")
        assert all(text.count("x" * 300) == 0 for text in printed.values())

    def test_text_ends_with_the_clusters_line(self) -> None:
        with Quorum(brokers=2) as quorum:
            shown = lines(at_brokers(quorum), "brokers --software")
        assert [line.split()[0] for line in shown[-2:]] == ["lowestSoftwareVersion", "highestSoftwareVersion"]

    def test_only_the_brokers_part_is_asked(self) -> None:
        with Quorum(brokers=1) as quorum:
            rows(at_brokers(quorum), "brokers")
            assert not quorum.asked_for("DescribeTopicPartitions")


def test_nothing_known_is_unknown() -> None:
    told = inferred(NodeVersions({}))
    assert (told.version, told.source) == (None, "unknown")
    assert told.evidence


def test_the_span_compares_numbers() -> None:
    assert span([("4.10.0", "4.10.0"), ("4.9.1", "4.9.1"), (None, None), ("trunk", "trunk")]) == ("4.9.1", "4.10.0")
    assert span([]) == (None, None)
    assert span([("trunk", "trunk")]) == (None, None)
    assert span([("3.7", "3.8"), ("3.7.2", "3.7.2")]) == ("3.7", "3.8")


def test_a_span_is_open_above_where_one_of_the_nodes_is() -> None:
    assert span([("4.4", "4.4"), ("4.4 or later", "4.4 or later")]) == ("4.4", "4.4 or later")
    assert span([("3.5 or later", "3.5 or later"), ("4.2", "4.2")]) == ("3.5 or later", "4.2 or later")


def test_a_release_after_the_last_known_one_is_open_above() -> None:
    ranges = ranges_of("broker", RELEASES[-1])
    newer = {key: (low, high + (key == 1)) for key, (low, high) in ranges.items()}
    told = inferred(NodeVersions(newer))
    assert (told.lowest, told.highest) == ("4.4 or later", "4.4 or later")


def test_an_image_without_brokers_is_no_rows(sample: Session) -> None:
    session = Session(sample.source)
    image = type(EMPTY)({"brokers": {}}, Provenance(1, 1, 1))
    session.__dict__["loaded"] = sample.loaded._replace(image=image)
    assert rows(session, "brokers") == []
