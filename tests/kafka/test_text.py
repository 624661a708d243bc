"""The comparer reads every line that Kafka prints, and notices every difference."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import text

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = sorted(FIXTURES.rglob("expected-*.tsv"))


def lines(expected: text.Expected) -> list[str]:
    """Print an image as kshell would."""
    return [json.dumps({"path": path, "type": "?", "value": value}) for path, value in expected.leaves.items()]


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: "-".join(path.relative_to(FIXTURES).parts))
def test_every_line_of_every_fixture_parses(path: Path) -> None:
    raw = path.read_text("utf-8")
    expected = text.read(raw)
    rows = [line for line in raw.split("\n") if line and not line.startswith("#")]
    assert len(expected.leaves) + len(expected.empty) == len(rows)
    assert expected.last_offset > 0
    assert text.compare(expected, lines(expected)) == []


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/image/clientQuotas/clientId(app/1)_user(bob)/request_percentage",
         "/image/clientQuotas/clientId(app%2F1)_user(bob)/request_percentage"),
        ("/image/clientQuotas/clientId(a \\(b\\) \\\\ 100%)/request_percentage",
         "/image/clientQuotas/clientId(a %28b%29 \\ 100%25)/request_percentage"),
        ("/image/clientQuotas/user(<default>)/request_percentage",
         "/image/clientQuotas/user(%3Cdefault>)/request_percentage"),
        ("/image/clientQuotas/ip(10.1.2.3)/connection_creation_rate",
         "/image/clientQuotas/ip(10.1.2.3)/connection_creation_rate"),
    ],
)  # fmt: skip
def test_quota_paths(path: str, ours: str) -> None:
    assert text.leaf(path, "1.048576E7") == (ours, 10485760.0)


def test_names_with_slashes() -> None:
    assert text.leaf("/image/configs/GROUP:a/b/consumer.session.timeout.ms", "1")[0] == (
        "/image/configs/GROUP:a%2Fb/consumer.session.timeout.ms"
    )
    assert text.leaf(
        "/image/scram/SCRAM-SHA-256/a/b", "ScramCredentialData(salt=, storedKey=, serverKey=0a, iterations=1)"
    ) == (
        "/image/scram/SCRAM-SHA-256/a%2Fb",
        {"salt": "", "storedKey": "", "serverKey": "0a", "iterations": 1},
    )


def test_a_broker() -> None:
    printed = (
        "BrokerRegistration(id=1, epoch=2, incarnationId=AAAAAAAAAAAAAAAAAAAAAQ, listeners=["
        "Endpoint(listenerName='A B', securityProtocol=SSL, host='h', port=1), "
        "Endpoint(listenerName='C', securityProtocol=PLAINTEXT, host='::1', port=2)], "
        "supportedFeatures={kraft.version: 0-1, one: 1, zero: 0, all: 1+}, rack=Optional[r], x], fenced=true, "
        "inControlledShutdown=false, isMigratingZkBroker=false, directories=[AAAAAAAAAAAAAAAAAAAAAQ], "
        "cordonedDirectories=null)"
    )
    assert text.leaf("/image/cluster/brokers/1", printed)[1] == {
        "id": 1, "epoch": 2, "incarnationId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "listeners": [{"name": "A B", "host": "h", "port": 1, "securityProtocol": "SSL"},
                      {"name": "C", "host": "::1", "port": 2, "securityProtocol": "PLAINTEXT"}],
        "supportedFeatures": {"kraft.version": {"min": 0, "max": 1}, "one": {"min": 1, "max": 1},
                              "zero": {"min": 0, "max": 0}, "all": {"min": 1, "max": 32767}},
        "rack": "r], x", "fenced": True, "inControlledShutdown": False, "isMigratingZkBroker": False,
        "directories": ["AAAAAAAAAAAAAAAAAAAAAQ"], "cordonedDirectories": None,
    }  # fmt: skip


def test_a_token() -> None:
    printed = (
        "DelegationTokenDatatokenId=id(owner=User:a b, c(tokenRequester=User:q(renewers=User:a b, c User:q, "
        "issueTimestamp=1, maxTimestamp=2), expiryTimestamp=3"
    )
    assert text.leaf("/image/delegationToken/id", printed)[1] == {
        "tokenId": "id", "owner": "User:a b, c", "tokenRequester": "User:q", "renewers": ["User:a b, c", "User:q"],
        "issueTimestamp": 1, "maxTimestamp": 2, "expiryTimestamp": 3,
    }  # fmt: skip


def test_an_acl_with_commas() -> None:
    printed = (
        "StandardAcl[resourceType=TOPIC, resourceName=a, patternType=x, patternType=LITERAL, principal=User:CN=a, O=b, "
        "host=*, operation=READ, permissionType=DENY]"
    )
    acl = text.leaf("/image/acls/byId/AAAAAAAAAAAAAAAAAAAAAQ", printed)[1]
    assert (acl["resourceName"], acl["patternType"]) == ("a, patternType=x", "LITERAL")
    assert (acl["principal"], acl["host"]) == ("User:CN=a, O=b", "*")


@pytest.mark.parametrize(
    "line", ["/image/unknown/x\t1", "/image/producerIds/nextProducerId\tx", "/image/acls/byId/x\tAcl"]
)
def test_what_it_cannot_read_is_an_error(line: str) -> None:
    with pytest.raises(ValueError):
        text.read(line)


def test_differences_are_seen() -> None:
    raw = (
        "/image/producerIds/nextProducerId\t1000\n/image/configs/BROKER/a\tx\\\\y\\nz\n/image/delegationToken/\t\n"
        "#lastOffset\t7\n"
    )
    expected = text.read(raw)
    assert expected.leaves["/image/configs/BROKER/a"] == "x\\y\nz"
    assert expected.empty == {"/image/delegationToken/"}

    def differences(**changes: Any) -> list[str]:
        ours = copy.deepcopy(expected)
        ours.leaves.update(changes.get("leaves", {}))
        for path in changes.get("without", ()):
            del ours.leaves[path]
        return text.compare(expected, lines(ours))

    assert differences() == []
    assert differences(leaves={"/image/provenance": {"offset": 7}, "/image/clientQuotas/user(<default>)/k": 1}) == []
    assert len(differences(leaves={"/image/provenance": {"offset": 8}})) == 1
    assert len(differences(leaves={"/image/provenance/offset": 8})) == 1
    assert len(differences(leaves={"/image/producerIds/nextProducerId": 1001})) == 1
    assert len(differences(leaves={"/image/producerIds/nextProducerId": "1000"})) == 1
    assert len(differences(leaves={"/image/topics/byName/x/id": "x"})) == 1
    assert len(differences(without=["/image/configs/BROKER/a"])) == 1
    assert len(text.compare(expected, lines(expected) * 2)) == 2


def test_true_is_not_one() -> None:
    assert not text.same({"a": [True]}, {"a": [1]})
    assert text.same({"a": [1.0]}, {"a": [1]})
    assert not text.same([1], [1, 2])
    assert not text.same({"a": 1}, {"a": 1, "b": 2})
