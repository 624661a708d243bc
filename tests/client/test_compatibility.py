"""What all servers share, and whether it is enough for a feature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.client import releases
from kshell.client.compatibility import Capability, capabilities, check, find, kind_of, shared
from kshell.client.releases import BROKER, CONTROLLER, RELEASES, Range
from kshell.protocol.names import API_NAMES

ANY = frozenset({BROKER, CONTROLLER})
Nodes = dict[str, dict[int, Range]]
nodes_strategy = st.dictionaries(
    st.sampled_from(["1", "2", "3"]),
    st.dictionaries(
        st.integers(0, 4), st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda s: (min(s), max(s))), max_size=4
    ),
    min_size=1,
)


def offered(release: str, kind: str, *, kraft: bool = True) -> dict[int, Range]:
    return next(
        dict(o.ranges)
        for o in releases.offers()
        if (o.release, o.kind, o.kraft, o.patch) == (release, kind, kraft, None)
    )


def feature(**ranges: tuple[int, int | None]) -> Capability:
    keys = {name: key for key, name in API_NAMES.items()}
    return Capability("test", "KIP-0", "", ANY, {keys[name]: span for name, span in ranges.items()}, {})


# KIP-35


def kip_35() -> Nodes:
    """The brokers of the example in KIP-35, "A client developer wants to add support for a new feature"."""
    return {"B1": {0: (0, 3), 1: (2, 3)}, "B2": {0: (1, 2), 1: (0, 3), 2: (0, 0)}}


def test_kip_35_worked_example_versions_state() -> None:
    assert shared(kip_35()) == {0: (1, 2), 1: (2, 3), 2: None}


def test_kip_35_worked_example_feature_map() -> None:
    feature1 = Capability("Feature1", "KIP-35", "", ANY, {0: (3, 3), 1: (2, 3)}, {})
    verdict = check(feature1, kip_35())
    assert verdict.usable is False
    assert [(r.api_key, r.shared, r.met) for r in verdict.requirements] == [(0, (1, 2), False), (1, (2, 3), True)]
    assert [(b.node, b.reason) for b in verdict.blockers] == [("B2", "Produce is offered 1-2, 3 is needed")]


@pytest.mark.parametrize(
    ("requires", "usable", "in_the_way"),
    [
        ({0: (2, 3), 1: (2, 3)}, True, []),  # 2 is in both
        ({0: (0, 1)}, True, []),
        ({0: (0, 0)}, False, ["B2"]),
        ({2: (0, 0)}, False, ["B1"]),  # not offered there
        ({0: (3, 3), 2: (0, 0)}, False, ["B2", "B1"]),
        ({3: (0, None)}, False, ["B1", "B2"]),
    ],
)
def test_kip_35_usable_is_required_overlapping_with_shared(
    requires: dict[int, tuple[int, int | None]], usable: bool, in_the_way: list[str]
) -> None:
    verdict = check(Capability("f", "KIP-35", "", ANY, requires, {}), kip_35())
    assert verdict.usable is usable
    assert [blocker.node for blocker in verdict.blockers] == in_the_way


def test_two_nodes_that_could_each_do_it_but_not_together() -> None:
    nodes = {"old": {1: (0, 2)}, "new": {1: (4, 9)}, "both": {1: (0, 9)}}
    assert shared(nodes) == {1: None}
    verdict = check(feature(Fetch=(0, None)), nodes)
    assert verdict.usable is False
    assert [(b.node, b.reason) for b in verdict.blockers] == [
        ("old", "no version of Fetch 0 or later is shared: 0-2 here"),
        ("new", "no version of Fetch 0 or later is shared: 4-9 here"),
    ]


@given(nodes_strategy)
def test_shared_versions_are_those_that_every_node_offers(nodes: Nodes) -> None:
    common = shared(nodes)
    assert set(common) == {key for ranges in nodes.values() for key in ranges}
    for key, span in common.items():
        everywhere = {
            version
            for version in range(10)
            if all(key in ranges and ranges[key][0] <= version <= ranges[key][1] for ranges in nodes.values())
        }
        assert everywhere == (set() if span is None else set(range(span[0], span[1] + 1)))


@given(nodes_strategy, st.integers(0, 9), st.none() | st.integers(0, 9))
def test_a_feature_is_usable_if_and_only_if_nobody_is_in_the_way(nodes: Nodes, low: int, high: int | None) -> None:
    needed = (low, high if high is None else max(low, high))
    verdict = check(feature(Fetch=needed), nodes)
    assert verdict.nodes == list(nodes)
    assert verdict.usable is not bool(verdict.blockers)
    common = shared(nodes).get(1)
    top = needed[1] if needed[1] is not None else 99
    assert verdict.usable is bool(common and set(range(common[0], common[1] + 1)) & set(range(low, top + 1)))


def test_nobody_asked_is_not_known() -> None:
    assert shared({}) == {}
    nobody: Nodes = {}
    verdict = check(feature(Fetch=(0, None)), nobody)
    assert (verdict.usable, verdict.nodes, verdict.blockers) == (None, [], [])


# Kinds of servers and levels


def test_only_the_kind_of_server_that_a_feature_concerns_is_asked() -> None:
    nodes = {"broker": offered("3.9", BROKER), "controller": offered("3.9", CONTROLLER)}
    quorum, quotas = capabilities()["dynamic-quorum"], capabilities()["quotas"]
    assert check(quorum, nodes, {"kraft.version": 1}).nodes == ["controller"]
    assert check(quotas, nodes).nodes == ["broker"]
    assert check(quotas, {"controller": nodes["controller"]}).usable is None
    assert check(capabilities()["api-versions"], nodes).nodes == ["broker", "controller"]


def test_kinds_are_told_by_apis_for_every_release() -> None:
    for one in releases.offers():
        assert kind_of(one.ranges) == one.kind
    assert kind_of({18: (0, 3)}) is None


def test_a_level_that_is_not_finalized_is_in_the_way() -> None:
    nodes = {3000: offered("3.9", CONTROLLER)}
    quorum = capabilities()["dynamic-quorum"]
    untold, static, dynamic = check(quorum, nodes), check(quorum, nodes, {}), check(quorum, nodes, {"kraft.version": 1})
    assert (untold.usable, untold.unknown) == (None, ["the level of kraft.version, at least 1"])
    assert (static.usable, static.blockers) == (False, [(None, "kraft.version is 0, 1 is needed")])
    assert (dynamic.usable, dynamic.blockers) == (True, [])


def test_a_rolling_upgrade_names_the_broker_that_is_behind() -> None:
    nodes = {1: offered("4.1", BROKER), 2: offered("4.0", BROKER)}
    verdict = check(capabilities()["share-groups"], nodes, {"share.version": 1})
    assert verdict.usable is False
    assert {blocker.node for blocker in verdict.blockers} == {2}
    assert verdict.blockers[0].reason == "ShareGroupHeartbeat is not offered, 1 or later is needed"


# The table of features

FIRST = {
    "api-versions": "0.10.0", "topic-admin": "0.10.1", "offset-fetch-all": "0.10.2", "transactions": "0.11",
    "acl-admin": "0.11", "configs": "0.11", "sasl-authenticate": "1.0", "create-partitions": "1.0",
    "dynamic-broker-configs": "1.1", "fetch-sessions": "1.1", "delegation-tokens": "1.1",
    "delete-groups": "1.1", "prefixed-acls": "2.0", "zstd": "2.1", "leader-epoch-fencing": "2.1",
    "sasl-reauthentication": "2.2", "static-membership": "2.3", "incremental-configs": "2.3",
    "loggers": "2.4", "reassignments": "2.4", "leader-elections": "2.4", "flexible-versions": "2.4",
    "client-software": "2.4", "offset-delete": "2.4", "exactly-once-groups": "2.5",
    "producer-recovery": "2.5", "quotas": "2.6", "config-docs": "2.6", "group-states": "2.6",
    "scram-admin": "2.7", "features": "2.7", "controller-throttling": "2.7", "describe-cluster": "2.8",
    "batched-coordinators": "3.0", "transaction-admin": "3.0", "max-timestamp": "3.0", "topic-ids": "3.1",
    "leave-reason": "3.2", "disk-capacity": "3.3", "tokens-for-others": "3.3",
    "tiered-storage-offsets": "3.5", "client-metrics": "3.7", "leader-discovery": "3.7",
    "consumer-groups": "3.8", "elr": "3.8", "tiered-offsets": "3.9", "feature-levels-of-0": "3.9",
    "transactions-v2": "4.0", "fenced-brokers": "4.0", "group-id-not-found": "4.0", "share-groups": "4.1",
    "config-resources": "4.1", "streams-groups": "4.2", "pending-upload-offsets": "4.2", "share-lag": "4.2",
    "cordoned-log-dirs": "4.3", "peer-check": "4.4", "unregister-controller": "4.4",
    "transactional-commits-by-topic-id": "4.4", "streams-topologies": "4.4",
}  # fmt: skip
"""Feature -> the first release whose brokers offer its APIs, as Kafka's release notes have it."""

