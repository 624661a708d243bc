"""``can`` decides as Kafka's own ``StandardAuthorizer``, and names the entry that Kafka's audit log would name."""

from __future__ import annotations

import random
import subprocess

import pytest

from kshell.metadata.authorizer import Decision, Request, decide
from kshell.metadata.families.acls import Acl
from kshell.metadata.values import Entry, Origin, Place
from kshell.protocol.primitives import Uuid
from tests import builders
from tests.kafka import jars

pytestmark = pytest.mark.live

PRINCIPALS = (
    "User:alice", "User:bob", "User:CN=app,O=x", "Group:alice", "User:ümlaut", "User:admin", "user:alice",
    "User:alice:1",
)  # fmt: skip
HOSTS = ("10.0.0.1", "10.0.0.2", "127.0.0.1", "fe80:0:0:0:0:0:0:1")
TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
NAMES = (
    "orders", "order", "ord", "o", "orders-eu", "orders-eu-1", "payments", "pay", "p", "zebra", "kafka-cluster",
    "*x", "!", "ördn", "*", "order\U0001f600s", "orders:1", "User:alice",
)  # fmt: skip
OPERATIONS = (
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
)  # fmt: skip
ORIGIN = Origin(0, 0, "ACCESS_CONTROL_ENTRY_RECORD", 0, Place("test", 0, 0, False))


def entries(random_: random.Random, count: int) -> dict[Uuid, Entry[Acl]]:
    """So many entries, no two the same: literal, prefixed and wildcard ones, two thirds of them allowing."""
    made: dict[Acl, Uuid] = {}
    while len(made) < count:
        pattern = random_.choice(("LITERAL", "LITERAL", "PREFIXED"))
        acl = Acl(
            random_.choice(TYPES[:3] if random_.random() < 0.8 else TYPES),
            random_.choice(NAMES) if random_.random() < 0.85 else "*",
            pattern,
            random_.choice((*PRINCIPALS, "User:*")),
            random_.choice((*HOSTS, "*", "*", "*")),
            random_.choice((*OPERATIONS, "ALL")),
            random_.choice(("ALLOW", "ALLOW", "DENY")),
        )
        made.setdefault(acl, builders.uuid(len(made) + 1))
    return {number: Entry(acl, ORIGIN) for acl, number in made.items()}


def requests(random_: random.Random, count: int) -> list[Request]:
    """So many questions about the same names, and names that only begin like them."""
    made = []
    for _ in range(count):
        name = random_.choice(NAMES) + random_.choice(("", "", "", "-x", "s"))
        request = Request(
            random_.choice(PRINCIPALS), random_.choice(OPERATIONS), random_.choice(TYPES), name, random_.choice(HOSTS)
        )
        made.append(request)
    return made


def kafkas(release: str, acls: dict[Uuid, Entry[Acl]], asked: list[Request], supers: str, allow: bool) -> list[str]:
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


@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1"])
@pytest.mark.parametrize(("count", "allow"), [(200, False), (200, True), (25, True)])
def test_agrees_with_kafka(release: str, count: int, allow: bool) -> None:
    jars.require(release)
    random_ = random.Random(count + allow)
    acls, asked = entries(random_, count), requests(random_, 2000)
    theirs = kafkas(release, acls, asked, "User:admin;User:CN=app,O=x", allow)
    supers = {"User:admin", "User:CN=app,O=x"}
    mine = [decide(acls, one, super_users=supers, allow_if_no_acl=allow) for one in asked]
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
