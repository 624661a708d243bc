"""``can`` decides as Kafka's own ``StandardAuthorizer``, and names the entry that Kafka's audit log would name."""

from __future__ import annotations

import random
import subprocess

import pytest

from kshell.metadata.authorizer import AccessRequest, Decision, decide, host_range
from kshell.metadata.families.acls import Acl
from kshell.metadata.values import BatchPosition, Entry, Origin
from kshell.protocol.primitives import Uuid
from tests import builders
from tests.kafka import jars

pytestmark = pytest.mark.live

PRINCIPALS = (
    "User:alice", "User:bob", "User:CN=app,O=x", "Group:alice", "User:ümlaut", "User:admin", "user:alice",
    "User:alice:1",
)  # fmt: skip
HOSTS = (
    "10.0.0.1", "10.0.0.2", "127.0.0.1", "10.1.2.3", "10.1.255.255", "10.2.0.0", "0.0.0.0", "255.255.255.255",
    "fe80:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%2", "0:0:0:0:0:0:0:1", "fd00:0:0:0:0:0:0:5", "fd00:1:0:0:0:0:0:5",
    "2001:db8:0:0:0:0:a01:203", "0:0:0:0:0:0:a01:203", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
)  # fmt: skip
RANGES = (
    "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/16", "10.1.2.3/32", "10.0.0.0/31", "0.0.0.0/0", "127.0.0.0/8", "::/0",
    "fe80::/10", "FD00::/8", "fd00::/16", "fd00:0001::/32", "2001:db8::/32", "::10.1.0.0/112", "::1/128", "::/1",
)  # fmt: skip
ODD = (
    "010.001.0.0/16", "10.1.0.0/016", "10.1.0.0/08", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/ 8", " 10.1.0.0/8",
    "10.1/16", "10.1.0.0/", "/8", "/", "256.1.0.0/8", "10.1.0.0/255.255.0.0", "10.0.0.0/8/1", "10.0.0.0/8:1", "*/8",
    "localhost/8", "\uff11\uff10.0.0.0/8", "::/+0", "::/-0", "::/-1", "::/129", "::/00000000000000000000008", "::/ 8",
    "::/1_0", "::/0x8", "::/\u0661\u0660", "::/\U0001d7d8", "::/99999999999999999999", "::ffff:10.1.0.0/112",
    "::ffff:a01:0/112", "::ffff:0:0/96", "::fffe:a01:0/112", "::010.001.2.3/112", "::1.2.3.256/8", "1::1.2.3/8",
    "1:2:3:4:5:6:1.2.3.4/8", "1:2:3:4:5:6:7:1.2.3.4/8", "::0001.02.03.004/8", "[::]/0", "[::1]/128", "[::1/128",
    "fe80::%1/64", "fe80::%01/64", "fe80::%/64", "[fe80::%1]/64", "::%1/0", "10.0.0.0%1/8", "00fd00::/8", "0000fd::/8",
    "::00001/127", "::10000/16", "1:2:3:4:5:6:7::/16", "1:2:3:4:5:6:7:8::/16", ":1/8", "1:/8", ":::/8", "1::2::3/8",
    "g::/8", "::1 /64", " ::1/64", "::1/64/2", "::\u0661/8", "fe80:0:0:0:0:0:0:1%2/8",
)  # fmt: skip
"""Texts of which some are ranges to Java and some are not. Not among them: a zone that names an interface."""
TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
NAMES = (
    "orders", "order", "ord", "o", "orders-eu", "orders-eu-1", "payments", "pay", "p", "zebra", "kafka-cluster",
    "*x", "!", "ördn", "*", "order\U0001f600s", "orders:1", "User:alice",
)  # fmt: skip
OPERATIONS = (
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
)  # fmt: skip
ORIGIN = Origin(0, 0, "ACCESS_CONTROL_ENTRY_RECORD", 0, BatchPosition("test", 0, 0, False))


