"""Regenerate ``kshell/metadata/config_keys.py`` from Kafka's own classes: ``python -m tests.tools.config_keys``.

Runs ``ConfigKeys`` of ``tests/kafka/java`` on every release line that the redaction table covers, takes the union, and
writes the module. A key that is a PASSWORD in any release is sensitive; a key of any other type in all is known.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tests.kafka import jars

RELEASES = ("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.0", "4.1.1", "4.2.1", "4.3.1", "4.4.0")
TYPES = ("BROKER", "TOPIC", "GROUP", "CLIENT_METRICS")
TARGET = Path(__file__).parents[2] / "kshell" / "metadata" / "config_keys.py"

HEADER = '''"""Config keys that Kafka defines, by resource type: which are sensitive, and which are known at all.

Generated; do not edit. Regenerate: ``python -m tests.tools.config_keys`` (Java and Maven needed). The facts are read
out of Kafka's own classes: the schema that a controller uses, and the classes that validate dynamic broker, group and
client metrics configs; the union over the releases
{releases}.

- ``SENSITIVE[type]``: keys of ConfigDef type PASSWORD in some release. Their values are secrets.
- ``ALL_KEYS[type]``: every key of that type, the sensitive ones included. A key that is missing here is unknown, and
  Kafka's policy treats an unknown key as sensitive. A resource type that is missing here has no known keys.
- ``PER_MECHANISM``: broker keys that are set for one SASL mechanism of one listener, and then carry both names.

Broker keys may be stored with a prefix: ``listener.name.<listener>.<key>`` (security settings such as ``ssl.*`` and
``sasl.*``, ``principal.builder.class``, ``max.connections``, ``max.connection.creation.rate``), and those of
``PER_MECHANISM`` as ``listener.name.<listener>.<mechanism>.<key>``. Kafka takes what follows the listener's name, which
holds no dot, and then the ``PER_MECHANISM`` key that it ends with, if any. Only ``BROKER`` keys have prefixes.
"""

from __future__ import annotations

PER_MECHANISM = frozenset(
    """
    connections.max.reauth.ms sasl.jaas.config sasl.login.callback.handler.class sasl.login.class
    sasl.server.callback.handler.class
    """.split()
)

'''


def collect() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the known and the sensitive keys by resource type name, over all releases."""
    known: dict[str, set[str]] = {kind: set() for kind in TYPES}
    sensitive: dict[str, set[str]] = {kind: set() for kind in TYPES}
    for release in RELEASES:
        for line in jars.run(jars.classes(release, "ConfigKeys"), "ConfigKeys").splitlines():
            kind, key, value_type = line.split("\t")
            known[kind].add(key)
            if value_type == "PASSWORD":
                sensitive[kind].add(key)
    return known, sensitive


def block(keys: set[str], indent: str) -> str:
    """Return keys as an indented text block for ``frozenset``."""
    if not keys:
        return "frozenset()"
    text = textwrap.fill(
        " ".join(sorted(keys)), 118, initial_indent=indent + "    ", subsequent_indent=indent + "    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return f'frozenset(\n{indent}    """\n{text}\n{indent}    """.split()\n{indent})'


def render() -> str:
    """Return the module's text."""
    known, sensitive = collect()
    out = [HEADER.format(releases=", ".join(RELEASES))]
    out.append("SENSITIVE: dict[str, frozenset[str]] = {\n")
    out.extend(f'    "{kind}": {block(sensitive[kind], "    ")},\n' for kind in TYPES)
    out.append("}\n\nKNOWN: dict[str, frozenset[str]] = {\n")
    for kind in TYPES:
        plain = block(known[kind] - sensitive[kind], "    ")
        out.append(f'    "{kind}": SENSITIVE["{kind}"]\n    | {plain},\n')
    out.append("}\n")
    return "".join(out)


if __name__ == "__main__":
    TARGET.write_text(render())
    sys.stderr.write(f"wrote {TARGET}\n")
