"""Health checks of configs, ACLs, quotas, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.metadata.authorizer import EVERY_NAME, EVERYONE, covers
from kshell.metadata.families.acls import Acl
from kshell.metadata.families.configs import Resource, resource_segment
from kshell.metadata.families.quotas import Entity, entity_segment
from kshell.metadata.families.scram import MECHANISMS
from kshell.metadata.families.topics import NAMES
from kshell.metadata.health.check import INFO, WARNING, CheckedState, Observation, check
from kshell.metadata.kafka_tools import acl_words, entity_words, quota_words
from kshell.metadata.names import encode_name
from kshell.metadata.next_steps import Cure, NextStep
from kshell.protocol.primitives import Uuid

if TYPE_CHECKING:
    from kshell.metadata.values import Entry

FEWEST_ITERATIONS = 4096
"""The least SCRAM iterations by RFC 7677, and Kafka's default."""
FEW_ITERATIONS = 10_000
"""SCRAM iterations below which there are fewer than NIST SP 800-132 recommends."""
_HARMLESS = ("DESCRIBE", "DESCRIBE_CONFIGS")
_THROTTLES = frozenset(
    "leader.replication.throttled.rate follower.replication.throttled.rate leader.replication.throttled.replicas"
    " follower.replication.throttled.replicas".split()
)


def _config_path(resource: tuple[str, str]) -> str:
    return f"/image/configs/{resource_segment(resource)}"


def _quota_path(entity: Entity) -> str:
    return f"/image/clientQuotas/{entity_segment(entity)}"


def _acl_path(acl_id: object) -> str:
    return f"/image/acls/{'byId' if isinstance(acl_id, Uuid) else 'byEntry'}/{acl_id}"


def _acl_text(acl: Acl) -> str:
    about = f"{acl.resource_type}:{acl.resource_name} ({acl.pattern_type})"
    return f"{acl.permission_type} {acl.principal} {acl.operation} on {about} from {acl.host}"


# --- configs ---------------------------------------------------------------------------------------------------------


@check(
    "orphanedConfig",
    WARNING,
    "configs of a topic that does not exist: they would apply to a new topic of that name",
    (
        Cure(
            "Kafka changes only configs of topics that are there: create the topic, and delete it if it is not needed,"
            " which deletes its configs: {0} and then {1}",
            ("kafka-topics.sh --create --topic {topic}", "kafka-topics.sh --delete --topic {topic}"),
        ),
    ),
)
def orphaned_config(state: CheckedState) -> Iterator[Observation]:
    """A topic has configs but does not exist; Kafka deletes the configs with the topic."""
    topics = state.image[NAMES]
    for (kind, name), configs in sorted(state.image["configs"].items()):
        if kind == "TOPIC" and name not in topics and configs:
            evidence = f"topic {name} is not there: {', '.join(sorted(configs))}"
            yield Observation(_config_path((kind, name)), evidence, {"topic": name})


@check(
    "orphanedBrokerConfig",
    INFO,
    "configs of a broker that is not registered",
    (
        Cure(
            "no tool of any release removes them while the broker is not registered: where they are in the way, start a"
            " broker with id {id}, then {0} and, when it is stopped again, {1}",
            (
                "kafka-configs.sh --alter --entity-type brokers --entity-name {id} --delete-config {keys}",
                "kafka-cluster.sh unregister --id {id}",
            ),
        ),
    ),
)
def orphaned_broker_config(state: CheckedState) -> Iterator[Observation]:
    """A node has configs but is not registered; they may have been set before its first start."""
    registered = {str(node_id) for table in ("brokers", "controllers") for node_id in state.image[table]}
    registered |= {str(voter) for voter in state.voters}
    for (kind, name), configs in sorted(state.image["configs"].items()):
        if kind == "BROKER" and name and name not in registered and configs and not state.is_partial:
            keys = ", ".join(sorted(configs))
            places = {"id": name, "keys": ",".join(sorted(configs))}
            yield Observation(_config_path((kind, name)), f"broker {name} is not registered: {keys}", places)


@check(
    "leftOverThrottle",
    INFO,
    "replication is throttled though nothing is being moved: followers may not catch up",
    (Cure("{0}", ("kafka-configs.sh --alter {entity} --delete-config {keys}",)),),
)
def left_over_throttle(state: CheckedState) -> Iterator[Observation]:
    """Replication throttles are set though no reassignment is in progress."""
    throttled = [
        (resource, sorted(_THROTTLES & configs.keys()))
        for resource, configs in sorted(state.image["configs"].items())
        if resource[0] in ("TOPIC", "BROKER") and _THROTTLES & configs.keys()
    ]
    if throttled and not state.is_moving:
        for resource, names in throttled:
            if not _is_there(state, resource):
                continue  # no tool can change the configs of what was removed: see the findings on orphaned ones
            evidence = ", ".join(f"{name} is set" for name in names)
            places = {"entity": entity_words(resource) or [], "keys": ",".join(names)}
            yield Observation(_config_path(resource), evidence, places)


def _is_there(state: CheckedState, resource: Resource) -> bool:
    kind, name = resource
    if kind == "TOPIC":
        return name in state.image[NAMES]
    return not name or (name.isdigit() and int(name) in state.image["brokers"])


_REMOVE_ACL = "kafka-acls.sh --remove --force {entry}"
"""Removes exactly one ACL; with ``--force``, because from 4.3 on the tool's question needs a terminal."""


# --- ACLs and quotas -------------------------------------------------------------------------------------------------


