"""``man``: the full page on a command, or on a config as a node of a live source or kshell's own tables describe it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.cluster.configs import ask
from kshell.engine import registry
from kshell.engine.declaration import Arg, Arguments, Command, Example
from kshell.engine.result import Report, Result, Section, Text
from kshell.engine.session import Session
from kshell.engine.usage import man_text
from kshell.errors import CommandError, NodeError, UsageError, did_you_mean
from kshell.metadata.config_types import NEWEST, TABLE, known_key, known_types
from kshell.metadata.families.topics import NAMES
from kshell.sources.brokers.config_entries import DEFAULT, UNKNOWN, ConfigEntry
from kshell.tables.configs import valid_values

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.json_text import JsonObject
    from kshell.metadata.families.configs import Resource

KINDS = ("TOPIC", "BROKER", "GROUP", "CLIENT_METRICS")
_ANY_GROUP = "kshell"
"""The group to ask about; it need not exist, for every group has the same configs."""
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


def page(session: Session, name: str) -> Result:
    """Describe a config, once per resource type that has it. Raises CommandError if no type has it."""
    reported = dict(_reported_entries(session, name))
    facts_by_type = {
        kind: _facts(kind, name, reported.get(kind)) for kind in KINDS if kind in reported or known_key(kind, name)
    }
    if not facts_by_type:
        raise CommandError(f"{name}: no Kafka from 3.3 to {NEWEST} has such a config", hint=_near(name))
    if not any(facts["from"] == "node" for facts in facts_by_type.values()):
        session.remarks.append(f"this is what Kafka 3.3 to {NEWEST} define; a running cluster (-q, -b) documents it")
    sections = [Section(kind if len(facts_by_type) > 1 else "", kind, facts) for kind, facts in facts_by_type.items()]
    result = Report(sections)
    result.readable = Text("\n\n".join(_page(facts) for facts in facts_by_type.values()), markdown=True)
    return result


def _facts(kind: str, name: str, reported: ConfigEntry | None) -> JsonObject:
    definition = known_key(kind, name)
    typed = reported is not None and reported.type != UNKNOWN
    facts: JsonObject = {
        "resourceType": kind,
        "name": name,
        "type": reported.type if reported and typed else definition.type if definition else UNKNOWN,
        "default": definition.default if definition else None,
        "validValues": valid_values(kind, name),
        "synonyms": None,
        "isSensitive": definition.type == "PASSWORD" if definition else None,
        "isReadOnly": None,
        "documentation": None,
        "from": "node" if reported else f"Kafka {NEWEST}",
    }
    if reported is None:
        return facts
    own = next((synonym for synonym in reported.synonyms if synonym.source == DEFAULT and synonym.name == name), None)
    if own is not None or reported.source == DEFAULT:  # no other synonym: log.retention.hours has another unit
        facts["default"] = own.value if own else reported.value
    if reported.valid_values is not None:
        facts["validValues"] = "one of " + ", ".join(reported.valid_values)
    names = list(dict.fromkeys(synonym.name for synonym in reported.synonyms if synonym.name != name))
    read_only = reported.is_read_only if kind == "BROKER" else None
    documented = {
        "documentation": reported.documentation,
        "isReadOnly": read_only,
        "isSensitive": reported.is_sensitive,
    }
    return facts | documented | {"synonyms": names}


def _reported_entries(session: Session, name: str) -> Iterator[tuple[str, ConfigEntry]]:
    """(resource type, the entry that a node reports) for the config; remarks name nodes that cannot be asked."""
    nodes = session.source.nodes
    if nodes is None:
        return
    try:
        resources = [
            resource for resource in _resources(session, nodes) if known_key(resource[0], name) or not _is_known(name)
        ]
    except NodeError as error:
        session.remarks.append(f"no node can be asked: {error.message}")
        return
    for described in ask(session, nodes, resources, docs=True):
        if described.failure is not None:
            hint = f" ({described.failure.hint})" if described.failure.hint else ""
            session.remarks.append(f"{described.failure.message}{hint}")
        for entry in described.entries:
            if entry.name == name:
                yield described.resource[0], entry


def _is_known(name: str) -> bool:
    return any(known_key(kind, name) for kind in KINDS)


def _resources(session: Session, nodes: Nodes) -> Iterator[Resource]:
    """Any one resource of each type, to ask a node about: the configs of a type are the same for all resources."""
    from kshell.client.nodes import BROKER
    from kshell.sources.brokers.topics import any_topic

    nodes.describe(nodes.any())
    topic = any_topic(nodes) if nodes.kind == BROKER else next(iter(session.image[NAMES]), None)
    if topic is not None:
        yield "TOPIC", topic
    if nodes.by_id:
        yield "BROKER", str(min(nodes.by_id))
    yield "GROUP", _ANY_GROUP


def _near(name: str) -> str | None:
    return did_you_mean(name, [key for kind in TABLE for key in known_types(kind)], limit=3)


def _page(facts: JsonObject) -> str:
    """The Markdown page on a config, in the layout of the page on a command."""
    default = "none" if facts["default"] is None else f"`{facts['default']}`" if facts["default"] else '`""`'
    synonyms = ", ".join(f"`{synonym}`" for synonym in facts["synonyms"] or ())
    read_only = {True: "yes: only a restart of the broker changes it", False: "no"}.get(facts["isReadOnly"], "")
    sections = {
        "NAME": f"{facts['name']} - a config of {facts['resourceType']}",
        "TYPE": facts["type"] + (", sensitive: its value is never shown" if facts["isSensitive"] else ""),
        "DEFAULT": default,
        "VALID VALUES": facts["validValues"],
        "SYNONYMS": synonyms and f"{synonyms} (where it is not set, the first of these that is)",
        "READ-ONLY": read_only,
        "DOCUMENTATION": facts["documentation"] and _plain_text(facts["documentation"]),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items() if text)


def _plain_text(documentation: str) -> str:
    """Turn Kafka's HTML documentation into text, in quotation marks if it could start Markdown markup."""
    text = " ".join(html.unescape(_TAG.sub("", documentation)).split())
    return text if text[:1].isalnum() else f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"


