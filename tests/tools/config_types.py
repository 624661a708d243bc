"""Regenerate ``kshell/metadata/config_types.py`` from Kafka's own classes: ``python -m tests.tools.config_types``.

Runs ``ConfigTypes`` of ``tests/kafka/java`` on every release line and joins what they say: type and default of the
newest release that has a key, and every rule for its values that some release has, the newest first. A key that is a
PASSWORD in any release is written as one, so that its values stay hidden.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tests.kafka import jars

RELEASES = ("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1", "4.4.0")
TYPES = ("BROKER", "TOPIC", "GROUP", "CLIENT_METRICS")
TARGET = Path(__file__).parents[2] / "kshell" / "metadata" / "config_types.py"
ANYTHING = ("", "list:")

HEADER = '''"""Types, valid values and defaults of the config keys that Kafka defines, by resource type.

Generated; do not edit. Regenerate: ``python -m tests.tools.config_types`` (Java and Maven needed). The facts are read
out of Kafka's own classes: the schema that a controller uses, and the classes that validate dynamic broker, group and
client metrics configs; of the releases
{releases}.

``TABLE[resource type]`` is text: one word a key, ``key:TYPE:rules:default``. Type and default are the newest release's,
but a key that is a PASSWORD in any release is one here: its values are secrets. Rules are separated by ``|``, that of
the newest release first: ``1..5`` (either end may be open), ``in:a,b`` (one of those), ``IN:a,b`` (in any case),
``list:a,b`` (a list of those), ``*`` or no rule at all (anything). The default is URL-encoded, ``-`` for none.

Broker keys may be stored with a prefix: ``listener.name.<listener>.<key>`` (security settings such as ``ssl.*`` and
``sasl.*``, ``principal.builder.class``, ``max.connections``, ``max.connection.creation.rate``), and those of
``PER_MECHANISM``, which are set for one SASL mechanism of one listener, as
``listener.name.<listener>.<mechanism>.<key>``. Kafka takes what follows the listener's name, which holds no dot, and
then the ``PER_MECHANISM`` key that it ends with, if any. Only ``BROKER`` keys have prefixes.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

NEWEST = "{newest}"
LISTENER_PREFIX = "listener.name."
PER_MECHANISM = frozenset(
    """
    connections.max.reauth.ms sasl.jaas.config sasl.login.callback.handler.class sasl.login.class
    sasl.server.callback.handler.class
    """.split()
)


class KnownType(NamedTuple):
    """A key as Kafka defines it. ``rules``: what each release line takes, the newest's first; empty for anything."""

    type: str
    rules: tuple[str, ...]
    encoded_default: str

    @property
    def is_password(self) -> bool:
        """Whether the key's values are secrets."""
        return self.type == "PASSWORD"

    @property
    def default(self) -> str | None:
        """The value that Kafka uses if the key is not set; None if there is none."""
        from urllib.parse import unquote  # late: whether a value is secret does not depend on it

        return None if self.encoded_default == "-" else unquote(self.encoded_default)


@cache
def known_types(resource_type: str) -> dict[str, KnownType]:
    """Every key of a resource type (``TOPIC``, ``BROKER``, ``GROUP``, ``CLIENT_METRICS``); empty for others."""
    types = {{}}
    for definition in TABLE.get(resource_type, "").split():
        key, kind, rest = definition.split(":", 2)
        rules, _, default = rest.rpartition(":")  # only rules hold more colons
        types[key] = KnownType(kind, tuple(rules.split("|")) if rules else (), default)
    return types


def known_key(resource_type: str, key: str) -> KnownType | None:
    """Return what Kafka declares of a key, which may have a prefix; None if no release knows the key."""
    types_by_key = known_types(resource_type)
    if resource_type == "BROKER" and key.startswith(LISTENER_PREFIX):
        rest = key.removeprefix(LISTENER_PREFIX).partition(".")[2]
        key = next((mechanism_key for mechanism_key in PER_MECHANISM if rest.endswith(f".{{mechanism_key}}")), rest)
    return types_by_key.get(key)


'''


def collect() -> dict[str, dict[str, tuple[str, list[str], str]]]:
    """Return resource type -> key -> (type, rules, default)."""
    found: dict[str, dict[str, tuple[str, list[str], str]]] = {kind: {} for kind in TYPES}
    for release in reversed(RELEASES):
        for line in jars.run(jars.classes(release, "ConfigTypes"), "ConfigTypes").splitlines():
            kind, key, value_type, rule, default = line.split("\t")
            newest_type, rules, newest_default = found[kind].get(key, (value_type, [], default))
            found[kind][key] = ("PASSWORD" if value_type == "PASSWORD" else newest_type, rules, newest_default)
            rule = "*" if rule in ANYTHING else rule
            if rule not in rules:
                rules.append(rule)
    return found


def render() -> str:
    """Return the module's text."""
    out = [HEADER.format(releases=", ".join(RELEASES), newest=".".join(RELEASES[-1].split(".")[:2]))]
    out.append("TABLE: dict[str, str] = {\n")
    for kind, keys in collect().items():
        words = []
        for key, (value_type, rules, default) in sorted(keys.items()):
            words.append(f"{key}:{value_type}:{'' if rules == ['*'] else '|'.join(rules)}:{default}")
        text = textwrap.fill(
            " ".join(words), 120, initial_indent="      ", subsequent_indent="      ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        out.append(f'    "{kind}": """\n{text}\n    """,\n')
    out.append("}\n")
    return "".join(out)


if __name__ == "__main__":
    TARGET.write_text(render())
    sys.stderr.write(f"wrote {TARGET}\n")
