"""``can``: whether a principal may do something, and by which rule, as Kafka's ``StandardAuthorizer`` decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Section
from kshell.errors import EXIT_FINDING, EXIT_OK, SourceError, UsageError, did_you_mean
from kshell.metadata.authorizer import (
    ACL,
    DEFAULT,
    NO_ACL,
    RANGES_FROM,
    SUPER_USER,
    AccessRequest,
    Decision,
    decide,
    host_range,
    other_hosts,
)
from kshell.metadata.families.acls import OPERATIONS, RESOURCE_TYPES
from kshell.metadata.families.topics import NAMES
from kshell.metadata.feature_levels import METADATA_VERSION
from kshell.metadata.image import Image
from kshell.metadata.partial import MISSING
from kshell.metadata.values import plain
from kshell.tables.existing import PRINCIPAL, TOPIC, NameMeant, principals, unknown_names
from kshell.wording import first_of

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

_CLUSTER = "kafka-cluster"
"""The name of the only resource of the type CLUSTER."""
_KINDS = tuple(name for code, name in RESOURCE_TYPES.items() if code > 1)
_ABLE = tuple(name for code, name in OPERATIONS.items() if code > 1)
_RULE_SENTENCES = {
    SUPER_USER: "a super user may do anything",
    DEFAULT: "none of the resource's ACLs is for this user, operation and host: denied by default",
}
_NONE = {
    True: "the resource has no ACL, and allow.everyone.if.no.acl.found was given",
    False: "no ACL matches: denied by default",
}


class CanArguments(Arguments):
    """Arguments and options of ``can``."""

    principal: str
    operation: str
    resource: str
    host: str | None
    super_user: list[str] | None
    allow_if_no_acl: bool


def run(session: Session, args: CanArguments) -> Result:
    """Decide. Raises UsageError for an argument that is malformed or unknown, SourceError if ACLs are not reported."""
    request = AccessRequest(
        principal(args.principal), _operation(args.operation), *_resource(args.resource), _host(args.host)
    )
    # As in super.users, one value may be several principals with semicolons between them.
    listed = [name.strip() for text in args.super_user or () for name in text.split(";")]
    supers = [principal(name) for name in listed if name]
    image = session.image
    untold = image[MISSING].get(("acls",))
    if untold is not None:
        raise SourceError(f"/image/acls: {untold}")
    is_by_range, by_range = _range_brokers(image)

    def evaluate(*, ranges: bool) -> Decision:
        return decide(image["acls"], request, super_users=supers, allow_if_no_acl=args.allow_if_no_acl, ranges=ranges)

    decision = evaluate(ranges=is_by_range)
    _remark(session, request, decision, supers)
    _remark_unknown(session, request, decision)
    if not is_by_range and (otherwise := evaluate(ranges=True)) != decision:
        session.remarks.append(_range_remark(otherwise, by_range))
    return Report(
        [Section("", "", _decision_facts(request, decision))], exit_code=EXIT_OK if decision.allowed else EXIT_FINDING
    )


def _decision_facts(request: AccessRequest, decision: Decision) -> JsonObject:
    return {
        "allowed": decision.allowed,
        "reason": _reason(decision),
        "principal": request.principal,
        "operation": request.operation,
        "resource": f"{request.resource_type}:{request.resource_name}",
        "host": request.host,
        "rule": decision.rule,
        "aclId": None if decision.acl_id is None else str(decision.acl_id),
        "acl": None if decision.acl is None else plain(decision.acl),
    }


def _range_brokers(image: Image) -> tuple[bool, list[int]]:
    """(whether all brokers understand hosts of ACLs as ranges, as Kafka 4.4 does; else the ids of those that do).

    Below metadata.version 4.4-IV1, it depends on the features that each broker registered. If no version is known, all
    brokers are taken to understand them.
    """
    version = image["features"].get(METADATA_VERSION)
    if version is None or version.value >= RANGES_FROM:
        return True, []
    registered = {number: entry.value.supported_features for number, entry in sorted(image["brokers"].items())}
    by_range = [
        number
        for number, features in registered.items()
        if isinstance(features, dict) and features.get(METADATA_VERSION, {"max": 0})["max"] >= RANGES_FROM
    ]
    return bool(by_range) and len(by_range) == len(registered), by_range


def _range_remark(otherwise: Decision, by_range: list[int]) -> str:
    """The remark on what brokers decide that understand ranges, if that differs from brokers that compare text."""
    outcome = f"{'allowed' if otherwise.allowed else 'denied'}: {_reason(otherwise)}"
    if by_range:
        listed = f"broker{'s' if len(by_range) > 1 else ''} {', '.join(map(str, by_range))}"
        return f"not at {listed}, of Kafka 4.4 or later, where hosts of ACLs may be ranges: {outcome}"
    return f"before Kafka 4.4 brokers take no host of an ACL for a range; after an upgrade it will be {outcome}"


def _reason(decision: Decision) -> str:
    acl = decision.acl
    if acl is None:
        return _NONE[decision.allowed] if decision.rule == NO_ACL else _RULE_SENTENCES[decision.rule]
    verb = "allows" if acl.permission_type == "ALLOW" else "denies"
    about = f"{acl.resource_type}:{acl.resource_name} ({acl.pattern_type})"
    host = "any host" if acl.host == "*" else f"{'hosts' if host_range(acl.host) else 'host'} {acl.host}"
    return f"ACL {decision.acl_id} {verb} {acl.principal} {acl.operation} on {about} from {host}"


def _remark(session: Session, request: AccessRequest, decision: Decision, supers: list[str]) -> None:
    """Add remarks on what the answer leaves open: ACLs for single hosts and ranges, and settings of the servers."""
    named = other_hosts(session.image["acls"], request) if request.host is None and decision.rule != SUPER_USER else []
    ranges = [host for host in named if host_range(host)]
    hosts = [host for host in named if "/" not in host]
    if hosts:
        session.remarks.append(f"there are ACLs for this from single hosts: --host {' or --host '.join(hosts[:3])}")
    if ranges:
        session.remarks.append(
            f"there are ACLs for this from ranges of hosts, {first_of(ranges, 3)}: --host names an address"
        )
    if decision.allowed or supers:
        return
    if decision.rule == ACL:
        session.remarks.append(
            "no ACL denies a super user: super.users is not in the log, --super-user says who it has"
        )
    else:
        session.remarks.append(
            "super.users and allow.everyone.if.no.acl.found are not in the log: --super-user and --allow-if-no-acl say"
            " what the servers have"
        )


def _remark_unknown(session: Session, request: AccessRequest, decision: Decision) -> None:
    """Add a remark if the topic does not exist or no one has that name: it may be a typo.

    No remark on a principal if an ACL decides or the answer is yes; none on a topic if the deciding ACL names it.
    """
    named = [] if decision.allowed or decision.rule == ACL else [NameMeant(PRINCIPAL, request.principal)]
    is_named = decision.acl is not None and decision.acl.resource_name == request.resource_name
    if request.resource_type == "TOPIC" and request.resource_name != "*" and not is_named:
        named.append(NameMeant(TOPIC, request.resource_name))
    session.remarks += unknown_names(session.image, named)


def principal(text: str) -> str:
    """Check that the text is a principal such as ``User:alice``, and return it unchanged. Raises UsageError."""
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        example = f"User:{'alice' if colon or not text else text}"
        raise UsageError(f"{text}: not a principal", hint=f"write it as TYPE:NAME, such as {example}")
    return text


def _operation(text: str) -> str:
    name = text.upper().replace("-", "_")
    if name not in _ABLE:
        hint = did_you_mean(name, _ABLE, f"operations: {', '.join(_ABLE)}")
        raise UsageError(f"{text}: no such operation", hint=hint)
    return name


def _resource(text: str) -> tuple[str, str]:
    """Parse ``TOPIC:orders`` into type and name; ``CLUSTER`` needs no name."""
    kind, colon, name = text.partition(":")
    kind = kind.upper().replace("-", "_")
    if kind not in _KINDS:
        example = f"TOPIC:{'orders' if colon or not text else text}"
        hint = f"write it as TYPE:NAME, such as {example}; types: {', '.join(_KINDS)}"
        raise UsageError(f"{text}: not a resource", hint=hint)
    if kind == "CLUSTER":
        if name not in ("", _CLUSTER):
            raise UsageError(f"{text}: the only resource of the type CLUSTER is CLUSTER:{_CLUSTER}")
        name = _CLUSTER
    if not name:
        raise UsageError(f"{text}: the name is missing", hint=f"{kind}:NAME")
    return kind, name


def _host(text: str | None) -> str | None:
    """Normalize an IP address to Java's notation, which brokers compare as text; they do not resolve host names."""
    if text is None:
        return None
    if "/" in text:
        raise UsageError(f"--host: {text} is no IP address", hint="a client has one address: name one of the range")
    import ipaddress  # late: few lines name a host

    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise UsageError(
            f"--host: {text} is no IP address", hint="ACLs are compared with addresses, not names"
        ) from None
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    # As Java writes them, and so as ACLs must: 0:0:0:0:0:0:0:1, fe80:0:0:0:0:0:0:1%2.
    groups = ":".join(f"{int(address) >> shift & 0xFFFF:x}" for shift in range(112, -1, -16))
    return f"{groups}%{address.scope_id}" if address.scope_id else groups


