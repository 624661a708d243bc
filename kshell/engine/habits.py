"""Hints for users who type the options and commands of other tools: Kafka's own, kubectl, jq, psql.

A line that failed to parse comes in; the hint for its error message goes out. Nothing here makes such a line work. Each
proposed line is parsed first, so that the hint never proposes a wrong line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from kshell.engine import registry
from kshell.engine.arguments import flags_of, parse
from kshell.engine.declaration import Command
from kshell.engine.language import parse_line, quote
from kshell.errors import UsageError
from kshell.tree.paths import HOME, join

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--json": ("{name} -o json",),
    "--yaml": ("{name} -o yaml",),
    "--csv": ("{name} -o csv",),
    "--format": ("{name} -o {value}",),
    "export --csv": ("export --format csv {value}",),
    "export --json": ("export --format jsonl {value}",),
    "--sqlite": ("{name} --format sqlite {value}",),
    "--parquet": ("{name} --format parquet {value}",),
    "--topic": ("{name} --where 'topic == \"{value}\"'",),
    "topics --topic": ("topics --where 'name == \"{value}\"'",),
    "configs --topic": ("configs TOPIC:{value}",),
    "--broker": ("{name} --where 'broker == {value}'", "{name} --where 'leader == {value}'"),
    "what-if --broker": ("what-if --kill {value}",),
    "what-if --brokers": ("what-if --kill {value}",),
    "features --ready": ("features --can-upgrade {value}",),
    "brokers --broker": ("brokers --where 'id == {value}'",),
    "configs --broker": ("configs BROKER:{value}",),
    "--name": ("{name} -name {value}", "{name} --where 'name == \"{value}\"'"),
    "--entity-name": ("{name} TOPIC:{value}",),
    "--list": ("{name}",),
    "--describe": ("{name}",),
    "topics --describe": ("partitions",),
    "--offline": ("partitions --offline",),
    "--under-replicated": ("partitions --under-replicated",),
    "--under-min-isr": ("partitions --under-min-isr",),
    "--under-replicated-partitions": ("partitions --under-replicated",),
    "--under-min-isr-partitions": ("partitions --under-min-isr",),
    "--at-min-isr-partitions": ("partitions --at-min-isr",),
    "--unavailable-partitions": ("partitions --offline",),
    "--tail": ("{name} --newest-first --count {value}", "{name} --limit {value}"),
    "--last": ("{name} --newest-first --count {value}", "{name} --since end-{value}", "{name} --limit {value}"),
    "export --to": ("export {value}",),
    "save --to": ("save {value}",),
    "support-bundle --to": ("support-bundle {value}",),
    "--head": ("{name} --count {value}", "{name} --limit {value}"),
    "--limit": ("{name} --count {value}",),
    "--count": ("{name} --limit {value}",),
    "--offset": ("{name} {value}", "explain {value}"),
    "--start": ("{name} --since {value}",),
    "--from": ("{name} --since {value}",),
    "--since": ("{name} --from {value}",),
    "--end": ("{name} --until {value}", "{name} --to {value}"),
    "--until": ("{name} --to {value}",),
    "--depth": ("{name} -L {value}",),
    "--filter": ("{name} --grep {value}",),
    "--fields": ("{name} --columns {value}",),
    "--order-by": ("{name} --sort {value}",),
    "--at": ("{name} --as-of {value}",),
    "--time": ("{name} --as-of {value}",),
    "--watch": ("watch {name}",),
    "--times": ("watch --times {value} {name}",),
    "--interval": ("watch --interval {value} {name}",),
    "-w": ("watch {name}",),
    "-f": ("follow", "watch {name}"),
    "--file": ("{name} --to {value}",),
}
"""An unknown option, perhaps after the name of the only command that it is meant for -> lines to use in its place, the
best first. The first line that the parser accepts is proposed. ``{name}`` is the command, ``{value}`` the option's
value."""

_ALERT = "`partitions --under-min-isr --fail-if-any` ends with 1 where a row is left, and so does `health`"
_CHANGES = "`diff end-10m now` says what changed, `log --since end-10m` in which order"
COMMANDS: Mapping[str, str] = {
    "list": "`topics` lists topics, `brokers` brokers, `ls` what is at a path",
    "describe": "`why TOPIC` shows the story of a topic, `partitions` and `configs` list what it has",
    "get": "`cat PATH` prints a value, `topics` and the like are tables",
    "show": "`cat PATH` prints a value, `topics` and the like are tables",
    "logs": "`log` has the metadata log's records, `follow` those that come",
    "tail": "`follow` has the records that come, `log -r --count 10` the last ones",
    "events": "`log` has the metadata log's records, `timeline` what happened over time",
    "alert": _ALERT,
    "alerting": _ALERT,
    "alerts": _ALERT,
    "audit": "`blame /image/configs` names the records of changes, `report --to FILE` has all on a page",
    "upgrade": "`features --can-upgrade 4.4` says whether a level can be raised, `compat` what running nodes support",
    "ready": "`features --can-upgrade 4.4` says whether all nodes are, `registrations` what each supports",
    "broker": "`why broker-1` shows its story, `brokers` lists all",
    "changed": _CHANGES,
    "changes": _CHANGES,
    "cron": _ALERT,
    "csv": "`topics -o csv` prints a table so, `export --format csv DIR` writes all of them",
    "failover": "`what-if --kill 2` says what happens when a broker dies, `drain-check 2` whether one can go",
    "isr": "`partitions --under-replicated` lists where it is short, `why orders-0` how it came to that",
    "leader": "`partitions` has the leaders, `quorum` the active controller",
    "leaders": "`partitions` has them, `skew` how they are spread",
    "check": "`health` says what is wrong with the cluster, `verify` what is wrong with the files",
    "monitor": _ALERT,
    "monitoring": _ALERT,
    "nagios": _ALERT,
    "nodes": "`brokers` and `controllers` list them, `why broker-1` shows the story of one",
    "offline": "`partitions --offline` lists them, `why TOPIC-0` says why",
    "parquet": "`export --format parquet DIR` writes all tables so",
    "permissions": "`acls` lists ACLs, `can User:alice READ TOPIC:orders` asks what they allow",
    "prometheus": _ALERT,
    "snapshot": "`info` lists the snapshots of a directory, `verify` checks them",
    "select": "`sql 'SELECT …'` asks the tables; in the shell, a line that begins with SELECT does, too",
    "sqlite": "`export --format sqlite DIR` writes all tables so",
    "under-min-isr": "`partitions --under-min-isr` lists them",
    "who": "`blame /image/configs` names the records; who sent them is in no log of Kafka's but the authorizer's",
    "backup": "`save DIR` writes a copy that Kafka's own tools read",
    "restore": "`recover DIR` plans a new quorum from the copies that are left",
    "acl": "`acls` lists ACLs, `can User:alice READ TOPIC:orders` asks what they allow",
    "compare": "`diff A B` compares two moments or two sources, `compare-logs DIR DIR` copies of one log",
    "?": "`help` lists the commands by task",
    "h": "`help` lists the commands by task",
    "kafka-topics": "`topics` and `partitions` are in its place",
    "kafka-configs": "`configs` is in its place; `quotas` and `users` have those of users",
    "kafka-acls": "`acls` is in its place",
    "kafka-features": "`features` is in its place",
    "kafka-metadata-quorum": "`quorum` is in its place",
    "kafka-dump-log": "`dump` is in its place",
    "kafka-metadata-shell": "`ls`, `cat PATH` and `find` are here, too",
    "kafka-broker-api-versions": "`api-versions` is in its place",
    "kafka-log-dirs": "`strays` compares log directories with the metadata",
    "kafka-leader-election": "kshell changes nothing: `what-if --unclean orders-0` says what an election would do",
    "kafka-reassign-partitions": "kshell changes nothing: `partitions --reassigning` shows what is moved",
    "kafka-delegation-tokens": "`tokens` is in its place",
    "kafka-cluster": "`status` has the cluster's id",
    "kafka-storage": "`info` has what a directory was formatted with",
}
"""A word that was typed as a command, without ``.sh`` -> the hint that names kshell's commands for it."""
_HOST = re.compile(r"[\w.-]+:\d{2,5}", re.ASCII)
_PARTITION = re.compile(r"(.+)-(0|[1-9]\d*)", re.ASCII)
"""``TOPIC-NUMBER``, which names a partition in ``why`` and in Kafka's own tools."""
_PRINCIPALS = ("principal", "owner")
"""Columns whose values are of the form ``User:alice``."""
_UNKNOWN = "…"
_EXAMPLES = ("1", "json")
"""Values with which a proposal is parsed if the user gave none."""


