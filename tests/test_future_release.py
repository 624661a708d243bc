"""A release of Kafka that kshell has never heard of: what it has is shown by its numbers, and nothing wrong is said.

The release is made up, "4.9": higher levels of metadata.version and of features, features, records, versions, resource
types, configs, APIs and error codes without a declaration. In a directory, and asked over the wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.client.releases import RELEASES, supported_features
from kshell.engine.session import Session
from kshell.errors import NodeError, UsageError
from kshell.metadata.metadata_version import NEWEST_NAMED
from kshell.metadata.records import record_types
from kshell.protocol.batches import write_batch
from kshell.protocol.names import API_NAMES
from kshell.protocol.primitives import write_uvarint
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import control, value
from tests.commands.healthy import acl, broker, config, controller, write
from tests.commands.shell import lines, opened, rows, run, sections
from tests.commands.shell import value as shown
from tests.server import Quorum, faults, settings
from tests.server.apis import apis

METADATA = "metadata.version"
LEVEL = NEWEST_NAMED + 13
LATER = f"{RELEASES[-1]} or later"
RANGES = {METADATA: (15, LEVEL + 1), "kraft.version": (0, 2), "share.version": (0, 5), "mirror.version": (0, 3)}
FEATURES = [{"name": n, "minSupportedVersion": low, "maxSupportedVersion": high} for n, (low, high) in RANGES.items()]
FINALIZED = {METADATA: LEVEL, "share.version": 4, "mirror.version": 2}
NEW_API, NEW_TYPE, NEW_ERROR, NEW_CONTROL = max(API_NAMES) + 5, max(record_types()) + 5, 200, 17
SECRET = "hunter2"


def unknown_record(api_key: int, version: int, body: bytes) -> bytes:
    return write_uvarint(1) + write_uvarint(api_key) + write_uvarint(version) + body


RECORDS = [
    *(value("FEATURE_LEVEL", name=name, featureLevel=level) for name, level in FINALIZED.items()),
    *(controller(number, features=FEATURES) for number in (11, 12, 13)),
    *(broker(number, features=FEATURES) for number in (1, 2, 3)),
    unknown_record(NEW_TYPE, 0, b"\x07"),
    unknown_record(11, 9, SECRET.encode()),
    config(2, "orders", "mirror.password", SECRET),
    config(99, "somewhere", "any.key", SECRET),
    acl(9, resourceType=17, operation=40, patternType=9),
    value(
        "USER_SCRAM_CREDENTIAL", name="bob", mechanism=7, salt=b"s", storedKey=b"k", serverKey=b"v", iterations=16384
    ),
]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    directory = write(tmp_path / "log", *RECORDS)
    segment = next(directory.glob("**/*.log"))
    end = opened(directory).image.provenance.offset + 1
    newer = control(2, version=0, leaderId=11)[1] or b""
    batch = write_batch([(b"\0\0" + NEW_CONTROL.to_bytes(2, "big"), newer)], base_offset=end, epoch=1, control=True,
                        timestamp=builders.TIME)  # fmt: skip
    with open(segment, "ab") as file:
        file.write(batch)
    return opened(directory)


def mentions_a_release_as_a_fact(text: str) -> bool:
    """Whether the newest known release, or any before it, stands there without "or later"."""
    known = "|".join(map(re.escape, RELEASES))
    return re.search(rf"(?<![\d.])({known})(?![\d.]|-IV| or later)", text) is not None


class TestDirectory:
    def test_status(self, session: Session) -> None:
        versions = sections(session, "status")["versions"]
        assert versions == {
            "metadataVersion": f"unknown level {LEVEL}",
            "kraftVersion": 0,
            "lowestRelease": LATER,
            "highestRelease": LATER,
            "releaseSource": "registered",
        }
        assert not mentions_a_release_as_a_fact("\n".join(lines(session, "status")))

    def test_one_newer_node_in_an_upgrade(self, tmp_path: Path) -> None:
        """The others say what they are; the one that is newer leaves the end open."""
        old = [
            {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
            for name, (low, high) in supported_features()["4.2"].items()
        ]
        nodes = [broker(number, features=old) for number in (1, 2)] + [
            controller(number, features=old) for number in (11, 12, 13)
        ]
        session = opened(write(tmp_path, *nodes, broker(3, features=FEATURES)))
        versions = sections(session, "status")["versions"]
        assert (versions["lowestRelease"], versions["highestRelease"]) == ("4.2", LATER)

    def test_features(self, session: Session) -> None:
        found = {row["feature"]: row for row in rows(session, "features")}
        assert set(found) == {METADATA, "kraft.version", "share.version", "mirror.version"}
        for name, (low, high) in RANGES.items():
            assert (found[name]["minVersion"], found[name]["maxVersion"]) == (low, high)
            assert found[name]["level"] == FINALIZED.get(name, 0)
            assert found[name]["inTheWay"] == []
        assert found[METADATA]["name"] == f"unknown level {LEVEL}"

    def test_the_map_ends_where_knowledge_ends(self, session: Session) -> None:
        known = rows(session, "features map")
        assert max(row["level"] for row in known if row["feature"] == METADATA) == NEWEST_NAMED
        assert [row["release"] for row in known if (row["feature"], row["level"]) == (METADATA, NEWEST_NAMED)] == [None]

    @pytest.mark.parametrize(
        ("question", "possible"),
        [
            # Decided by what the nodes registered and what is finalized: no table is needed.
            (f"--can-upgrade {METADATA}={LEVEL + 2}", False),
            (f"--can-upgrade {METADATA}=33", False),
            ("--can-upgrade share.version=2", False),
            ("--can-upgrade share.version=6", False),
            ("--can-downgrade share.version=5", False),
            (f"--can-downgrade {METADATA}=14", False),
            (f"--can-upgrade {METADATA}={LEVEL}", True),
            ("--can-upgrade share.version=4", True),
            # 32 and 33 are known to have brought records or fields.
            (f"--can-downgrade {METADATA}=31", False),
            # Only the release itself could say.
            (f"--can-upgrade {METADATA}={LEVEL + 1}", None),
            (f"--can-downgrade {METADATA}={LEVEL - 1}", None),
            (f"--can-downgrade {METADATA}=33", None),
            ("--can-upgrade share.version=5", None),
            ("--can-downgrade share.version=3", None),
            ("--can-downgrade share.version=1", None),
            ("--can-upgrade kraft.version=2", None),
            ("--can-upgrade mirror.version=3", None),
            ("--can-downgrade mirror.version=1", None),
            ("--can-downgrade mirror.version=0", None),
            ("--can-downgrade other.version=0", None),
        ],
    )
    def test_verdicts(self, question: str, possible: bool | None, session: Session) -> None:
        result = rows(session, f"features {question}")
        assert [row["possible"] for row in result] == [possible]
        assert possible is True or result[0]["reason"]
        assert run(session, f"features {question}").exit_code == (3 if possible is None else 0 if possible else 1)

    def test_a_release_that_nobody_knows_is_a_usage_error(self, session: Session) -> None:
        for line in ("features --can-upgrade 4.9", "features --can-downgrade 4.9-IV0"):
            with pytest.raises(UsageError, match=r"no release or metadata\.version that is known"):
                run(session, line)

    def test_registrations_and_health(self, session: Session) -> None:
        assert [row["stale"] for row in rows(session, "registrations")] == [False] * 6
        behind = rows(session, "health")
        assert [row["finding"] for row in behind] == ["featureBehind"]
        assert behind[0]["nextStep"].endswith(f" upgrade --feature {METADATA}={LEVEL + 1}")
        assert any("newer than this kshell and not in the image" in note for note in session.notes())
        assert session.problems() == []  # newer is no damage

    def test_info_counts_what_it_cannot_read(self, session: Session) -> None:
        info = sections(session, "info")
        assert info["image"]["metadataVersion"] == f"unknown level {LEVEL}"
        counted = {(row["type"], row["version"]): row["undecoded"] for row in info["records"]}
        assert counted[f"UNKNOWN_{NEW_TYPE}", 0] == 1
        assert counted["USER_SCRAM_CREDENTIAL_RECORD", 9] == 1

    def test_dump_shows_numbers_and_bytes_but_no_secrets(self, session: Session) -> None:
        printed = lines(session, "dump")
        record = next(line for line in printed if f"UNKNOWN_{NEW_TYPE} v0" in line)
        assert json.loads(record[record.index("{") :]) == {
            "undecoded": unknown_record(NEW_TYPE, 0, b"\x07").hex(),
            "reason": f"record type {NEW_TYPE} is not known",
        }
        assert any(f"UNKNOWN_CONTROL_{NEW_CONTROL}" in line for line in printed)
        newer = next(line for line in printed if "USER_SCRAM_CREDENTIAL_RECORD v9" in line)
        assert '"undecoded":"[redacted]"' in newer
        text = "\n".join(printed)
        assert SECRET not in text and SECRET.encode().hex() not in text

    def test_cat(self, session: Session) -> None:
        assert shown(session, "cat /image/features/metadataVersion") == f"unknown level {LEVEL}"
        text = "\n".join(line for path in ("features", "acls", "configs", "scram") for line in _cat(session, path))
        for word in ("mirror.version", "UNKNOWN(17)", "UNKNOWN(40)", "UNKNOWN(9)", "UNKNOWN(7)", "[redacted]"):
            assert word in text
        assert SECRET not in text


def _cat(session: Session, family: str) -> list[str]:
    return lines(session, f"cat /image/{family}")


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    """Two controllers and two brokers that offer three versions more of each API, and APIs without a name."""
    with Quorum(controllers=2, brokers=2) as made:
        for node in made.nodes:
            # Fetch begins later, as a release may drop what is old.
            node.ranges = {key: (low, high + 3) for key, (low, high) in node.ranges.items()}
            node.ranges[1] = (node.ranges[1][0] + 3, node.ranges[1][1])
            node.ranges |= {NEW_API: (0, 2), NEW_API + 1: (1, 1)}
        made.supported = {name: (low, high) for name, (low, high) in RANGES.items()}
        made.finalized = dict(FINALIZED)
        made.append(*(controller(node.id, features=FEATURES) for node in made.controllers))
        made.append(*(value("FEATURE_LEVEL", name=name, featureLevel=level) for name, level in FINALIZED.items()))
        made.append(*(_registration(node) for node in made.brokers))
        yield made


def _registration(node: Any) -> bytes:
    point = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": node.port, "securityProtocol": 0}
    return value("REGISTER_BROKER", 1, brokerId=node.id, incarnationId=builders.uuid(node.id), endPoints=[point],
                 rack=None, fenced=False, brokerEpoch=node.id, features=FEATURES)  # fmt: skip


def at_controllers(quorum: Quorum) -> Session:
    return Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))


def at_brokers(quorum: Quorum) -> Session:
    return Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))


class TestLive:
    @pytest.mark.parametrize("at", [at_controllers, at_brokers])
    def test_status(self, at: Any, quorum: Quorum) -> None:
        session = at(quorum)
        versions = sections(session, "status")["versions"]
        assert (versions["lowestRelease"], versions["highestRelease"]) == (LATER, LATER)
        assert versions["releaseSource"] == "inferred"
        assert not mentions_a_release_as_a_fact("\n".join(lines(session, "status")))

    def test_software(self, quorum: Quorum) -> None:
        for row in rows(at_brokers(quorum), "brokers --software"):
            assert (row["softwareVersion"], row["softwareSource"]) == (LATER, "inferred")
            assert (row["lowestSoftwareVersion"], row["highestSoftwareVersion"]) == (LATER, LATER)
            assert f"(after {RELEASES[-1]})" in row["evidence"][0]

    def test_api_versions(self, quorum: Quorum) -> None:
        found = {row["apiKey"]: row for row in rows(at_controllers(quorum), "api-versions --all")}
        assert found[NEW_API]["apiName"] == f"api {NEW_API}"
        assert (found[NEW_API]["minVersion"], found[NEW_API]["maxVersion"]) == (0, 2)
        assert found[18]["maxVersion"] == quorum.leader.ranges[18][1]

    def test_requests_have_versions_that_kshell_knows(self, quorum: Quorum) -> None:
        assert at_controllers(quorum).image["controllers"].keys() == {1, 2}
        assert {asked.api for asked in quorum.asked} >= {"ApiVersions", "Fetch"}
        for asked in quorum.asked:
            api = next(api for api in apis().values() if api.name == asked.api)
            assert asked.version == api.versions.high

    def test_compat(self, quorum: Quorum) -> None:
        """What only needs some version or more is usable; nothing is refused because it is newer."""
        found = {row["feature"]: row for row in rows(at_controllers(quorum), "compat")}
        assert found["share-groups"]["usable"] is True
        assert found["acl-host-ranges"]["usable"] is True
        assert found["unregister-controller"]["usable"] is True
        # What is refused is an API that such a server does not offer, or a level that is not finalized.
        for row in found.values():
            assert row["usable"] is not False or re.search(r" is not offered, | is \d+, \d+ is needed", row["reason"])

    def test_features_and_verdicts(self, quorum: Quorum) -> None:
        session = at_controllers(quorum)
        found = {row["feature"]: row for row in rows(session, "features")}
        assert (found[METADATA]["level"], found[METADATA]["maxVersion"]) == (LEVEL, LEVEL + 1)
        assert [row["possible"] for row in rows(session, f"features --can-downgrade {METADATA}=33")] == [None]
        with pytest.raises(UsageError):
            run(session, "features --can-upgrade 4.9")

    def test_an_error_code_without_a_name_is_a_number(self, quorum: Quorum) -> None:
        quorum.on("DescribeQuorum", faults.error(NEW_ERROR))
        with pytest.raises(NodeError, match=f"error code {NEW_ERROR}"):
            run(at_brokers(quorum), "quorum")