@check(
    "wideOpenAcl",
    WARNING,
    "everybody may do this, whoever they are",
    (Cure("{0} and then add what single principals need", (_REMOVE_ACL,)),),
)
def wide_open_acl(state: CheckedState) -> Iterator[Observation]:
    """An ACL allows ``User:*`` the operation ALL, or more than DESCRIBE on all resources of a type or the cluster."""
    for acl_id, entry in _acls(state):
        acl = entry.value
        if acl.permission_type != "ALLOW" or acl.principal != EVERYONE:
            continue
        is_all = (acl.pattern_type, acl.resource_name) in EVERY_NAME or acl.resource_type == "CLUSTER"
        if acl.operation == "ALL" or (is_all and acl.operation not in _HARMLESS):
            yield _of_acl(state, _acl_path(acl_id), acl)


@check(
    "orphanedAcl",
    INFO,
    "an ACL of topics that do not exist: it would apply to a new topic of that name",
    (Cure("if the topic is gone for good: {0}", (_REMOVE_ACL,)),),
)
def orphaned_acl(state: CheckedState) -> Iterator[Observation]:
    """An ACL is for a topic that does not exist or, as a prefix, for no existing topic."""
    topics = state.image[NAMES]
    for acl_id, entry in _acls(state):
        acl = entry.value
        is_all = (acl.pattern_type, acl.resource_name) in EVERY_NAME
        if acl.resource_type != "TOPIC" or is_all or acl.resource_name in topics:
            continue
        if acl.pattern_type == "LITERAL" or not any(covers(acl, "TOPIC", name) for name in topics):
            yield _of_acl(state, _acl_path(acl_id), acl)


def _of_acl(state: CheckedState, path: str, acl: Acl) -> Observation:
    options = acl_words(acl, state.tools.release)
    if options is None:
        return Observation(
            path, _acl_text(acl), next_step=NextStep("kafka-acls.sh does not take this entry: use an Admin client")
        )
    return Observation(path, _acl_text(acl), {"entry": options})


def _acls(state: CheckedState) -> list[tuple[Uuid | Acl, Entry[Acl]]]:
    return sorted(state.image["acls"].items(), key=lambda item: str(item[0]))


@check(
    "orphanedQuota",
    INFO,
    "a quota of a user that has neither credentials, nor ACLs, nor tokens",
    (Cure("if the user is gone: {0}", ("kafka-configs.sh --alter {entity} --delete-config {keys}",)),),
)
def orphaned_quota(state: CheckedState) -> Iterator[Observation]:
    """A user has quotas but no SCRAM credential, ACL or token; only checked if any user has a SCRAM credential."""
    users = {user for table in state.image["scram"].values() for user in table}
    if not users:
        return
    named = [entry.value.principal for entry in state.image["acls"].values()]
    named += [entry.value.owner for entry in state.image["delegationToken"].values()]
    users |= {principal.partition(":")[2] for principal in named}
    for entity, quotas in sorted(state.image["clientQuotas"].items(), key=repr):
        user = dict(entity).get("user")
        if user is not None and user not in users and quotas:
            places = {"entity": quota_words(entity) or [], "keys": ",".join(sorted(quotas))}
            yield Observation(_quota_path(entity), f"user {user}: {', '.join(sorted(quotas))}", places)


# --- SCRAM and tokens ------------------------------------------------------------------------------------------------

_SET_AGAIN = (
    Cure(
        "set the password again: {0}",
        ("kafka-configs.sh --alter --entity-type users --entity-name {user} --add-config {credential}",),
    ),
)


def _scram(state: CheckedState, least: int, most: int) -> Iterator[Observation]:
    """Find the SCRAM credentials with ``least`` iterations or more, and fewer than ``most``."""
    for mechanism in MECHANISMS.values():  # for others, no number is recommended, and no tool sets a password
        for user, entry in sorted(state.image["scram"].get(mechanism, {}).items()):
            if isinstance(entry.value.iterations, int) and least <= entry.value.iterations < most:
                path = f"/image/scram/{mechanism}/{encode_name(user)}"
                credential = f"{mechanism}=[iterations={FEW_ITERATIONS},password=PASSWORD]"
                places = {"user": user, "credential": credential}
                yield Observation(path, f"{entry.value.iterations} iterations", places)


@check("weakScram", WARNING, "so few iterations that a stolen credential is soon guessed", _SET_AGAIN)
def weak_scram(state: CheckedState) -> Iterator[Observation]:
    """A SCRAM credential has fewer iterations than Kafka accepts for a new one."""
    yield from _scram(state, 0, FEWEST_ITERATIONS)


@check("fewScramIterations", INFO, "fewer iterations than are asked for today", _SET_AGAIN)
def few_scram_iterations(state: CheckedState) -> Iterator[Observation]:
    """A SCRAM credential has fewer iterations than recommended; Kafka's default is one of these numbers."""
    yield from _scram(state, FEWEST_ITERATIONS, FEW_ITERATIONS)


@check(
    "expiredToken",
    WARNING,
    "a delegation token is past its expiry: who uses it is refused",
    (
        Cure(
            "nothing, if it is not used: the controller removes it within an hour; otherwise create a new one as its"
            " owner: {0}",
            ("kafka-delegation-tokens.sh --create --max-life-time-period -1 {renewers}",),
        ),
    ),
)
def expired_token(state: CheckedState) -> Iterator[Observation]:
    """A token had expired at the time of the state."""
    for token_id, entry in sorted(state.image["delegationToken"].items()):
        token = entry.value
        until = min(token.expiry_timestamp, token.max_timestamp)
        if state.now is not None and 0 <= until < state.now:
            seconds = (state.now - until) / 1000
            ago = f"{seconds:.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"
            path = f"/image/delegationToken/{encode_name(token_id)}"
            renewers = [option for renewer in token.renewers for option in ("--renewer-principal", renewer)]
            yield Observation(path, f"owner {token.owner}, expired {ago} ago", {"renewers": renewers})
