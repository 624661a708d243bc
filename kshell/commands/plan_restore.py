"""``plan-restore``: print the commands that would recreate topics, configs, quotas and ACLs; it runs none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.result import Result, Row, Rows
from kshell.metadata.families.configs import Resource, resource_segment
from kshell.metadata.families.quotas import Entity, entity_segment
from kshell.metadata.image import Image, families
from kshell.metadata.kafka_tools import KafkaTools, acl_words, entity_words, quota_words
from kshell.metadata.names import sort_key
from kshell.metadata.partial import MISSING
from kshell.metadata.partition_state import target_replicas
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.shell_words import command_line, option, quote
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, row_flags, select
from kshell.tables.state.topics import by_name

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject
    from kshell.metadata.families.acls import Acl
    from kshell.metadata.values import Entry

RESTORED = ("topics", "brokers", "configs", "acls", "clientQuotas", "scram", "delegationToken")
"""Families that are read for a plan."""
LEFT_OUT = {
    "controllers": "nodes register when they start",
    "features": "kafka-storage.sh format finalizes them",
    "producerIds": "brokers of a new cluster get new ones",
}
"""Families that need not be restored -> why."""
_REDACTION = Redaction()
"""Always redacts, even with ``--show-secrets``: plans are pasted into chats and tickets."""


KINDS = ("topic", "config", "quota", "acl", "user", "token", "source")


class Step(NamedTuple):
    """A step: its kind (:data:`KINDS`), object and command line; ``note``: why it has none, or what else to do."""

    kind: str
    subject: str
    command: str | None
    note: str | None = None


def steps(image: Image, tools: KafkaTools) -> Iterator[Step]:
    """All steps in an order in which they can be run: broker configs, topics, other configs, quotas, ACLs."""
    configs = image["configs"]
    brokers = [resource for resource in sorted(configs) if resource[0] == "BROKER"]
    other_resources = [resource for resource in sorted(configs) if resource[0] not in ("BROKER", "TOPIC")]
    kinds = families()
    needless = {("provenance",), kinds["acls"].path, *(kinds[name].path for name in LEFT_OUT)}
    for path, sentence in sorted(image[MISSING].items()):
        if path not in needless:
            yield Step("source", "/".join(path), None, f"not known: {sentence}")
    controllers = {*map(str, image["controllers"])} - {*map(str, image["brokers"])}
    for resource in brokers:
        is_controller = resource[1] in controllers  # brokers refuse a node id that is none of theirs
        yield from _config_steps(resource, _values(configs[resource]), tools, at_controllers=is_controller)
    for topic in by_name(image):
        yield from _topic_steps(topic, _values(configs.get(("TOPIC", topic.name), {})), tools)
    for resource in other_resources:
        yield from _config_steps(resource, _values(configs[resource]), tools)
    for entity in sorted(image["clientQuotas"], key=lambda entity: sort_key(entity_segment(entity))):
        yield _quota_step(entity, _values(image["clientQuotas"][entity]), tools)
    acls = [(acl_id, entry.value) for acl_id, entry in image["acls"].items()]
    for _, acl in sorted(acls, key=lambda id_and_acl: (*id_and_acl[1][:4], str(id_and_acl[0]))):
        yield _acl_step(acl, tools)
    yield from _secrets(image)
    yield from _unplanned(image)


def _unplanned(image: Image) -> Iterator[Step]:
    """Steps without a command for families that have metadata, but are not known to this module."""
    for name, family in families().items():
        if name not in RESTORED and name not in LEFT_OUT and image[name]:
            yield Step("source", "/".join(family.path), None, "not in the plan: no step for it is known")


def _values(entries: Mapping[str, Entry[object]]) -> JsonObject:
    return {key: entry.value for key, entry in sorted(entries.items())}


# --- topics ----------------------------------------------------------------------------------------------------------


def _topic_steps(topic: Topic, configs: dict[str, str], tools: KafkaTools) -> Iterator[Step]:
    partitions = dict(topic.scan())
    assigned = [target_replicas(value) for value in partitions.values() if isinstance(value, Partition)]
    if sorted(partitions) != list(range(len(partitions))) or len(assigned) != len(partitions) or not assigned:
        yield Step("topic", topic.name, None, "its partitions cannot all be read, or leave a gap: create it by hand")
        return
    arguments = ["--create", *option("--topic", topic.name)]
    note = None
    if len({len(replicas) for replicas in assigned}) == 1:
        arguments += ["--replica-assignment", ",".join(":".join(map(str, replicas)) for replicas in assigned)]
    else:
        arguments += ["--partitions", str(len(assigned)), "--replication-factor", str(len(assigned[0]))]
        note = "its partitions differ in replication factor: kafka-reassign-partitions.sh is needed after this"
    visible, hidden = _split("TOPIC", configs)
    simple = {key: value for key, value in visible.items() if value and "=" not in value and _is_plain(value)}
    for key, value in simple.items():
        arguments += ["--config", f"{key}={value}"]
    yield Step("topic", topic.name, tools.line("kafka-topics.sh", *arguments), note)
    rest = {key: value for key, value in configs.items() if key not in simple}
    if rest or hidden:
        yield from _config_steps(("TOPIC", topic.name), rest, tools)


# --- configs and quotas ----------------------------------------------------------------------------------------------


def _config_steps(
    resource: Resource, configs: dict[str, str], tools: KafkaTools, *, at_controllers: bool = False
) -> Iterator[Step]:
    kind, _ = resource
    subject = resource_segment(resource)
    visible, hidden = _split(kind, configs)
    entity = entity_words(resource)
    if entity is None:
        yield Step("config", subject, None, f"kafka-configs.sh has no entities of type {kind}")
        return
    if visible:
        command = tools.line("kafka-configs.sh", "--alter", *entity, at_controllers=at_controllers)
        yield Step("config", subject, f"{command} {_added(visible)}")
    for key in hidden:
        yield Step("config", subject, None, f"{key}: its value is secret, or its key unknown: set it by hand")


def _split(kind: str, configs: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """(configs that may be shown, keys of configs with secret values)."""
    hidden = [key for key, value in configs.items() if _REDACTION.config(kind, key, value) == REDACTED]
    return {key: value for key, value in configs.items() if key not in hidden}, hidden


def _is_plain(value: str) -> bool:
    """Whether a value survives as ``KEY=VALUE`` on a command line: no spaces around it, only printable characters."""
    return value == value.strip() and value.isprintable()


def _added(configs: Mapping[str, str]) -> str:
    """The option that sets configs: ``--add-config``, or ``--add-config-file`` if a value cannot be written in that."""
    if all(_is_plain(value) and "[" not in value and "]" not in value for value in configs.values()):
        return command_line(("--add-config", ",".join(f"{key}={_bracketed(value)}" for key, value in configs.items())))
    lines = [f"{key}={_property(value)}" for key, value in configs.items()]
    printed = command_line(("printf", "%s\\n", *lines))
    return f"--add-config-file <({printed})"


def _bracketed(value: str) -> str:
    return f"[{value}]" if "," in value or "=" in value else value


def _property(value: str) -> str:
    """Escape a value for a Java properties file, which is read as ISO-8859-1."""
    out: list[str] = []
    for number, char in enumerate(value):
        if char == "\\" or (char in " \t\f" and out == [] and number == 0):
            out.append(f"\\{char}")
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)]
    return "".join(out)


def _quota_step(entity: Entity, limits: Mapping[str, float], tools: KafkaTools) -> Step:
    subject = entity_segment(entity)
    arguments = quota_words(entity)
    if arguments is None:
        return Step("quota", subject, None, "kafka-configs.sh has no entities of this kind")
    arguments += ["--add-config", ",".join(f"{key}={value!r}" for key, value in limits.items())]
    return Step("quota", subject, tools.line("kafka-configs.sh", "--alter", *arguments))


# --- access ----------------------------------------------------------------------------------------------------------


def _acl_step(acl: Acl, tools: KafkaTools) -> Step:
    subject = f"{acl.permission_type} {acl.principal} {acl.operation} {acl.resource_type}:{acl.resource_name}"
    if not acl.resource_name:
        covers = ": LITERAL * covers the same" if acl.pattern_type == "PREFIXED" else ""
        return Step("acl", subject, None, f"KRaft refuses an empty resource name{covers}")
    arguments = acl_words(acl, tools.release)
    if arguments is None:
        return Step("acl", subject, None, "kafka-acls.sh does not take this entry: use an Admin client")
    return Step("acl", subject, tools.line("kafka-acls.sh", "--add", *arguments))


def _secrets(image: Image) -> Iterable[Step]:
    """Steps without a command for SCRAM credentials and delegation tokens, which cannot be restored."""
    for mechanism, users in sorted(image["scram"].items()):
        for name in sorted(users):
            yield Step("user", name, None, f"{mechanism}: the password is not in the log: set a new one")
    for token_id in sorted(image["delegationToken"]):
        yield Step("token", token_id, None, "a delegation token cannot be made again: its owner needs a new one")


def _kinds() -> tuple[str, ...]:

    return KINDS


_SERVER, _CONTROLLER = '"$BOOTSTRAP_SERVER"', '"$BOOTSTRAP_CONTROLLER"'
_FIELDS = (
    Field("kind", Enumeration(_kinds), "topic, config, quota, acl, user, token, or source for what is not known"),
    Field("subject", "string", "what it is about"),
    Field("command", "string", "the command; null where there is none"),
    Field("note", "string", "what else is to be done, or why there is no command"),
)


class PlanRestoreArguments(RowArguments):
    """Arguments and options of ``plan-restore``."""

    bootstrap_server: str | None
    command_config: str | None


def run(session: Session, args: PlanRestoreArguments) -> Result:
    """Return one row per step; as text, a script to read, edit and run."""
    image = image_for(session, "plan-restore", RESTORED)
    server = quote(args.bootstrap_server) if args.bootstrap_server is not None else _SERVER
    damage = [
        Step("source", "the log", None, f"{problem}: this is the state at offset {image.provenance.offset}")
        for problem in session.problems()
    ]
    restore_steps = [*damage, *steps(image, KafkaTools(server, _CONTROLLER, args.command_config))]
    result = select(_FIELDS, [step._asdict() for step in restore_steps], args)
    if args.columns is None:
        result.readable = Rows((), _Script(result, with_server=args.bootstrap_server is None), "lines", "line")
    return result


class _Script:
    """The rows as lines of a script, in which notes are comments."""

    def __init__(self, rows: Rows, *, with_server: bool) -> None:
        self._rows = rows
        self._with_server = with_server

    def __iter__(self) -> Iterator[Row]:
        yield {"line": "# Read this before you run any of it; for bash or zsh."}
        if self._with_server:
            yield {"line": ': "${BOOTSTRAP_SERVER:?host:port of the cluster to restore into}"'}
        rows = list(self._rows)
        if any(_CONTROLLER in (row["command"] or "") for row in rows):
            yield {"line": ': "${BOOTSTRAP_CONTROLLER:?host:port of a controller of that cluster}"'}
        for row in rows:
            if row["note"] is not None:
                yield {"line": f"# {row['kind']} {row['subject']}: {row['note']}"}
            if row["command"] is not None:
                yield {"line": row["command"]}


COMMAND = Command(
    name="plan-restore",
    task=Task.PROGRAMS,
    summary="print the commands that would recreate topics, configs, quotas and ACLs",
    run=run,
    arguments=PlanRestoreArguments,
    flags=(
        Flag(("--bootstrap-server",), "the cluster to restore into; $BOOTSTRAP_SERVER when absent", metavar="LIST"),
        Flag(("--command-config",), "a client properties file that each command is to use", metavar="FILE"),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("plan-restore", "everything, as a script"),
        Example("plan-restore --where 'kind == topic' --bootstrap-server kafka-1.shop.example:9092", "topics only"),
        Example("plan-restore --where 'command == null' -o json", "what no command brings back"),
    ),
    description=(
        "Nothing is run, and nothing is asked of the cluster to restore into. Topics get the replicas that they have"
        " (or are being moved to) on brokers of the same ids, and new topic ids; data and offsets are not restored."
        " Configs of a controller's id are set at a controller, $BOOTSTRAP_CONTROLLER."
        " Secrets are never printed, --show-secrets or not: passwords among the configs, SCRAM credentials and"
        " delegation tokens are comments. Every name and value is quoted for the shell."
    ),
)