def entries(random_: random.Random, count: int) -> dict[Uuid, Entry[Acl]]:
    """So many entries, no two the same: literal, prefixed and wildcard ones, two thirds of them allowing.

    A quarter is for ranges of hosts, which releases before 4.4 take for texts.
    """
    made: dict[Acl, Uuid] = {}
    while len(made) < count:
        pattern = random_.choice(("LITERAL", "LITERAL", "PREFIXED"))
        acl = Acl(
            random_.choice(TYPES[:3] if random_.random() < 0.8 else TYPES),
            random_.choice(NAMES) if random_.random() < 0.85 else "*",
            pattern,
            random_.choice((*PRINCIPALS, *["User:*"] * 4)),
            random_.choice((random_.choice(HOSTS), random_.choice(RANGES), "*", "*")),
            random_.choice((*OPERATIONS, *["ALL"] * 6)),
            random_.choice(("ALLOW", "ALLOW", "DENY")),
        )
        made.setdefault(acl, builders.uuid(len(made) + 1))
    return {number: Entry(acl, ORIGIN) for acl, number in made.items()}


def requests(random_: random.Random, count: int) -> list[AccessRequest]:
    """So many questions about the same names, and names that only begin like them."""
    made = []
    for _ in range(count):
        name = random_.choice(NAMES) + random_.choice(("", "", "", "-x", "s"))
        request = AccessRequest(
            random_.choice(PRINCIPALS), random_.choice(OPERATIONS), random_.choice(TYPES), name, random_.choice(HOSTS)
        )
        made.append(request)
    return made


def kafkas(
    release: str, acls: dict[Uuid, Entry[Acl]], asked: list[AccessRequest], supers: str, allow: bool
) -> list[str]:
    """Kafka's answers, one a question."""
    lines = ["\t".join(("ACL", str(number), *entry.value)) for number, entry in acls.items()]
    lines += ["\t".join(("ASK", one[0], one.host or "", *one[1:4])) for one in asked]
    command = jars.java(jars.classes(release, "Authorize"), "Authorize", supers, str(allow).lower())
    done = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode().splitlines()


def as_kafka(decision: Decision) -> str:
    """A decision as ``Authorize.java`` prints it, but for what super users would have got without their list."""
    rule = str(decision.acl_id) if decision.acl is not None else "DefaultRule"
    return f"{'ALLOWED' if decision.allowed else 'DENIED'}\t{rule}"


@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1", "4.4.0"])
@pytest.mark.parametrize(("count", "allow"), [(1000, False), (200, True), (25, True)])
def test_agrees_with_kafka(release: str, count: int, allow: bool) -> None:
    jars.require(release)
    random_ = random.Random(count + allow)
    acls, asked = entries(random_, count), requests(random_, 2000)
    theirs = kafkas(release, acls, asked, "User:admin;User:CN=app,O=x", allow)
    supers = {"User:admin", "User:CN=app,O=x"}
    ranges = release == "4.4.0"
    mine = [decide(acls, one, super_users=supers, allow_if_no_acl=allow, ranges=ranges) for one in asked]
    assert len(theirs) == len(asked)
    differing = []
    for one, their, my in zip(asked, theirs, mine, strict=True):
        if one.principal in supers:
            assert my.rule == "superUser" and their.startswith("ALLOWED\t") and my.allowed
        elif their != as_kafka(my):
            differing.append((one, their, my))
    assert not differing
    # A random set that only ever denied, or never did, would prove nothing.
    told = [my.rule + str(my.allowed) for my in mine]
    assert len(set(told)) >= 4, set(told)
    by_range = [my for my in mine if my.acl is not None and host_range(my.acl.host)]
    assert len(by_range) >= (20 if ranges and count >= 200 else 0)
    assert ranges or not by_range


@pytest.mark.parametrize(("release", "ranges"), [("4.3.1", False), ("4.4.0", True)])
def test_takes_the_texts_for_ranges_that_kafka_takes(release: str, ranges: bool) -> None:
    """Each text is the host of one entry, on a topic of its own; every address asks for every topic."""
    jars.require(release)
    texts = [*RANGES, *ODD]
    acls = {
        builders.uuid(number): Entry(Acl("TOPIC", f"t{number}", "LITERAL", "User:a", text, "READ", "ALLOW"), ORIGIN)
        for number, text in enumerate(texts, start=1)
    }
    asked = [AccessRequest("User:a", "READ", "TOPIC", f"t{number}", host) for number in range(1, len(texts) + 1)
             for host in HOSTS]  # fmt: skip
    theirs = kafkas(release, acls, asked, "", False)
    mine = [as_kafka(decide(acls, request, ranges=ranges)) for request in asked]
    differing = [
        (texts[int(request.resource_name[1:]) - 1], request.host, their, my)
        for request, their, my in zip(asked, theirs, mine, strict=True)
        if their != my
    ]
    assert not differing
    assert any(my.startswith("ALLOWED") for my in mine) is ranges
