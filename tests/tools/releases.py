"""Make or check ``kshell/client/releases_table.py`` from Kafka's jars: ``python -m tests.tools.releases [--check]``.

Fetches ``kafka-clients`` of the first and the last patch release of every line from Maven (once, about 260 MB, below
the cache of ``tests/kafka/jars.py``), and asks each jar's ``ApiKeys`` which versions a server of that release offers,
by kind of listener. What a server adds of its own (features, APIs that need a plugin) is in
``kshell/client/releases.py``, held against real servers by ``tests/client/test_releases.py``. With ``--check`` nothing
is written: exit code 1 and the differing lines, if there are any.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kshell.protocol.names import API_NAMES
from tests.kafka import jars

Ranges = dict[int, tuple[int, int]]

TARGET = Path(__file__).parents[2] / "kshell" / "client" / "releases_table.py"
KINDS = {"ZK_BROKER": "ZOOKEEPER_BROKERS", "BROKER": "BROKERS", "CONTROLLER": "CONTROLLERS"}
PATCHES = """
0.10.0.0 0.10.0.1 0.10.1.0 0.10.1.1 0.10.2.0 0.10.2.2 0.11.0.0 0.11.0.3 1.0.0 1.0.2 1.1.0 1.1.1 2.0.0 2.0.1 2.1.0 2.1.1
2.2.0 2.2.2 2.3.0 2.3.1 2.4.0 2.4.1 2.5.0 2.5.1 2.6.0 2.6.3 2.7.0 2.7.2 2.8.0 2.8.2 3.0.0 3.0.2 3.1.0 3.1.2 3.2.0 3.2.3
3.3.0 3.3.2 3.4.0 3.4.1 3.5.0 3.5.2 3.6.0 3.6.2 3.7.0 3.7.2 3.8.0 3.8.1 3.9.0 3.9.2 4.0.0 4.0.1 4.0.2 4.1.0 4.1.2 4.2.0
4.2.2 4.3.0 4.3.1 4.4.0
""".split()
"""First and last patch release of each line, and those between where these two differ."""

ENVELOPE = 58
ENVELOPE_TOO = ("2.8", "3.0", "3.1")
"""In these lines a KRaft broker added Envelope to its answer by hand (Kafka's ``DefaultApiVersionManager``)."""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kshell.tests</groupId><artifactId>clients</artifactId><version>1</version><packaging>pom</packaging>
<build><plugins><plugin><artifactId>maven-dependency-plugin</artifactId><configuration>
<outputDirectory>{out}</outputDirectory><artifactItems>{items}</artifactItems>
</configuration></plugin></plugins></build></project>
"""
ITEM = "<artifactItem><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></artifactItem>\n"
RUNTIME = [
    ("org.slf4j", "slf4j-api", "1.7.36"), ("org.slf4j", "slf4j-nop", "1.7.36"),
    ("com.fasterxml.jackson.core", "jackson-core", "2.16.2"),
    ("com.fasterxml.jackson.core", "jackson-annotations", "2.16.2"),
    ("com.fasterxml.jackson.core", "jackson-databind", "2.16.2"),
]  # fmt: skip
"""What the classes of some release need to load at all."""

PROGRAM = r"""
import java.lang.reflect.*;
import java.net.*;
import java.nio.file.Path;
import java.util.Optional;

public class ApiRanges {
    static Object call(Object target, String name, Object... args) throws Exception {
        for (Method method : target.getClass().getMethods())
            if (method.getName().equals(name) && method.getParameterCount() == args.length)
                return method.invoke(target, args);
        throw new NoSuchMethodException(name);
    }

    static boolean has(Class<?> type, String name) {
        for (Method method : type.getMethods()) if (method.getName().equals(name)) return true;
        return false;
    }

    static Object field(Object target, String name, Object otherwise) throws Exception {
        try { return target.getClass().getField(name).get(target); }
        catch (NoSuchFieldException e) { return otherwise; }
    }

    static short declared(Class<?> type, String name, int index) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return Array.getShort(field.get(null), index);
    }

    static String range(ClassLoader loader, Object key, Object listener, boolean unstable) throws Exception {
        Optional<?> found = null;
        if (has(key.getClass(), "toApiVersionForApiResponse"))
            found = (Optional<?>) call(key, "toApiVersionForApiResponse", unstable, listener);
        else if (has(key.getClass(), "toApiVersion")) found = (Optional<?>) call(key, "toApiVersion", unstable);
        if (found != null)
            return found.isEmpty() ? "-" : call(found.get(), "minVersion") + "-" + call(found.get(), "maxVersion");
        if (has(key.getClass(), "latestVersion")) return call(key, "oldestVersion") + "-" + call(key, "latestVersion");
        Class<?> protocol = loader.loadClass("org.apache.kafka.common.protocol.Protocol");
        int id = (short) field(key, "id", null);
        return declared(protocol, "MIN_VERSIONS", id) + "-" + declared(protocol, "CURR_VERSION", id);
    }

    static void print(String name, Object kind, ClassLoader loader, Object key, Object listener) throws Exception {
        System.out.println(String.join("\t", name, kind.toString(), field(key, "id", null).toString(),
            range(loader, key, listener, false), range(loader, key, listener, true),
            field(key, "forwardable", false).toString()));
    }

    public static void main(String[] jars) throws Exception {
        for (String jar : jars) {
            URL[] urls = {Path.of(jar).toUri().toURL()};
            ClassLoader loader = new URLClassLoader(urls, ApiRanges.class.getClassLoader());
            String name = Path.of(jar).getFileName().toString().replaceAll("kafka-clients-|\\.jar", "");
            Object[] keys = loader.loadClass("org.apache.kafka.common.protocol.ApiKeys").getEnumConstants();
            Object[] listeners = null;
            try {
                String type = "org.apache.kafka.common.message.ApiMessageType$ListenerType";
                listeners = loader.loadClass(type).getEnumConstants();
            } catch (ClassNotFoundException e) { }
            for (Object key : keys)
                if (listeners != null) {
                    for (Object listener : listeners)
                        if ((boolean) call(key, "inScope", listener)) print(name, listener, loader, key, listener);
                } else if ((boolean) field(key, "isEnabled", true)) print(name, "ZK_BROKER", loader, key, null);
        }
    }
}
"""

HEADER = '''"""Which versions of which APIs servers of each Kafka release offer: facts, as text.