def option_hint(command: Command, option: str, value: str | None) -> str | None:
    """Return a hint for an option that the command does not have; ``None`` if none is known.

    Args:
        command: the command of the line.
        option: as typed, ``--json``.
        value: the value that was typed with it, if any.
    """
    if command.name == "alias":
        return "quote a meaning that has options: `alias NAME 'LINE'`"
    for template in (*OPTIONS.get(f"{command.name} {option}", ()), *OPTIONS.get(option, ())):
        for tried in (value, *_EXAMPLES):
            if tried is not None and _is_understood(template.format(name=command.name, value=quote(tried))):
                placeholder = quote(tried) if tried == value else _UNKNOWN
                return f"did you mean `{template.format(name=command.name, value=placeholder)}`?"
    return None


def command_hint(word: str) -> str | None:
    """Return a hint for a word that is no command, such as another tool, a directory or a host; else ``None``."""
    hint = COMMANDS.get(word.removesuffix(".sh").lower())
    if hint is not None:
        return hint
    if " " in word.strip():
        return f"a line in quotes follows -c: `kshell … -c {quote(word)}`"
    if os.path.isdir(word):
        return f"{word} is a directory: `kshell -d {quote(word)} …` reads it"
    return f"`kshell -q {word} …` connects to controllers, `-b` to brokers" if _HOST.fullmatch(word) else None


