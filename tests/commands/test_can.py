"""can: decisions by rule, the words of the line, and what the answer leaves open."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.completion import complete
from kshell.engine.session import Session
from kshell.errors import SourceError, UsageError
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from tests import builders
from tests.builders import uuid, value
from tests.commands.healthy import acl, broker
from tests.commands.shell import opened, run, sections
from tests.server import Quorum, faults, settings

DENY = {"permissionType": 2}
READ, WRITE, ALTER, DESCRIBE, ALL, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 4, 7, 8, 2, 10, 11


def asked(directory: Path, line: str, *acls: bytes) -> dict[str, Any]:
    """The answer to a question under these ACLs; its exit code says the same."""
    builders.write_log(directory, builders.batch(acls or [builders.value("NO_OP")]))
    session = opened(directory)
    result = run(session, line)
    told: dict[str, Any] = sections(session, line)[""]
    assert result.exit_code == (0 if told["allowed"] else 1)
    return told


def test_an_entry_that_allows(tmp_path: Path) -> None:
    told = asked(tmp_path, "can User:alice READ TOPIC:orders", acl(1))
    assert list(told) == [
        "allowed", "reason", "principal", "operation", "resource", "host", "rule", "aclId", "acl",
    ]  # fmt: skip
    assert (told["allowed"], told["rule"], told["aclId"]) == (True, "acl", str(uuid(1)))
    assert told["reason"] == f"ACL {uuid(1)} allows User:alice READ on TOPIC:orders (LITERAL) from any host"
    assert told["acl"]["resourceName"] == "orders"


@pytest.mark.parametrize(
    ("line", "more", "rule"),
    [
        ("can User:bob READ TOPIC:orders", {}, "default"),
        ("can User:alice WRITE TOPIC:orders", {}, "default"),
        ("can User:alice READ GROUP:orders", {}, "noAcl"),
        ("can User:alice READ TOPIC:orders-eu", {}, "noAcl"),
        ("can User:alice READ TOPIC:ord", {"patternType": 4}, "noAcl"),
        ("can User:alice READ TOPIC:orders", DENY, "acl"),
        ("can User:alice READ TOPIC:orders", {"host": "10.0.0.1"}, "default"),
        ("can User:alice READ TOPIC:orders --host 10.0.0.2", {"host": "10.0.0.1"}, "default"),
        ("can User:alice DESCRIBE TOPIC:orders", {"operation": READ, **DENY}, "default"),
        ("can User:alice DESCRIBE_CONFIGS TOPIC:orders", {"operation": DESCRIBE}, "default"),
        ("can User:alice READ TOPIC:*orders", {"resourceName": "*"}, "noAcl"),
    ],
)
def test_denied(line: str, more: dict[str, Any], rule: str, tmp_path: Path) -> None:
    told = asked(tmp_path, line, acl(1, **more))
    assert (told["allowed"], told["rule"]) == (False, rule)


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("can User:alice READ TOPIC:orders-eu", {"patternType": 4}),
        ("can User:alice READ TOPIC:orders", {"resourceName": "*"}),
        ("can User:anybody READ TOPIC:orders", {"principal": "User:*"}),
        ("can Group:anybody READ TOPIC:orders", {"principal": "User:*"}),
        ("can User:alice CREATE TOPIC:orders", {"operation": ALL}),
        ("can User:alice DESCRIBE TOPIC:orders", {"operation": WRITE}),
        ("can User:alice DESCRIBE TOPIC:orders", {"operation": ALTER}),
        ("can User:alice describe-configs topic:orders", {"operation": ALTER_CONFIGS}),
        ("can User:alice READ TOPIC:orders --host 10.0.0.1", {"host": "10.0.0.1"}),
        ("can User:alice READ TOPIC:orders --host ::1", {"host": "0:0:0:0:0:0:0:1"}),
        ("can User:alice READ TOPIC:orders --host ::ffff:10.0.0.1", {"host": "10.0.0.1"}),
        ("can User:alice ALTER CLUSTER", {"resourceType": 4, "resourceName": "kafka-cluster", "operation": ALTER}),
    ],
)
def test_allowed(line: str, more: dict[str, Any], tmp_path: Path) -> None:
    assert asked(tmp_path, line, acl(1, **more))["allowed"] is True


def test_deny_goes_before_allow(tmp_path: Path) -> None:
    denying = acl(2, resourceName="*", principal="User:*", operation=ALL, **DENY)
    told = asked(tmp_path, "can User:alice READ TOPIC:orders", acl(1), denying)
    assert (told["allowed"], told["aclId"]) == (False, str(uuid(2)))


RANGE = {"host": "10.1.0.0/16"}


@pytest.mark.parametrize(
    ("host", "address", "allowed"),
    [
        ("10.1.0.0/16", "10.1.2.3", True),
        ("10.1.0.0/16", "10.2.0.0", False),
        ("10.1.2.3/16", "10.1.255.255", True),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "fe80::1", False),
        ("fe80::/10", "fe80::1%2", True),
        ("::/0", "10.1.2.3", False),
        ("0.0.0.0/0", "::ffff:10.1.2.3", True),
        ("10.1.0.0/33", "10.1.0.0", False),
    ],
)
def test_a_range_of_hosts(host: str, address: str, allowed: bool, tmp_path: Path) -> None:
    line = f"can User:alice READ TOPIC:orders --host {address}"
    assert asked(tmp_path, line, acl(1, host=host))["allowed"] is allowed


def test_a_range_that_is_denied_goes_before_what_is_allowed(tmp_path: Path) -> None:
    line = "can User:alice READ TOPIC:orders --host 10.1.2.3"
    told = asked(tmp_path, line, acl(1), acl(2, **RANGE, **DENY))
    assert (told["allowed"], told["aclId"]) == (False, str(uuid(2)))
    assert told["reason"].endswith("on TOPIC:orders (LITERAL) from hosts 10.1.0.0/16")


def test_a_link_local_address_keeps_its_zone(tmp_path: Path) -> None:
    """Brokers compare ``getHostAddress``, which ends with it."""
    line = "can User:alice READ TOPIC:orders --host fe80::1%2"
    assert asked(tmp_path, line, acl(1, host="fe80:0:0:0:0:0:0:1"))["allowed"] is False
    told = asked(tmp_path, line, acl(1, host="fe80:0:0:0:0:0:0:1%2"))
    assert (told["allowed"], told["host"]) == (True, "fe80:0:0:0:0:0:0:1%2")


def test_brokers_before_4_4_compare_the_text_of_a_range(tmp_path: Path) -> None:
    line = "can User:alice READ TOPIC:orders --host 10.1.2.3 --super-user User:root"
    level = partial(value, "FEATURE_LEVEL")
    below, at = level(name="metadata.version", featureLevel=31), level(name="metadata.version", featureLevel=32)
    entries = [acl(1), acl(2, **RANGE, **DENY)]
    new = {"features": [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 33}]}

    def answer(*records: bytes) -> tuple[bool, list[str]]:
        builders.write_log(tmp_path, builders.batch([*records, *entries]))
        session = opened(tmp_path)
        return run(session, line).exit_code == 0, session.remarks

    assert answer(at) == (False, [])
    said = f"denied: ACL {uuid(2)} denies User:alice READ on TOPIC:orders (LITERAL) from hosts 10.1.0.0/16"
    before = f"before Kafka 4.4 brokers take no host of an ACL for a range; after an upgrade it will be {said}"
    assert answer(below) == (True, [before])
    assert answer(below, broker(1), broker(2)) == (True, [before])
    assert answer(below, broker(1, **new), broker(2, **new)) == (False, [])
    some = f"not at broker 2, of Kafka 4.4 or later, where hosts of ACLs may be ranges: {said}"
    assert answer(below, broker(1), broker(2, **new)) == (True, [some])


def test_a_question_without_a_host_is_told_of_ranges(tmp_path: Path) -> None:
    hosts = ["10.0.0.1", "10.1.0.0/16", "10.2.0.0/16", "fd00::/8", "::/0", "10.0.0.0/99"]
    builders.write_log(tmp_path, builders.batch([acl(number, host=host) for number, host in enumerate(hosts)]))
    session = opened(tmp_path)
    assert run(session, "can User:alice READ TOPIC:orders").exit_code == 1
    assert session.remarks[:2] == [
        "there are ACLs for this from single hosts: --host 10.0.0.1",
        "there are ACLs for this from ranges of hosts, 10.1.0.0/16, 10.2.0.0/16, ::/0 and 1 more: --host names"
        " an address",
    ]


def test_what_servers_properties_say(tmp_path: Path) -> None:
    told = asked(tmp_path, "can User:root READ TOPIC:orders --super-user User:a --super-user User:root", acl(1, **DENY))
    assert (told["rule"], told["reason"]) == ("superUser", "a super user may do anything")
    line = "can User:root READ TOPIC:orders --super-user 'User:CN=a,O=b; User:root;'"  # as server.properties has them
    assert asked(tmp_path, line, acl(1, **DENY))["rule"] == "superUser"
    for resource, allowed in (("TOPIC:orders", False), ("TOPIC:other", True)):
        told = asked(tmp_path, f"can User:bob READ {resource} --allow-if-no-acl", acl(1))
        assert told["allowed"] is allowed
    assert "allow.everyone.if.no.acl.found" in told["reason"]


def test_what_the_answer_leaves_open(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.batch([acl(1, host="10.0.0.1"), acl(2, host="10.0.0.2", **DENY)]))
    session = opened(tmp_path)
    run(session, "can User:alice READ TOPIC:orders")
    assert session.remarks[0].endswith("--host 10.0.0.1 or --host 10.0.0.2")
    assert "super.users" in session.remarks[1]
    run(session, "can User:alice READ TOPIC:orders --host 10.0.0.1")
    assert session.remarks == []
    run(session, "can User:bob READ TOPIC:orders --super-user User:root")
    assert session.remarks == [
        "no ACL or SCRAM credential names User:bob", "no topic orders in this state",
    ]  # fmt: skip


def test_a_denial_does_not_concern_super_users(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.batch([acl(1, **DENY)]))
    session = opened(tmp_path)
    assert run(session, "can User:alice READ TOPIC:orders").exit_code == 1
    assert session.remarks[0] == (
        "no ACL denies a super user: super.users is not in the log, --super-user says who it has"
    )
    assert run(session, "can User:alice READ TOPIC:orders --super-user User:root").exit_code == 1
    assert not any("super" in remark for remark in session.remarks)
    assert run(session, "can User:alice READ TOPIC:orders --super-user User:alice").exit_code == 0


def test_a_name_that_nothing_has_is_said(sample: Session) -> None:
    assert run(sample, "can user:svc-payments READ topic:payments.v2").exit_code == 1
    assert "no ACL or SCRAM credential names user:svc-payments: did you mean User:svc-payments?" in sample.remarks
    assert run(sample, "can User:svc-payments READ TOPIC:paymnts.v2").exit_code == 1
    assert sample.remarks[-1].startswith("no topic paymnts.v2 in this state: did you mean payments.v2")
    assert run(sample, "can User:intern READ TOPIC:customer-profiles").exit_code == 1
    assert not any("no topic" in remark or "names User" in remark for remark in sample.remarks)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("can alice READ TOPIC:orders", "User:alice"),
        ("can User: READ TOPIC:orders", "User:alice"),
        ("can User:alice REED TOPIC:orders", "READ"),
        ("can User:alice ANY TOPIC:orders", "operations:"),
        ("can User:alice READ orders", "TOPIC:orders"),
        ("can User:alice READ TOPIC:", "TOPIC:NAME"),
        ("can User:alice READ CLUSTER:other", ""),
        ("can User:alice READ TOPIC:orders --host web-1", "addresses"),
        ("can User:alice READ TOPIC:orders --host 10.1.0.0/16", "one of the range"),
        ("can User:alice READ TOPIC:orders --super-user root", "User:root"),
    ],
)
def test_words_that_name_nothing(line: str, hint: str, sample: Session) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, line)
    assert hint in (raised.value.hint or "")


def test_completion(sample: Session) -> None:
    assert sample.image

    def offered(before: str) -> set[str]:
        return {one.text.strip() for one in complete(sample, before).candidates}

    assert {"User:alice", "User:svc-orders"} <= offered("can User:")
    assert "User:*" not in offered("can User:")
    assert offered("can User:alice DESCRIBE_") == {"DESCRIBE_CONFIGS", "DESCRIBE_TOKENS"}
    assert offered("can User:alice wr") == {"write"}
    assert "TOPIC:customer-profiles" in offered("can User:alice READ TOPIC:cust")
    assert "GROUP:analytics" in offered("can User:alice READ GROUP:")
    assert "10.20.0.7" in offered("can User:alice READ GROUP:analytics --host 10")


class TestBrokers:
    ANSWER = {  # noqa: RUF012
        "throttleTimeMs": 0, "errorCode": 0, "errorMessage": None,
        "resources": [{"resourceType": 2, "resourceName": "orders", "patternType": 3, "acls": [
            {"principal": "User:alice", "host": "*", "operation": 3, "permissionType": 3}]}],
    }  # fmt: skip

    def test_entries_have_no_ids(self) -> None:
        with Quorum(brokers=1) as quorum:
            quorum.bodies["DescribeAcls"] = self.ANSWER
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            told = sections(session, "can User:alice READ TOPIC:orders")[""]
            assert (told["allowed"], told["aclId"]) == (True, "TOPIC,orders,LITERAL,User:alice,*,READ,ALLOW")

    def test_who_may_not_see_them_is_told_so(self) -> None:
        """Not: denied."""
        with Quorum(brokers=1) as quorum:
            quorum.bodies["DescribeAcls"] = self.ANSWER
            quorum.on("DescribeAcls", faults.error(31))
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            with pytest.raises(SourceError) as raised:
                run(session, "can User:alice READ TOPIC:orders")
            assert "DescribeAcls" in raised.value.message


def test_golden(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.batch([acl(1, patternType=4)]))
    session, line = opened(tmp_path), "can User:alice DESCRIBE TOPIC:orders-eu"
    number = str(uuid(1))
    assert "".join(render(run(session, line), "text", width=None)) == (
        "allowed    true\n"
        f"reason     ACL {number} allows User:alice READ on TOPIC:orders (PREFIXED) from any host\n"
        "principal  User:alice\n"
        "operation  DESCRIBE\n"
        "resource   TOPIC:orders-eu\n"
        "host       -\n"
        "rule       acl\n"
        f"aclId      {number}\n"
        "acl\n"
        "  resourceType    TOPIC\n"
        "  resourceName    orders\n"
        "  patternType     PREFIXED\n"
        "  principal       User:alice\n"
        "  host            *\n"
        "  operation       READ\n"
        "  permissionType  ALLOW\n"
    )
    told = json.loads("".join(render(run(session, line), "json")))
    assert told | {"acl": None} == {
        "allowed": True,
        "reason": f"ACL {number} allows User:alice READ on TOPIC:orders (PREFIXED) from any host",
        "principal": "User:alice",
        "operation": "DESCRIBE",
        "resource": "TOPIC:orders-eu",
        "host": None,
        "rule": "acl",
        "aclId": number,
        "acl": None,
    }
    assert "".join(render(run(session, line), "tsv")).splitlines()[:3] == [
        "section\tkey\tvalue",
        "\tallowed\ttrue",
        f"\treason\tACL {number} allows User:alice READ on TOPIC:orders (PREFIXED) from any host",
    ]