def _principals(session: Session, typed: str) -> Iterable[str]:
    """Complete a principal: those that ACLs name, and users with SCRAM credentials."""
    return sorted(principals(session.image) - {"User:*"})


def _operations(session: Session, typed: str) -> Iterable[str]:
    """Complete an operation, in lower case if the user began so."""
    return [name.lower() for name in _ABLE] if typed.islower() else _ABLE


def _resources(session: Session, typed: str) -> Iterable[str]:
    """Complete a resource: topics, resources that ACLs name, and the types."""
    acls = [entry.value for entry in session.image["acls"].values()]
    named = {f"{acl.resource_type}:{acl.resource_name}" for acl in acls if acl.resource_name != "*"}
    topics = {f"TOPIC:{name}" for name in session.image[NAMES]} if typed.startswith("T") else set()
    return sorted({*named, *topics, *(f"{kind}:" for kind in _KINDS), f"CLUSTER:{_CLUSTER}"})


def _hosts(session: Session, typed: str) -> Iterable[str]:
    """Complete an address: those that ACLs name, without ranges, which have too many addresses to offer."""
    named = {entry.value.host for entry in session.image["acls"].values()}
    return sorted({"127.0.0.1"} | {host for host in named if host != "*" and "/" not in host})


COMMAND = Command(
    name="can",
    task=Task.ACCESS,
    summary="whether a principal may do something with a resource, and which rule says so",
    run=run,
    arguments=CanArguments,
    args=(
        Arg("principal", "who: User:alice", complete=_principals),
        Arg("operation", "the operation: READ, WRITE, DESCRIBE, …", complete=_operations),
        Arg("resource", "the resource: TOPIC:orders, GROUP:g, CLUSTER", complete=_resources),
    ),
    flags=(
        Flag(("--host",), "the IP address of the client", metavar="ADDRESS", complete=_hosts),
        Flag(("--super-user",), "one of the servers' super.users", "PRINCIPAL", repeat=True, complete=_principals),
        Flag(("--allow-if-no-acl",), "the servers have allow.everyone.if.no.acl.found=true"),
    ),
    examples=(
        Example("can User:svc-orders DESCRIBE TOPIC:orders", "one question; WRITE allows DESCRIBE, too"),
        Example("can User:alice READ GROUP:analytics --host 10.20.0.7 -o json", "from one address, for a script"),
        Example("can User:intern READ TOPIC:customer-profiles", "the exit code is the answer, too", 1),
        Example("can User:admin ALTER CLUSTER --super-user User:admin", "with what the servers' properties say"),
    ),
    description=(
        "Decides as Kafka's StandardAuthorizer does: an ACL that denies overrides all that allow; a resource is matched"
        " by its name, by a prefix, or by the wildcard; READ, WRITE, DELETE and ALTER allow DESCRIBE, and ALTER_CONFIGS"
        " allows DESCRIBE_CONFIGS. reason and acl name the ACL that decides, the one that Kafka's audit log names; rule"
        " is acl, default (ACLs of the resource, none about this), noAcl (no ACL of the resource) or superUser."
        " super.users and allow.everyone.if.no.acl.found are in no log: --super-user (repeatable, or with semicolons)"
        " and --allow-if-no-acl stand for them. An ACL whose host is a range (10.1.0.0/16, fd00::/8) is about every"
        " address in it, as brokers of Kafka 4.4 and later see it; brokers before compare its text with the address,"
        " and never match. Without --host, ACLs for single addresses and ranges do not apply, and a note names them."
        " Brokers (-b) report no ids of ACLs: aclId is then the entry's text. Another authorizer than Kafka's own may"
        " decide otherwise."
    ),
    needs_records=True,
    exit_1_when="it is not allowed",
)