def excess_hint(command: Command, arguments: SimpleNamespace, excess: Sequence[str]) -> str | None:
    """Return a hint for extra words: what ``Command.extra_words_for`` says they are for, or that a source comes first.

    Args:
        command: the command of the line.
        arguments: its arguments as far as they were parsed.
        excess: the extra words.
    """
    for line in _lines_for(command, arguments, list(map(str, excess))):
        if _is_understood(line):
            return f"did you mean `{line}`?"
    first = str(excess[0])
    if f"{first}/".startswith(f"{join(HOME)}/"):
        takes = "one path" if any(arg.name in ("path", "target") for arg in command.args) else "no path of the tree"
        return f"`{command.name}` takes {takes}"
    if command.needs_source and "\0" not in first and (os.path.exists(os.path.expanduser(first)) or os.sep in first):
        return f"the source comes first: `kshell -d {quote(first)} {command.name}`"
    return None


def _lines_for(command: Command, arguments: SimpleNamespace, excess: list[str]) -> list[str]:
    """Return the lines that the user may have meant with the extra words, the most likely first."""
    if not command.extra_words_for:
        return _typed_names(command, arguments, excess)
    if any(arg.name == command.extra_words_for for arg in command.args):
        return [f"{command.name} {quote(' '.join([str(getattr(arguments, command.extra_words_for)), *excess]))}"]
    option = next((flag for flag in flags_of(command) if command.extra_words_for in flag.names), None)
    if option is not None:
        listed = getattr(arguments, option.dest)
        values = [*map(str, listed if isinstance(listed, tuple) else ()), *excess]
        choices = [values, values[1:]] if len(values) > 1 else [values]  # `what-if broker 2`
        return [f"{command.name} {command.extra_words_for} {quote(','.join(chosen))}" for chosen in choices]
    if command.extra_words_for in _PRINCIPALS:
        excess = [word if ":" in word else f"User:{word}" for word in excess]
    texts = [", ".join(f'"{word}"' for word in excess), ", ".join(word.removeprefix("broker-") for word in excess)]
    compare = f"{command.extra_words_for} == {{}}" if len(excess) == 1 else f"{command.extra_words_for} in [{{}}]"
    conditions = [compare.format(text) for text in texts]
    partition = _PARTITION.fullmatch(excess[0]) if len(excess) == 1 and command.extra_words_for == "topic" else None
    if partition is not None:
        conditions.insert(0, f'{conditions[0]} or topic == "{partition[1]}" and partition == {partition[2]}')
    return [f"{command.name} --where {quote(condition)}" for condition in conditions]


def _typed_names(command: Command, arguments: SimpleNamespace, excess: list[str]) -> list[str]:
    """Correct a line such as ``can alice read topic orders`` to ``can User:alice READ TOPIC:orders``."""
    values = [str(getattr(arguments, arg.name)) for arg in command.args]
    if [arg.name for arg in command.args] != ["principal", "operation", "resource"] or len(excess) != 1:
        return []
    principal, operation, kind = values
    principal = principal if ":" in principal else f"User:{principal}"
    return [f"{command.name} {quote(principal)} {operation.upper()} {quote(f'{kind.upper()}:{excess[0]}')}"]


def _is_understood(line: str) -> bool:
    try:
        name, *words = [word.text for word in parse_line(line).words]
        command = registry.get(name)
        arguments = parse(command, words, explains=False)
        # Some commands convert the condition after parsing (`when`): then it is not known whether it is valid.
        return "--where" not in words or callable(arguments.where)
    except UsageError:
        return False
