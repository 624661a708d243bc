"""The table of releases says what Kafka's classes say, and what servers said of themselves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kshell.client import releases, releases_table
from kshell.client.inference import infer
from kshell.client.releases import BROKER, CONTROLLER, RELEASES, Offer, Range, release_of, release_ranges
from kshell.errors import UsageError
from kshell.protocol.names import API_NAMES
from tests.kafka import comparison, jars
from tests.kafka.cluster import Cluster
from tests.tools.record_versions import ask

KEYS = {name: key for key, name in API_NAMES.items()}
LIVE = ("3.3.2", "3.6.2", "3.9.2", "4.0.0", "4.1.1", "4.3.1", "4.4.0")
JARS = ("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1", "4.4.0")


class Recorded(NamedTuple):
    """What one server answered: ``recorded_versions.jsonl`` holds answers of real servers, one a line."""

    version: str
    server: str
    unstable: bool
    asked: int
    apis: dict[int, Range]
    features: dict[str, Range]


def _span(text: str) -> Range:
    low, _, high = text.partition("-")
    return int(low), int(high)


def recorded() -> Iterator[Recorded]:
    with open(Path(__file__).parent / "recorded_versions.jsonl") as lines:
        for line in map(json.loads, lines):
            apis = {int(key): _span(span) for key, span in line.pop("apis").items()}
            features = {name: _span(span) for name, span in line.pop("features").items()}
            yield Recorded(apis=apis, features=features, **line)


RECORDED = list(recorded())


def named(one: Recorded) -> str:
    return f"{one.version}-{one.server.replace(' ', '-')}-v{one.asked}{'-unstable' if one.unstable else ''}"


def offer(version: str, kind: str, kraft: bool) -> Offer:
    """The row of the table for a version with its patch number."""
    mine = [o for o in releases.offers() if (o.release, o.kind, o.kraft) == (release_of(version), kind, kraft)]
    return next((o for o in mine if o.patch == version), mine[0])


def default(one: Offer) -> dict[int, Range]:
    return {key: span for key, span in one.ranges.items() if key not in releases.OPTIONAL}


def levels(version: str, asked: int) -> dict[str, Range]:
    """The features of a release, as an answer of that version of ApiVersions has them (KAFKA-17011)."""
    known = releases.supported_features().get(release_of(version), {})
    return {name: span for name, span in known.items() if asked >= 4 or (asked == 3 and span[0] > 0)}


# Against servers whose answers were recorded


@pytest.mark.parametrize("one", [one for one in RECORDED if not one.unstable], ids=named)
def test_a_recorded_server_is_as_the_table_has_it_and_is_named(one: Recorded) -> None:
    kraft = one.server != "zookeeper broker"
    kind = CONTROLLER if one.server == CONTROLLER else BROKER
    assert default(offer(one.version, kind, kraft)) == one.apis
    assert (levels(one.version, one.asked) if kraft else {}) == one.features
    found = infer(one.apis, one.features)
    assert (found.text, found.exact, found.kind, found.kraft) == (release_of(one.version), True, kind, kraft)
    assert infer(one.apis, one.features, kind)[:3] == found[:3]


@pytest.mark.parametrize("one", [one for one in RECORDED if one.unstable], ids=named)
def test_a_recorded_server_with_unstable_versions_is_within_the_answer(one: Recorded) -> None:
    table = offer(one.version, one.server, True)
    assert default(table) | dict(table.unstable) == one.apis
    found = infer(one.apis, one.features)
    wider = {"4.1.1": "4.1\N{EN DASH}4.2", "4.2.1": "4.2\N{EN DASH}4.3", "4.4.0": "4.4 or later"}
    assert found.text == wider.get(one.version, release_of(one.version))
    assert found.exact == (one.version == "3.6.2")  # where no unstable feature was on


def test_recorded_servers_are_many_releases_of_every_kind() -> None:
    servers = {(one.server, one.version) for one in RECORDED}
    assert Counter(server for server, _ in servers) == {"zookeeper broker": 11, BROKER: 15, CONTROLLER: 16}


# The table itself


def test_releases_are_complete_and_in_order() -> None:
    for kind, kraft, first in ((BROKER, False, "0.10.0"), (BROKER, True, "2.8"), (CONTROLLER, True, "2.8")):
        last = "3.9" if not kraft else RELEASES[-1]
        lines = [o.release for o in releases.offers() if (o.kind, o.kraft, o.patch) == (kind, kraft, None)]
        assert lines == list(RELEASES[RELEASES.index(first) : RELEASES.index(last) + 1])
    assert len({(o.release, o.kind, o.kraft, o.patch) for o in releases.offers()}) == len(releases.offers())


def test_every_range_is_one_and_everybody_offers_apiversions() -> None:
    for one in releases.offers():
        assert one.ranges[KEYS["ApiVersions"]][0] == 0
        for key, (low, high) in (*one.ranges.items(), *one.unstable.items()):
            assert 0 <= low <= high and key in API_NAMES


def test_each_change_changes_something() -> None:
    for table in (releases_table.ZOOKEEPER_BROKERS, releases_table.BROKERS, releases_table.CONTROLLERS):
        ranges: dict[int, Range | None] = {}
        for changes in releases.read_text(table).values():
            assert all(ranges.get(key) != span for key, span in changes.items())
            ranges |= changes


def test_what_zookeeper_needed_is_not_offered_by_kraft_brokers() -> None:
    for name in ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"):
        assert all(KEYS[name] not in o.ranges for o in releases.offers() if o.kind == BROKER and o.kraft)
        assert all(KEYS[name] in o.ranges for o in releases.offers() if not o.kraft)


def test_what_a_broker_passes_on_is_offered_by_controllers() -> None:
    latest = offer(RELEASES[-1], CONTROLLER, True).ranges
    assert len(releases.forwarded()) == 22
    assert releases.forwarded() <= latest.keys()


def test_metadata_version_names_a_release_by_itself() -> None:
    tops = [spans["metadata.version"][1] for spans in releases.supported_features().values()]
    assert tops == sorted(set(tops))
    assert list(releases.supported_features()) == list(RELEASES[RELEASES.index("3.3") :])


# A release that somebody configures


@pytest.mark.parametrize(
    ("version", "release"),
    [("0.8.2.2", "0.8.2"), ("0.9.0", "0.9.0"), ("0.10.2.1", "0.10.2"), ("0.11.0.3", "0.11"), ("2.8", "2.8"),
     ("3.9.2", "3.9"), ("4.4.0", "4.4")],
)  # fmt: skip
def test_versions_with_and_without_their_patch(version: str, release: str) -> None:
    assert release_of(version) == release
    assert release_ranges(version)[KEYS["Metadata"]][0] == 0


@pytest.mark.parametrize("version", ["", "4", "0.7.2", "4.9", "10.0", "3.9-SNAPSHOT", "3.9.x", "0.1", "three"])
def test_a_version_that_is_no_release_is_a_usage_error(version: str) -> None:
    with pytest.raises(UsageError, match="no release of Kafka") as error:
        release_ranges(version)
    assert error.value.hint is not None and "0.10.0" in error.value.hint


def test_brokers_before_apiversions_do_not_offer_it() -> None:
    for version in ("0.8.2.2", "0.9.0.1"):
        assert KEYS["ApiVersions"] not in release_ranges(version)
    assert release_ranges("0.9.0.1")[KEYS["OffsetCommit"]] == (0, 2)
    assert release_ranges("0.9.0.1")[KEYS["Metadata"]] == (0, 0)
    assert KEYS["ListGroups"] not in release_ranges("0.8.2.2")


# Against Kafka itself


@pytest.mark.live
@pytest.mark.parametrize("version", JARS)
def test_the_table_is_what_kafkas_own_classes_say(version: str) -> None:
    jars.require(version)
    assert list(comparison.api_ranges(comparison.declared(), version)) == []


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("version", LIVE)
def test_a_running_server_is_as_the_table_has_it_and_is_named(version: str) -> None:
    jars.require(version)
    with Cluster(version) as cluster:
        for kind, node in ((CONTROLLER, cluster.controllers[0]), (BROKER, cluster.brokers[0])):
            table = default(offer(version, kind, True))
            for asked in (0, 3, 4, 5):
                answer = ask(node.port, asked)
                if asked > table[KEYS["ApiVersions"]][1]:
                    assert answer is None
                    continue
                assert answer == (table, levels(version, asked))
                found = infer(*answer)
                assert (found.kind, found.kraft) == (kind, True)
                assert (found.text, found.exact) == (release_of(version), True) or asked == 0