FIRST_AT_CONTROLLERS = {
    "quorum": "2.8", "snapshot-fetch": "2.8", "quorum-timestamps": "3.3", "feature-upgrades": "3.3",
    "isr-broker-epochs": "3.5", "jbod": "3.7", "controller-admin": "3.7", "config-docs": "3.7", "loggers": "3.7",
    "dynamic-quorum": "3.9", "pre-vote": "4.0", "fenced-brokers": "4.0", "fetch-high-watermark": "4.1",
    "peer-check": "4.4", "unregister-controller": "4.4",
}  # fmt: skip


def usable_releases(name: str, kind: str) -> list[str]:
    one = capabilities()[name]
    able = set()
    for offer in releases.offers():
        if offer.kind == kind and check(one, {1: offer.ranges}, one.levels).usable:
            able.add(offer.release)
    return sorted(able, key=RELEASES.index)


@pytest.mark.parametrize(("name", "release"), FIRST.items())
def test_a_feature_begins_with_its_release(name: str, release: str) -> None:
    assert usable_releases(name, BROKER) == list(RELEASES[RELEASES.index(release) :])


@pytest.mark.parametrize(("name", "release"), FIRST_AT_CONTROLLERS.items())
def test_a_feature_of_controllers_begins_with_its_release(name: str, release: str) -> None:
    assert usable_releases(name, CONTROLLER) == list(RELEASES[RELEASES.index(release) :])


def test_every_feature_can_be_used_with_some_release_or_is_unstable() -> None:
    for name, one in capabilities().items():
        able = [kind for kind in sorted(one.kinds) if usable_releases(name, kind)]
        assert bool(able) != ("unstable" in one.about), name
        assert one.requires or one.levels


def test_levels_are_levels_of_some_release() -> None:
    last = releases.supported_features()[RELEASES[-1]]
    for one in capabilities().values():
        for name, level in one.levels.items():
            assert 0 < level <= last[name][1]


def test_features_are_found_by_name_and_kip() -> None:
    for word in ("share-groups", "Share-Groups", "KIP-932", "kip-932", "kip932", "932"):
        assert [one.name for one in find(word)] == ["share-groups"]
    assert find("KIP-9999") == []
    assert find("") == []
    assert {one.kip for one in capabilities().values()} >= {f"KIP-{number}" for number in (
        35, 98, 133, 140, 226, 227, 290, 339, 345, 412, 455, 460, 482, 546, 554, 569, 584, 595, 630, 664, 699, 700,
        836, 848, 853, 858, 868, 890, 903, 919, 932, 966, 1071,
    )}  # fmt: skip
