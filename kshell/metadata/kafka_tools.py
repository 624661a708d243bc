"""Command lines for Kafka's tools, for the release of a cluster: complete, with all arguments quoted for a shell.

Differences between releases were taken from the tools' own ``--help`` (3.7 to 4.4) and are checked on real clusters by
``tests/live/test_next_steps.py``: KIP-1147 renamed ``--config`` and ``--admin.config`` to ``--command-config`` in 4.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.values import camel
from kshell.shell_words import command_line, option, quote

if TYPE_CHECKING:
    from kshell.metadata.families.acls import Acl

Release = tuple[int, int]
"""Major and minor number of a Kafka release."""
NEWEST: Release = (4, 4)
"""The newest release that kshell knows, which is assumed for a cluster whose release is not known."""
UNKNOWN_SERVERS = "HOST:9092"
"""Placeholder for the address of a broker, where none is known."""
_COMMAND_CONFIG_EVERYWHERE: Release = (4, 2)
_OLD_CONFIG_OPTIONS = {"kafka-leader-election.sh": "--admin.config", "kafka-cluster.sh": "--config"}
"""Tool -> its name for ``--command-config`` before 4.2."""
_AUTHENTICATED = frozenset({"kafka-delegation-tokens.sh"})
"""Tools that require ``--command-config``: brokers refuse their requests at a listener without authentication."""
_TOOL = re.compile(r"(kafka-[a-z-]+\.sh)((?<=kafka-cluster\.sh) [a-z-]+)?")
"""A tool's name; kafka-cluster.sh takes the options for the connection only after its subcommand."""
_AT_CONTROLLERS = " --bootstrap-controller"
"""At the end of a template: connect to controllers."""
_RESOURCE_FLAGS = {
    "TOPIC": "--topic", "GROUP": "--group", "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token", "USER": "--user-principal",
}  # fmt: skip
_ACL_OPERATIONS = {
    "TOPIC": frozenset((
        "READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    )),
    "GROUP": frozenset(("READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")),
    "CLUSTER": frozenset((
        "CREATE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "ALTER", "DESCRIBE",
    )),
    "TRANSACTIONAL_ID": frozenset(("DESCRIBE", "WRITE", "TWO_PHASE_COMMIT")),
    "DELEGATION_TOKEN": frozenset(("DESCRIBE",)),
    "USER": frozenset(("CREATE_TOKENS", "DESCRIBE_TOKENS")),
}  # fmt: skip
"""Resource type -> the operations besides ALL that kafka-acls.sh takes for it (``AclEntry.supportedOperations``).

Kafka itself takes any operation for any type, from other clients."""
_ACL_OPERATIONS_SINCE: dict[tuple[str, str], Release] = {
    ("GROUP", "DESCRIBE_CONFIGS"): (4, 0),
    ("GROUP", "ALTER_CONFIGS"): (4, 0),
    ("TRANSACTIONAL_ID", "TWO_PHASE_COMMIT"): (4, 1),
}
"""Operations of a resource type that only the tools of later releases take."""
_CLUSTER = "kafka-cluster"
_PATTERNS = ("LITERAL", "PREFIXED")
_ENTITY_TYPES = {
    "TOPIC": "topics", "BROKER": "brokers", "GROUP": "groups", "CLIENT_METRICS": "client-metrics",
}  # fmt: skip
_JSON = json.JSONEncoder(separators=(",", ":"))
# --additional: each partition gets its own reassignment, and without it the tool refuses a second one during the first.
_EXECUTE = "echo {moves} | kafka-reassign-partitions.sh --reassignment-json-file /dev/stdin --additional --execute"
_QUOTA_TYPES = {"user": "users", "client-id": "clients", "ip": "ips"}

Move = tuple[str, int, Sequence[int]]
"""(topic, partition, the replicas that the partition is to have)."""


class KafkaTools(NamedTuple):
    """Writes command lines for the tools of one cluster's release.

    Args:
        servers: The addresses of brokers, as shell text.
        controllers: The addresses of controllers; ``None``: not known, then tools connect to brokers instead.
        command_config: A client properties file; ``None``: the tools need none.
        release: The lowest release that a node runs; ``None``: not known.
        authenticated: Addresses of brokers at a listener with authentication; ``None``: the same as ``servers``.
    """

    servers: str = UNKNOWN_SERVERS
    controllers: str | None = None
    command_config: str | None = None
    release: Release | None = None
    authenticated: str | None = None

    def line(self, tool: str, *arguments: str, at_controllers: bool = False) -> str:
        """Return ``kafka-topics.sh --bootstrap-server … WORD …``, each word quoted for the shell."""
        return f"{tool}{self._connect(tool, at_controllers=at_controllers)} {command_line(arguments)}"

    def fill(self, template: str, values: Mapping[str, object]) -> str:
        """Return the command line that a template such as ``kafka-cluster.sh unregister --id {id}`` describes.

        Args:
            template: One tool with its words. ``--bootstrap-controller`` at its end means: connect to controllers.
            values: The values of the placeholders in braces. A list becomes several words, anything else one word.

        Raises:
            ValueError: the template has none of Kafka's tools.
        """
        at_controllers = template.endswith(_AT_CONTROLLERS)
        template = template.removesuffix(_AT_CONTROLLERS)
        match = _TOOL.search(template)
        if match is None:
            raise ValueError(f"{template}: no tool of Kafka")
        connect = self._connect(match[1], at_controllers=at_controllers).replace("{", "{{").replace("}", "}}")
        line = f"{template[: match.end()]}{connect}{template[match.end() :]}"
        return line.format_map({name: shell_text(value) for name, value in values.items()}).rstrip()

    def _connect(self, tool: str, *, at_controllers: bool) -> str:
        needs_name = tool in _AUTHENTICATED
        connect = f" --bootstrap-server {(self.authenticated if needs_name else None) or self.servers}"
        if at_controllers and self.controllers is not None:
            connect = f" --bootstrap-controller {self.controllers}"
        file = self.command_config or ("FILE" if needs_name else None)
        if file is None:
            return connect
        name = "--command-config"
        if self.release is not None and self.release < _COMMAND_CONFIG_EVERYWHERE:
            name = _OLD_CONFIG_OPTIONS.get(tool, name)
        return f"{connect} {command_line(option(name, file))}"


def shell_text(value: object) -> str:
    """Return a value as one quoted word for a shell; a list as several words."""
    return command_line(value) if isinstance(value, (list, tuple)) else quote(str(value))


def release_of(text: str | None) -> Release | None:
    """Return the release that a text begins with: ``"3.9.2 or later"`` -> ``(3, 9)``; ``None`` without one."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})", text or "")
    return (int(match[1]), int(match[2])) if match else None


# --- arguments of several tools --------------------------------------------------------------------------------------


def assignment(moves: Iterable[Move]) -> str:
    """Return the JSON of a reassignment, as kafka-reassign-partitions.sh reads it."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas)} for topic, number, replicas in moves
    ]
    return _JSON.encode({"version": 1, "partitions": partitions})


def move_command(tools: KafkaTools, moves: Iterable[Move]) -> str:
    """Return the command that starts a reassignment; it contains the assignment."""
    return tools.fill(_EXECUTE, {"moves": assignment(moves)})


def acl_words(acl: Acl, release: Release | None = None) -> list[str] | None:
    """Return the arguments of kafka-acls.sh that describe an ACL; ``None`` if that release's tool does not take it."""
    verb = acl.permission_type.lower()
    arguments = [*option(f"--{verb}-principal", acl.principal), *option(f"--{verb}-host", acl.host)]
    arguments += ["--operation", _pascal(acl.operation)]
    if acl.resource_type == "CLUSTER" and acl.resource_name == _CLUSTER and acl.pattern_type == "LITERAL":
        arguments += ["--cluster"]
    elif acl.resource_type in _RESOURCE_FLAGS:
        arguments += option(_RESOURCE_FLAGS[acl.resource_type], acl.resource_name)
        arguments += ["--resource-pattern-type", acl.pattern_type.lower()]
    else:
        return None
    is_expressible = acl.pattern_type in _PATTERNS and acl.permission_type in ("ALLOW", "DENY") and ":" in acl.principal
    names = (acl.principal, acl.host, acl.resource_name)
    takes = _takes_operation(acl, release or NEWEST)
    return arguments if is_expressible and takes and all(name == name.strip() for name in names) else None


def _takes_operation(acl: Acl, release: Release) -> bool:
    """Whether kafka-acls.sh of a release takes the operation for the type of resource."""
    kind, operation = acl.resource_type, acl.operation
    since = _ACL_OPERATIONS_SINCE.get((kind, operation), release)
    return operation == "ALL" or (operation in _ACL_OPERATIONS[kind] and release >= since)


def _pascal(name: str) -> str:
    """Return an operation as the tool names it: ``DESCRIBE_CONFIGS`` -> ``DescribeConfigs``."""
    first = camel(name.lower())
    return first[:1].upper() + first[1:]


def entity_words(resource: tuple[str, str]) -> list[str] | None:
    """Return the arguments of kafka-configs.sh that name a config resource; ``None``: the tool has no such type."""
    kind, name = resource
    if kind not in _ENTITY_TYPES:
        return None
    return ["--entity-type", _ENTITY_TYPES[kind], *(option("--entity-name", name) if name else ("--entity-default",))]


def quota_words(entity: Iterable[tuple[str, str | None]]) -> list[str] | None:
    """Return the arguments of kafka-configs.sh that name a quota's entity; ``None``: the tool has no such type."""
    parts = dict(entity)
    if not set(parts) <= set(_QUOTA_TYPES):
        return None
    arguments: list[str] = []
    for kind, entity_type in _QUOTA_TYPES.items():
        if kind in parts:
            name = parts[kind]
            arguments += ["--entity-type", entity_type]
            arguments += ["--entity-default"] if name is None else option("--entity-name", name)
    return arguments