Generated by ``python -m tests.tools.releases`` from the ``ApiKeys`` of the kafka-clients jars {first} to {last}; do not
edit. ``kshell/client/releases.py`` reads it and says what the texts mean.

A name at the margin is a release; below it is what differs from the release before it, for the same kind of server:
``Fetch 0-13``: offered from 0 to 13 · ``Vote 0``: version 0 only · ``Fetch none``: not offered any more.
"""

from __future__ import annotations

'''
UNSTABLE = '''{name} = """
{text}
"""
"""What a server of that very release offers instead with ``unstable.api.versions.enable=true``."""

'''


class Row(NamedTuple):
    """What one release says about one API at one kind of server; ``None``: not offered."""

    patch: str
    kind: str
    key: int
    stable: tuple[int, int] | None
    unstable: tuple[int, int] | None
    forwardable: bool


def line_of(patch: str) -> str:
    """``"3.9.2"`` -> ``"3.9"``, ``"0.10.2.1"`` -> ``"0.10.2"``: what the field calls a release."""
    parts = patch.split(".")
    return ".".join(parts[: 3 if parts[:2] == ["0", "10"] else 2])


def fetch(patches: Iterable[str]) -> Path:
    """Return the directory with these kafka-clients jars and what they need, asking Maven for the missing ones."""
    out = jars.cache() / "clients"
    wanted = [*RUNTIME, *(("org.apache.kafka", "kafka-clients", patch) for patch in patches)]
    missing = [item for item in wanted if not (out / f"{item[1]}-{item[2]}.jar").exists()]
    if missing:
        out.mkdir(parents=True, exist_ok=True)
        pom = out / "pom.xml"
        pom.write_text(POM.format(out=out, items="".join(ITEM.format(*item) for item in missing)))
        command = [jars.program("mvn"), "-q", "-B", "-f", str(pom), "dependency:copy"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return out


def read(paths: Iterable[Path]) -> list[Row]:
    """Return everything that the classes in these kafka-clients jars say, by running one Java program on them."""
    directory = fetch(())
    class_path = ":".join(str(directory / f"{name}-{version}.jar") for _, name, version in RUNTIME)
    with tempfile.TemporaryDirectory() as work:
        source = Path(work, "ApiRanges.java")
        source.write_text(PROGRAM)
        command = [jars.program("java"), "-Xmx512m", "-cp", class_path, str(source), *map(str, paths)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return [Row(p, kind, int(key), _range(s), _range(u), forward == "true") for p, kind, key, s, u, forward in rows]


def _range(text: str) -> tuple[int, int] | None:
    low, _, high = text.partition("-")
    return (int(low), int(high)) if low else None


def offered(rows: Iterable[Row], patch: str, kind: str) -> Ranges:
    """Return what one release offers at one kind of server."""
    ranges = {row.key: row.stable for row in rows if row.patch == patch and row.kind == kind and row.stable}
    if kind == "BROKER" and line_of(patch) in ENVELOPE_TOO:
        ranges[ENVELOPE] = (0, 0)
    return ranges


def changes(before: Ranges, now: Ranges) -> list[str]:
    """Return the words that lead from one set of ranges to another, by API key."""
    words = []
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            words.append(f"{API_NAMES[key]} {_words(now.get(key))}")
    return words


def _words(versions: tuple[int, int] | None) -> str:
    if versions is None:
        return "none"
    low, high = versions
    return str(low) if low == high else f"{low}-{high}"


def stanza(release: str, words: list[str]) -> str:
    """Return one release's part of a text."""
    if not words:
        return release
    joined = ", ".join(word.replace(" ", "\0") for word in words)  # an API stays on one line with its versions
    return f"{release}\n" + textwrap.fill(
        joined, 118, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    ).replace("\0", " ")


