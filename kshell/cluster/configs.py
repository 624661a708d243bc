"""Parse config resources such as ``TOPIC:orders``, and ask nodes of a running cluster to describe their configs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.errors import CommandError, KshellError, NodeError, ServerError, UsageError, did_you_mean
from kshell.metadata.families.configs import RESOURCE_TYPES, Resource, resource_segment
from kshell.metadata.families.topics import NAMES
from kshell.metadata.names import sort_key
from kshell.metadata.partial import reported_by
from kshell.sources.brokers.config_entries import Described
from kshell.tree.globs import component, is_glob

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.session import Session
    from kshell.sources.brokers.config_entries import Described

KINDS = tuple(RESOURCE_TYPES.values())
_OF_ONE_NODE = ("BROKER", "BROKER_LOGGER")
_UNKNOWN_TOPIC = 3


def parse_entity(text: str) -> Resource:
    """Parse ``TOPIC:orders`` into (type, name); ``BROKER`` alone, the default, has the name "". Raises UsageError."""
    kind, colon, name = text.partition(":")
    kind = kind.upper()
    if kind not in KINDS:
        example = (
            f"{'BROKER' if text.isdecimal() else 'TOPIC'}:{text}" if text and not colon else "TOPIC:orders, BROKER:1"
        )
        hint = f"write it as TYPE:NAME, such as {example}; types: {', '.join(KINDS)}"
        raise UsageError(f"{text}: not a resource", hint=hint)
    if colon and not name:
        raise UsageError(f"{text}: the name is missing", hint=f"{kind} alone is the default of all")
    if not name and kind != "BROKER":
        raise UsageError(
            f"{text}: a name is needed", hint=f"{kind}:NAME, or {kind}:'*' for all; only BROKER has a default"
        )
    return kind, name


def expand(session: Session, text: str) -> list[Resource]:
    """The resources that a text stands for; names may be globs. Raises UsageError; CommandError if there is none.

    A name that is there counts as it is written, as group ids may have any characters; ``*`` alone means all.
    """
    kind, name = parse_entity(text)
    if not is_glob(name) or (name != "*" and name in _names(session, kind)):
        if not session.source.is_live and not exists(session, (kind, name)):
            alike = did_you_mean(name, _names(session, kind), write=lambda candidate: f"{kind}:{candidate}")
            raise CommandError(f"{text}: the image has no such {kind.lower().replace('_', ' ')}", hint=alike)
        return [(kind, name)]
    matches = component(name).fullmatch
    resources = [
        (kind, resource_name)
        for resource_name in sorted(set(_names(session, kind)), key=sort_key)
        if matches(resource_name)
    ]
    if not resources:
        raise CommandError(f"{text}: nothing matches")
    return resources


def exists(session: Session, resource: Resource) -> bool:
    """Whether the image has the topic or broker. True for other types: they may have no configs and still be valid."""
    kind, name = resource
    return not name or kind not in ("TOPIC", "BROKER") or name in _names(session, kind)


def _names(session: Session, kind: str) -> Iterator[str]:
    image = session.image
    if kind == "TOPIC":
        yield from image[NAMES]
    elif kind in _OF_ONE_NODE:
        yield from map(str, image["brokers"])
    yield from (name for resource_type, name in image["configs"] if resource_type == kind and name)


def complete_entity(session: Session, typed: str) -> Iterable[str]:
    """Complete an entity: all topics, all brokers and every resource that has configs; after them the types."""
    named = {*session.image["configs"], *(("TOPIC", name) for name in session.image[NAMES])}
    named |= {("BROKER", str(number)) for number in session.image["brokers"]}
    entities = [":".join(filter(None, resource)) for resource in named]
    return [entity for entity in (*sorted(entities), *(f"{kind}:" for kind in KINDS)) if entity.startswith(typed)]


def ask(session: Session, nodes: Nodes, resources: Iterable[Resource], *, docs: bool) -> Iterator[Described]:
    """Describe configs: only a broker itself knows its own, any node knows the rest.

    A node that fails raises nothing: its error is the ``failure`` of the result for that resource.
    """
    from kshell.cluster.nodes import connection_to, find_member  # late: a directory needs no client
    from kshell.sources.brokers.configs import describe

    shared: list[Resource] = []
    for resource in resources:
        if resource[0] not in _OF_ONE_NODE or not resource[1]:
            shared.append(resource)
            continue
        try:
            connection = connection_to(nodes, find_member(session, nodes, _node_id(resource)))
            try:
                yield from describe(connection, [resource], synonyms=True, documentation=docs)
            finally:
                connection.close()
        except NodeError as error:
            yield _failed(resource, error)
    waiting = dict.fromkeys(shared)
    try:
        for described in describe(nodes.any(), shared, synonyms=True, documentation=docs) if shared else ():
            waiting.pop(described.resource, None)
            yield described
    except NodeError as error:
        for resource in waiting:
            yield _failed(resource, error)


def _node_id(resource: Resource) -> int:
    name = resource[1]
    if not (name.isascii() and name.isdigit()) or len(name) > 10:
        raise UsageError(f"{resource_segment(resource)}: the name of a broker is its id")
    return int(name)


def _failed(resource: Resource, error: NodeError) -> Described:
    return Described(resource, (), error, reported_by(error.node, error.api or "", -1))


def failure_of(described: Described) -> KshellError | None:
    """The error of a description, or ``None``. An unknown topic becomes a CommandError, for no node has failed."""
    if described.failure is None:
        return None
    if isinstance(described.failure, ServerError) and described.failure.code == _UNKNOWN_TOPIC:
        return CommandError(f"{resource_segment(described.resource)}: there is no such topic")
    return described.failure
