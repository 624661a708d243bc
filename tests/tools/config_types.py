"""Regenerate ``kshell/metadata/config_types.py`` from Kafka's own classes: ``python -m tests.tools.config_types``.

Runs ``ConfigTypes`` of ``tests/kafka/java`` on every release line and joins what they say: type and default of the
newest release that has a key, and every rule for its values that some release has, the newest first.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tests.kafka import jars
from tests.tools.config_keys import RELEASES, TYPES

TARGET = Path(__file__).parents[2] / "kshell" / "metadata" / "config_types.py"
ANYTHING = ("", "list:")

HEADER = '''"""Types, valid values and defaults of the config keys that Kafka defines, by resource type.

Generated; do not edit. Regenerate: ``python -m tests.tools.config_types`` (Java and Maven needed). The facts are read
out of Kafka's own classes, of the releases
{releases}.

``TABLE[resource type]`` is text: one word a key, ``key:TYPE:rules:default``. Rules are separated by ``|``, that of the
newest release first: ``1..5`` (either end may be open), ``in:a,b`` (one of those), ``IN:a,b`` (in any case),
``list:a,b`` (a list of those), ``*`` or no rule at all (anything). The default is URL-encoded, ``-`` for none.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

NEWEST = "{newest}"


class KnownType(NamedTuple):
    """A key as Kafka defines it. ``rules``: what each release line takes, the newest's first; empty for anything."""

    type: str
    rules: tuple[str, ...]
    default: str | None


@cache
def known_types(resource_type: str) -> dict[str, KnownType]:
    """Every key of a resource type (``TOPIC``, ``BROKER``, ``GROUP``, ``CLIENT_METRICS``); empty for others."""
    from urllib.parse import unquote

    types = {{}}
    for definition in TABLE.get(resource_type, "").split():
        key, kind, rest = definition.split(":", 2)
        rules, _, default = rest.rpartition(":")  # only rules hold more colons
        listed = tuple(rules.split("|")) if rules else ()
        types[key] = KnownType(kind, listed, None if default == "-" else unquote(default))
    return types


'''


def collect() -> dict[str, dict[str, tuple[str, list[str], str]]]:
    """Return resource type -> key -> (type, rules, default)."""
    found: dict[str, dict[str, tuple[str, list[str], str]]] = {kind: {} for kind in TYPES}
    for release in reversed(RELEASES):
        for line in jars.run(jars.classes(release, "ConfigTypes"), "ConfigTypes").splitlines():
            kind, key, value_type, rule, default = line.split("\t")
            rules = found[kind].setdefault(key, (value_type, [], default))[1]
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