def stanzas(rows: list[Row], kind: str) -> Iterator[str]:
    """Yield the releases of one kind of server: each the last patch release of its line, as a diff."""
    before: Ranges = {}
    for line, patches in lines().items():
        now = offered(rows, patches[-1], kind)
        if now:
            yield stanza(line, changes(before, now))
            before = now


def exceptions(rows: list[Row], kind: str) -> Iterator[str]:
    """Yield the patch releases that differ from the last one of their line."""
    for patches in lines().values():
        last = offered(rows, patches[-1], kind)
        for patch in patches[:-1]:
            if words := changes(last, offered(rows, patch, kind)):
                yield stanza(patch, words)


def unstable(rows: list[Row], kind: str) -> Iterator[str]:
    """Yield what releases offer only when unstable APIs are on."""
    for line, patches in lines().items():
        mine = [row for row in rows if row.patch == patches[-1] and row.kind == kind and row.unstable != row.stable]
        if mine:
            yield stanza(line, [f"{API_NAMES[row.key]} {_words(row.unstable)}" for row in mine])


def lines() -> dict[str, list[str]]:
    """Return the patch releases by line, both oldest first."""
    out: dict[str, list[str]] = {}
    for patch in PATCHES:
        out.setdefault(line_of(patch), []).append(patch)
    return out


def render(rows: list[Row]) -> str:
    """Return the module's text."""
    out = [HEADER.format(first=PATCHES[0], last=PATCHES[-1])]
    for kind, name in KINDS.items():
        out.append(f'{name} = """\n' + "\n".join(stanzas(rows, kind)) + '\n"""\n\n')
    for kind, name in KINDS.items():
        if odd := list(exceptions(rows, kind)):
            out.append(f'{name}_PATCHES = """\n' + "\n".join(odd) + '\n"""\n')
            out.append('"""How single patch releases differ from the last one of their line."""\n\n')
    for kind, name in KINDS.items():
        if loose := list(unstable(rows, kind)):
            out.append(UNSTABLE.format(name=f"{name}_UNSTABLE", text="\n".join(loose)))
    passed_on = sorted({row.key for row in rows if row.forwardable})
    names = textwrap.fill(" ".join(API_NAMES[key] for key in passed_on), 118)
    out.append(f'FORWARDED = """\n{names}\n"""\n')
    out.append(
        '"""APIs that a KRaft broker passes on: it offers what it and the active controller have in common."""\n'
    )
    return "".join(out)


def main(arguments: list[str]) -> int:
    """Write the module, or say how it differs."""
    directory = fetch(PATCHES)
    text = render(read([directory / f"kafka-clients-{patch}.jar" for patch in PATCHES]))
    if arguments != ["--check"]:
        TARGET.write_text(text)
        return 0
    differences = list(
        difflib.unified_diff(TARGET.read_text().splitlines(), text.splitlines(), "table", "jars", "", "", 0)
    )
    print("\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