_CONFIG = "config"


class ManArguments(Arguments):
    """Arguments and options of ``man``."""

    command: str
    name: str | None


def run(session: Session, args: ManArguments) -> Result:
    """Return the page on a command or help topic, or with ``man config NAME`` the page on a config."""
    if args.command == _CONFIG:
        if args.name is None:
            raise UsageError("man config: the name of a config is missing", hint="such as man config retention.ms")

        return page(session, args.name)
    if args.name is not None:
        raise UsageError(f"man: {args.name} is one word too many", hint="man COMMAND, or man config NAME")
    if args.command in registry.names():
        return Text(man_text(registry.get(args.command)), markdown=True)
    from kshell.engine.help_pages import PAGES, unknown

    if args.command not in PAGES:
        if _is_known(args.command):
            return page(session, args.command)
        raise unknown(args.command)
    return Text(PAGES[args.command].text(), markdown=True)


def _complete(session: Session, typed: str) -> Iterable[str]:
    from kshell.engine.help_pages import complete_subject

    return [*complete_subject(session, typed), *([_CONFIG] if _CONFIG.startswith(typed) else [])]


def _configs(tokens: list[str]) -> Iterable[str]:
    """Complete the name of a config, after the word ``config``."""
    if tokens[-1:] != [_CONFIG]:
        return ()
    return sorted({key for kind in TABLE for key in known_types(kind)})


COMMAND = Command(
    name="man",
    summary="everything about a command, or about a config",
    run=run,
    arguments=ManArguments,
    args=(
        Arg(
            "command", "a command; a subject: exit-codes, where; or the word config", kind="command", complete=_complete
        ),
        Arg("name", "after config: the name of a config, such as retention.ms", arity="?", after=_configs),
    ),
    examples=(
        Example("man dump", "its description, options, examples and exit codes"),
        Example("man find -o markdown > find.md", "as a page of its own"),
        Example("man config cleanup.policy", "a config: its type, default and valid values"),
    ),
    description=(
        "man COMMAND prints the command's page. man config NAME shows a config's type, default, valid values and"
        " synonyms: of a running cluster (-q, -b) as a node of it says, with Kafka's documentation; else as Kafka's own"
        " definitions of 3.3 to 4.4 have it. If several types of resources have the config, each type gets its own"
        " part."
    ),
    needs_source=False,
)
