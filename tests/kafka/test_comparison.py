"""A release's definitions beside our declarations: nothing is missing, and each thing that is taken away is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kshell.protocol.schema import Schema
from tests.kafka import comparison, jars
from tests.kafka.comparison import Declared, compare, declared
from tests.tools import take_up

pytestmark = pytest.mark.live

RELEASE = jars.LATEST


@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
def test_nothing_is_missing(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    jars.require(release)
    assert take_up.main([release]) == 0
    assert capsys.readouterr().out == f"Kafka {release}: nothing missing\n"


def without(table: Mapping[Any, Any], key: Any) -> dict[Any, Any]:
    assert key in table
    return {name: value for name, value in table.items() if name != key}


def but_for(have: Declared, field: str, kind: str, key: str) -> Declared:
    """One config key less, in one of the tables that are by resource type."""
    table = getattr(have, field)
    kept = without(table[kind], key) if isinstance(table[kind], Mapping) else set(table[kind]) - {key}
    return Declared(**(have._asdict() | {field: {**table, kind: kept}}))


def edited(schema: Schema, *, versions: str | None = None, line: str = "") -> Schema:
    """A declaration with other versions, or without the line of a field."""
    lines = [text for text in schema.text.splitlines() if not line or text.split()[:1] != [line]]
    return Schema(schema.name, versions or str(schema.versions), "\n".join(lines), flexible=schema.flexible)


def of_record(key: int, **edits: Any) -> Callable[[Declared], Declared]:
    return lambda have: have._replace(records={**have.records, key: edited(have.records[key], **edits)})


def of_response(key: int, **edits: Any) -> Callable[[Declared], Declared]:
    def edit(have: Declared) -> Declared:
        api = have.apis[key]
        return have._replace(apis={**have.apis, key: api._replace(response=edited(api.response, **edits))})

    return edit


def of_request(key: int, versions: str) -> Callable[[Declared], Declared]:
    def edit(have: Declared) -> Declared:
        api = have.apis[key]
        return have._replace(apis={**have.apis, key: api._replace(request=edited(api.request, versions=versions))})

    return edit


TAKEN_AWAY: dict[str, tuple[Callable[[Declared], Declared], str, str]] = {
    "a record type": (
        lambda have: have._replace(records=without(have.records, 29)),
        "record", "UnregisterControllerRecord (api key 29) is not declared",
    ),
    "a record's version": (
        of_record(5, versions="0-1"), "record", "PartitionChangeRecord (api key 5): version 2 is not declared",
    ),
    "a record's field": (
        of_record(27, line="zkMigrationReady"),
        "record",
        "RegisterControllerRecord (api key 27): version 0: the field zkMigrationReady (bool) is not declared",
    ),
    "a record's tagged field": (
        of_record(0, line="cordonedLogDirs"),
        "record",
        "RegisterBrokerRecord (api key 0): version 4: the field cordonedLogDirs ([]uuid) is not declared",
    ),
    "a control record": (
        lambda have: have._replace(control=without(have.control, "VotersRecord")),
        "control record", "VotersRecord is not declared",
    ),
    "an API": (
        lambda have: have._replace(api_names=without(have.api_names, 94)),
        "API", "UnregisterController (API 94) has no name",
    ),
    "a message's version": (of_request(18, "0-4"), "message", "ApiVersions: version 5 is not declared"),
    "a message's field": (
        of_response(60, line="isFenced"),
        "message", "DescribeClusterResponse: version 2: the field brokers.isFenced (bool) is not declared",
    ),
    "an error code": (
        lambda have: have._replace(errors=without(have.errors, 136)),
        "error code", "136 CONTROLLER_ID_NOT_REGISTERED has no name",
    ),
    "a config key": (
        lambda have: but_for(have, "known_keys", "TOPIC", "errors.deadletterqueue.group.enable"),
        "config key", "TOPIC errors.deadletterqueue.group.enable is not known",
    ),
    "a password": (
        lambda have: but_for(have, "secret_keys", "BROKER", "ssl.key.password"),
        "config key", "BROKER ssl.key.password is a password",
    ),
    "a config's type": (
        lambda have: but_for(have, "config_types", "BROKER", "max.decompressed.message.bytes"),
        "config type", "BROKER max.decompressed.message.bytes has none",
    ),
    "a client's property": (
        lambda have: have._replace(client_key=lambda key: key != "metadata.cluster.check.enable"),
        "client property", "metadata.cluster.check.enable is not known",
    ),
    "a metadata.version": (
        lambda have: have._replace(version_names=without(have.version_names, 34)),
        "metadata.version", "34 (4.5-IV0) has no name",
    ),
    "that a level brought metadata": (
        lambda have: have._replace(changed=set(have.changed) - {33}),
        "metadata.version", "33 (4.4-IV2) brought records or fields",
    ),
    "the newest metadata.version": (
        lambda have: have._replace(latest=30),
        "metadata.version", "the newest for production is 33, not 30",
    ),
    "a level of another feature": (
        lambda have: have._replace(
            levels={**have.levels, "share.version": [one for one in have.levels["share.version"] if one.level != 2]}
        ),
        "feature level", "share.version 2 is not declared",
    ),
    "what servers support": (
        lambda have: have._replace(supported=without(have.supported, "4.4")),
        "supported features",
        "4.4 is not in the table: eligible.leader.replicas.version 0-1 group.version 0-1 kraft.version 0-1"
        " metadata.version 7-33 share.version 0-2 streams.version 0-1 transaction.version 0-2",
    ),
    "a release": (
        lambda have: have._replace(offers=[one for one in have.offers if one.release != "4.4"]),
        "release", "4.4 is not in the table of brokers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("thing", TAKEN_AWAY)
def test_what_is_taken_away_is_named(thing: str) -> None:
    jars.require(RELEASE)
    take, kind, what = TAKEN_AWAY[thing]
    gaps = compare(take(declared()), RELEASE)
    assert (kind, what) in {gap[:2] for gap in gaps}
    assert {gap.kind for gap in gaps} == {kind}


def test_what_only_a_later_release_has_is_not_wrong_for_an_older_one() -> None:
    jars.require("4.3.1", RELEASE)
    have = declared()
    more = have._replace(
        records={**have.records, 30: Schema("ClusterIdRecord", "0", "  clusterId  string")},
        api_names={**have.api_names, 95: "Later"},
        errors={**have.errors, 137: ("LATER", False)},
    )
    assert compare(more, "4.3.1") == []
    wrong = compare(more, RELEASE)
    assert all(gap.is_wrong for gap in wrong)
    assert [gap.what.partition(" is declared")[0] for gap in wrong] == [
        "ClusterIdRecord (api key 30)", "Later (API 95)", "137 LATER",
    ]  # fmt: skip


def test_what_is_missing_is_printed_by_kind_with_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    jars.require(RELEASE)
    have = declared()
    some = have._replace(records=without(have.records, 29), errors=without(have.errors, 134))
    assert take_up.main([RELEASE], some) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"Kafka {RELEASE}: 2 missing, 0 wrong",
        "",
        "record  (kshell/metadata/families/: a function decorated with @record)",
        "  missing  UnregisterControllerRecord (api key 29) is not declared",
        "",
        "error code  (kshell/protocol/names.py)",
        "  missing  134 GROUP_DELETION_FAILED has no name",
    ]


def test_a_release_whose_classes_cannot_be_read_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    jars.require(RELEASE)

    def fail(release: str, program: str) -> list[list[str]]:
        raise RuntimeError(f"{program} ended with 1:\nNoSuchMethodException")

    monkeypatch.setattr(comparison, "rows", fail)
    gaps = compare(declared(), RELEASE)
    assert ("comparison", "config_key_names cannot be compared: ConfigKeys ended with 1:") in {gap[:2] for gap in gaps}


@pytest.mark.parametrize("arguments", [[], ["4.4"], ["4.4.0", "4.3.1"], ["--help"]])
def test_a_line_without_one_release_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert take_up.main(arguments) == 2
    assert "./dev kafka VERSION" in capsys.readouterr().err
