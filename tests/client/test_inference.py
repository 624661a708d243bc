"""The release that a server runs is named, or the shortest honest range of releases, and never a wrong one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.client import releases
from kshell.client.inference import Inference, by_level, infer, registered_releases
from kshell.client.releases import BROKER, CONTROLLER, METADATA_VERSION, RELEASES, Offer, Range, position
from kshell.protocol.names import API_NAMES

KEYS = {name: key for key, name in API_NAMES.items()}
OFFERS = releases.offers()
FORWARDING = [o for o in OFFERS if o.kraft and o.kind == BROKER and position(o.release) >= position("3.3")]


def offer(release: str, kind: str, *, kraft: bool = True, patch: str | None = None) -> Offer:
    key = (release, kind, kraft, patch)
    return next(o for o in OFFERS if (o.release, o.kind, o.kraft, o.patch) == key)


def default(one: Offer) -> dict[int, Range]:
    """What such a server answers when nothing is configured."""
    return {key: span for key, span in one.ranges.items() if key not in releases.OPTIONAL}


def features(release: str, version: int = 4) -> dict[str, Range]:
    """What a KRaft server of that release answers, in that version of ApiVersions."""
    levels = releases.supported_features().get(release, {})
    return {name: span for name, span in levels.items() if version >= 4 or span[0] > 0}


def covers(found: Inference, release: str) -> bool:
    """Whether the answer leaves that release possible."""
    if found.lowest is None:
        return True
    if position(release) < position(found.lowest):
        return False
    return found.highest is None or position(release) <= position(found.highest)


all_offers = st.sampled_from(OFFERS)
kraft_offers = st.sampled_from([o for o in OFFERS if o.kraft and position(o.release) >= position("3.3")])
spans = st.tuples(st.integers(-2, 25), st.integers(-2, 25))


# Every release of the table


def test_every_kraft_release_is_named_exactly_with_its_features() -> None:
    for one in OFFERS:
        if one.kraft and position(one.release) >= position("3.3"):
            for version in (3, 4):
                found = infer(default(one), features(one.release, version))
                assert (found.text, found.exact) == (one.release, True), one.release
                assert (found.kind, found.kraft) == (one.kind, True)


def test_every_zookeeper_release_is_named_exactly() -> None:
    for one in OFFERS:
        if not one.kraft:
            found = infer(default(one), {})
            assert (found.text, found.exact) == (one.release, True)
            assert (found.kind, found.kraft) == (BROKER, False)


def test_without_features_releases_that_cannot_be_told_apart_are_a_range() -> None:
    ranges_found = {}
    for one in OFFERS:
        if one.kraft and position(one.release) >= position("3.3"):
            found = infer(default(one), {})
            assert covers(found, one.release)
            assert found.exact == (found.lowest == found.highest)
            if not found.exact:
                ranges_found[one.kind, one.release] = found.text
    assert ranges_found == {
        (BROKER, "3.3"): "3.3\N{EN DASH}3.4",  # nothing but features changed
        (BROKER, "3.4"): "3.3\N{EN DASH}3.4",
        (CONTROLLER, "3.5"): "3.5\N{EN DASH}3.6",  # 3.6 only added APIs, which may be filtered
        (CONTROLLER, "3.7"): "3.7\N{EN DASH}3.8",  # nothing but features changed
        (CONTROLLER, "3.8"): "3.7\N{EN DASH}3.8",
    }


def test_a_plugin_for_client_metrics_changes_nothing() -> None:
    one = offer("4.1", BROKER)
    with_telemetry = dict(one.ranges)
    assert with_telemetry.keys() > default(one).keys()
    assert infer(with_telemetry, features("4.1")).exact


def test_unstable_apis_are_recognised_and_said() -> None:
    for one in OFFERS:
        if one.unstable:
            found = infer(default(one) | dict(one.unstable), features(one.release) if one.kraft else {})
            assert (found.text, found.exact) == (one.release, True)
            assert any("unstable" in sentence for sentence in found.evidence)


def test_a_patch_release_that_differs_is_the_same_release() -> None:
    found = infer(default(offer("4.0", BROKER, patch="4.0.0")), features("4.0"))
    assert (found.text, found.exact) == ("4.0", True)
    assert any("4.0.0" in sentence for sentence in found.evidence)


# What is kept back on the way


@given(all_offers, st.data())
def test_removing_apis_never_excludes_the_truth(one: Offer, data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(default(one)))))
    with_features = one.kraft and data.draw(st.booleans())
    kind = data.draw(st.sampled_from([None, one.kind]))
    found = infer({key: one.ranges[key] for key in kept}, features(one.release) if with_features else {}, kind)
    assert covers(found, one.release)
    assert not found.exact or found.lowest == one.release
    assert kept or found.lowest is None


@given(kraft_offers, st.data())
def test_features_name_the_release_whatever_is_removed_or_narrowed(one: Offer, data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(default(one))), min_size=1))
    ranges = {key: data.draw(within(one.ranges[key])) for key in kept}
    found = infer(ranges, features(one.release, data.draw(st.sampled_from([3, 4]))))
    assert covers(found, one.release)
    assert found.exact == (ranges == default(one))
    assert found.lowest == one.release or any(default(older) == ranges for older in OFFERS)
    assert found.highest == one.release


def within(span: Range) -> st.SearchStrategy[Range]:
    def and_low(high: int) -> st.SearchStrategy[Range]:
        return st.tuples(st.integers(span[0], high), st.just(high))

    return st.integers(*span).flatmap(and_low)


@given(all_offers, st.data())
def test_narrowed_ranges_are_never_called_exact_for_a_wrong_release(one: Offer, data: st.DataObject) -> None:
    ranges = {key: data.draw(within(span)) for key, span in default(one).items()}
    found = infer(ranges, {})
    assert found.lowest is not None
    assert position(found.lowest) <= position(one.release)
    assert not found.exact or any(default(o) == ranges for o in OFFERS if o.release == found.lowest)


@given(st.sampled_from(FORWARDING), st.sampled_from(RELEASES[RELEASES.index("3.3") :]))
def test_a_broker_limited_by_the_controllers_of_a_rolling_upgrade(one: Offer, other: str) -> None:
    """A broker whose active controller is another release, as ApiVersionsResponse.intersectForwardableApis has it."""
    controller = offer(other, CONTROLLER).ranges
    ranges = {}
    for key, (low, high) in default(one).items():
        if key not in releases.forwarded():
            ranges[key] = (low, high)
        elif key in controller:
            span = (max(low, controller[key][0]), min(high, controller[key][1]))
            if span[0] <= span[1]:
                ranges[key] = span
    named = infer(ranges, features(one.release))
    assert (named.lowest, named.highest) == (one.release, one.release)
    assert covers(infer(ranges, {}), one.release)


def test_an_upgrade_half_done_is_said() -> None:
    broker, older = default(offer("4.1", BROKER)), offer("4.0", CONTROLLER).ranges
    key = KEYS["AlterPartitionReassignments"]
    found = infer(broker | {key: older[key]}, features("4.1"))
    assert (found.text, found.exact) == ("4.1", False)
    assert "limited by an older active controller: AlterPartitionReassignments" in found.evidence


def test_a_proxy_that_narrows_leaves_a_range_open_above() -> None:
    found = infer({key: (high, high) for key, (_, high) in default(offer("3.5", BROKER)).items()}, {})
    assert (found.text, found.exact) == ("3.5 or later", False)


def test_a_wrong_kind_matches_nothing() -> None:
    found = infer(default(offer("4.1", BROKER)), features("4.1"), CONTROLLER)
    assert found.text == "unknown"
    assert found.evidence


# Newer than the table, and not Kafka at all

LATEST = RELEASES[-1]
LATER = f"{LATEST} or later"
TOP = releases.supported_features()[LATEST][METADATA_VERSION][1]


def next_broker() -> dict[int, Range]:
    """What a broker of a release after the last one of the table may offer: higher versions, and APIs without names."""
    ranges = default(offer(LATEST, BROKER))
    for name in ("ApiVersions", "TxnOffsetCommit", "StreamsGroupDescribe"):
        low, high = ranges[KEYS[name]]
        ranges[KEYS[name]] = (low, high + 1)
    return ranges | {releases.LAST_KEY + 1: (0, 0), releases.LAST_KEY + 2: (0, 3)}


def test_a_release_after_the_last_one_of_the_table() -> None:
    found = infer(next_broker(), {METADATA_VERSION: (7, TOP + 14)})
    assert (found.text, found.exact, found.kind) == (LATER, False, BROKER)
    assert found.bounds == (LATER, LATER)
    assert found.evidence[0] == "ApiVersions goes up to 6 (after 4.4)"


def test_a_new_api_alone_is_later() -> None:
    found = infer(default(offer(LATEST, CONTROLLER)) | {95: (0, 0)}, features(LATEST))
    assert (found.text, found.kind) == (LATER, CONTROLLER)
    assert found.evidence[0] == "API 95 is offered (after 4.4)"


def test_a_newer_metadata_version_alone_is_later() -> None:
    newer = features(LATEST) | {METADATA_VERSION: (7, TOP + 1)}
    assert infer(default(offer(LATEST, CONTROLLER)), newer).text == LATER
    assert infer(default(offer("4.2", CONTROLLER)), newer).text == "4.2 or later"  # unstable levels can be switched on


@pytest.mark.parametrize(
    ("levels", "evidence"),
    [
        ({"share.version": (0, 3)}, "share.version goes up to 3 (2 in 4.4)"),
        ({METADATA_VERSION: (15, TOP)}, "metadata.version starts at 15 (7 in 4.4)"),
        ({"cluster.mirroring.version": (0, 1)}, "feature cluster.mirroring.version: not known to any Kafka up to 4.4"),
    ],
)
def test_a_newer_level_or_feature_alone_is_later(levels: dict[str, Range], evidence: str) -> None:
    found = infer(default(offer(LATEST, CONTROLLER)), features(LATEST) | levels)
    assert (found.text, found.exact) == (LATER, False)
    assert evidence in found.evidence
    assert registered_releases(features(LATEST) | levels) == (LATER, LATER)


def test_levels_that_are_registered_name_a_release() -> None:
    for release, levels in releases.supported_features().items():
        assert registered_releases(levels) == (release, release)
    assert registered_releases({METADATA_VERSION: (7, 26)}) == ("4.0", "4.1")
    assert registered_releases({METADATA_VERSION: (7, TOP + 14)}) == (LATER, LATER)
    assert registered_releases(features("4.1") | {"vendor.feature": (0, 4)}) == ("4.1", "4.1")
    assert registered_releases({"kraft.version": (0, 1)}) is None


def test_something_new_beside_something_long_gone_is_no_kafka_we_know() -> None:
    found = infer(default(offer("3.7", BROKER)) | {95: (0, 0)}, {})
    assert found.text == "unknown"
    assert found.evidence[0] == "API 95 is offered (after 4.4)"
    assert any("(4 in 4.4)" in sentence for sentence in found.evidence)  # Fetch starts at 0


def test_a_fork_with_apis_of_its_own_is_named_but_not_exactly() -> None:
    found = infer(default(offer("3.7", BROKER)) | {10001: (0, 3)}, features("3.7") | {"vendor.feature": (0, 4)})
    assert (found.text, found.exact) == ("3.7", False)
    assert any("API 10001" in sentence for sentence in found.evidence)
    assert any("vendor.feature" in sentence for sentence in found.evidence)


def test_features_and_apis_that_contradict_each_other() -> None:
    found = infer(default(offer("3.9", BROKER)), features("3.6"))
    assert (found.text, found.exact) == ("3.6\N{EN DASH}3.9", False)
    assert "metadata.version goes up to 14 (3.6)" in found.evidence
    assert "the APIs are those of 3.9" in found.evidence


def test_a_proxy_of_an_older_release_does_not_hide_the_features_behind_it() -> None:
    """Something in between takes versions away, but not one line's lowest level of metadata.version for another's."""
    found = infer(default(offer("3.9", BROKER)) | {KEYS["Fetch"]: (4, 12)}, features("3.9"))
    assert (found.text, found.exact) == ("3.9", False)


def test_unstable_features_raise_metadata_version() -> None:
    """``unstable.feature.versions.enable=true``: what 3.9.2, 4.0.0 and 4.1.1 said of themselves with it."""
    streams = {"streams.version": (0, 1)}
    for release, level, more, text in (
        ("3.9", (1, 23), {"transaction.version": (0, 2)}, "3.9"),
        ("4.0", (7, 26), {}, "4.0"),
        ("4.1", (7, 29), streams, "4.1\N{EN DASH}4.2"),  # or 4.2, narrowed to just what 4.1 has
    ):
        for kind in (BROKER, CONTROLLER):
            one = offer(release, kind)
            for ranges in (default(one), default(one) | dict(one.unstable)):
                found = infer(ranges, features(release) | {METADATA_VERSION: level} | more)
                assert (found.text, found.exact) == (text, False)


def test_a_metadata_version_between_releases() -> None:
    assert list(by_level(26)) == ["4.0", "4.1"]
    assert set(by_level(27)) == {"4.1"}
    assert list(by_level(99)) == [LATEST]


def test_apis_of_two_ages_are_unknown_and_both_are_named() -> None:
    found = infer({KEYS["LeaderAndIsr"]: (0, 1), KEYS["ShareFetch"]: (1, 1)}, {})
    assert found.text == "unknown"
    assert found.evidence == ["ShareFetch 1 is in 4.1 and later", "LeaderAndIsr 0-1 is in 3.9 and before"]


def test_nothing_said_is_unknown() -> None:
    for nothing in ({}, {-1: (0, 0)}, {1: (3, 2)}, {1: (-1, 3)}):
        found = infer(nothing, {})
        assert (found.text, found.exact, found.lowest, found.highest) == ("unknown", False, None, None)
        assert found.evidence


@given(
    st.dictionaries(st.integers(-32768, 32767) | st.integers(0, 95), spans, max_size=100),
    st.dictionaries(st.text(max_size=20) | st.sampled_from([METADATA_VERSION, "kraft.version"]), spans, max_size=5),
    st.sampled_from([None, BROKER, CONTROLLER]),
)
def test_no_answer_is_an_error(ranges: dict[int, Range], named: dict[str, Range], kind: str | None) -> None:
    found = infer(ranges, named, kind)
    assert found.evidence
    assert (found.lowest is None) <= (found.highest is None)
    assert not found.exact or found.lowest == found.highest


def test_the_evidence_of_an_ordinary_answer() -> None:
    found = infer(default(offer("4.1", BROKER)), features("4.1", 3))
    assert found.evidence == [
        "metadata.version goes up to 27 (4.1)",
        "Produce goes up to 13 (4.1 and later)",
        "Fetch goes up to 18 (4.1 and later)",
        "AlterPartitionReassignments goes up to 1 (4.1 and later)",
        "ListOffsets stops at 10 (before 4.2)",
        "OffsetCommit stops at 9 (before 4.2)",
        "OffsetFetch stops at 9 (before 4.2)",
        "all 73 APIs have the versions of 4.1",
    ]
