"""What is fuzzed: functions of bytes that may raise typed errors, and nothing else."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable
from typing import Final

from kshell.client import properties
from kshell.client.sasl.configuration import JaasError, parse_jaas
from kshell.commands import strays
from kshell.engine import execution, language
from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.metadata.history import Recorder
from kshell.metadata.records import decode_record, decode_value
from kshell.protocol.api import Api, decode_response
from kshell.protocol.batches import iter_records, pack, write_batch
from kshell.protocol.compression import decompress
from kshell.protocol.control import decode_control
from kshell.protocol.messages import access, cluster, configs, connection, drafts, quorum
from kshell.protocol.primitives import DecodeError
from kshell.protocol.verify import Chain, LeaderEpochs
from kshell.sources.directory import sidecar_files
from kshell.sources.directory.files import Listing
from kshell.sources.points import parse_point
from kshell.tables.where import compile_where, complete_where
from kshell.tree import globs
from tests.builders import FIXTURES, TIME, sealed
from tests.commands.shell import opened
from tests.server.frames import decode_header

Target = Callable[[bytes], object]
_SECONDS: Final = 1_800_000_000


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# --- bytes ------------------------------------------------------------------------------------------------------------


def record(data: bytes) -> None:
    """A record's value, alone."""
    decode_value(data)


def control(data: bytes) -> None:
    """A control record: its key and its value."""
    size = data[0] % 12 if data else 0
    decode_control(data[1 : 1 + size], data[1 + size :])


def batches(data: bytes) -> None:
    """A segment, as it is."""
    for batch in Chain(LeaderEpochs([]), None).walk(data, "log"):
        for raw in iter_records(batch):
            decode_record(raw, control=batch.is_control)


def sealed_batch(data: bytes) -> None:
    """A batch whose length and checksum are right: what is inside of it is the fuzzer's."""
    if len(data) >= 61:
        batches(sealed(bytes(8) + (len(data) - 12).to_bytes(4, "big") + bytes(4) + b"\2" + data[17:]))


def replay(data: bytes) -> None:
    """Records, one a line of the input (0x0A is escaped as 0x0B 0x0A), replayed and looked at."""
    values = [part.replace(b"\x0b\x00", b"\n").replace(b"\x0b\x01", b"\x0b") for part in data.split(b"\n")]
    raw = write_batch([(None, value) for value in values], base_offset=0, epoch=1, timestamp=TIME)
    recorder = Recorder()
    for batch in Chain(LeaderEpochs([]), None).walk(raw, "log"):
        recorder.log_batch(batch, "log")
    recorder.image()
    recorder.history.at(len(values) // 2)


def compressed(data: bytes) -> None:
    """Bytes of a codec, whose number is the first."""
    if data:
        decompress(1 + data[0] % 4, data[1:])


def records_of_batch(data: bytes) -> None:
    """The records' region of a batch, behind a count that is right or not."""
    if data:
        raw = bytearray(write_batch([(None, b"")], base_offset=0, epoch=1, timestamp=TIME)[:61] + data[1:])
        count = data[0] % 9
        raw[8:12], raw[23:27], raw[57:61] = (
            (len(raw) - 12).to_bytes(4, "big"),
            max(count - 1, 0).to_bytes(4, "big"),
            count.to_bytes(4, "big"),
        )
        batches(sealed(raw))


_APIS = [
    each
    for module in (access, cluster, configs, connection, drafts, quorum)
    for each in vars(module).values()
    if isinstance(each, Api)
]


def response(data: bytes) -> None:
    """A server's answer: the API and its version are the first two bytes."""
    if len(data) > 2:
        api = _APIS[data[0] % len(_APIS)]
        versions = api.response.versions
        version = versions.low + data[1] % ((versions.high or 0) - versions.low + 1)
        decode_response(api, version, data[2:])


def request(data: bytes) -> None:
    """The head of a request, as the tests' servers read it."""
    decode_header(data, 0)


# --- files ------------------------------------------------------------------------------------------------------------


def sidecars(data: bytes) -> None:
    """The small text files beside a log, each of them these bytes."""
    text = _text(data)
    names = ("quorum-state", "leader-epoch-checkpoint", "partition.metadata", "meta.properties", "../meta.properties")
    listing = Listing(None, (), (), sidecar_texts=dict.fromkeys(names, text))
    notes: list[str] = []
    sidecar_files.quorum_state(listing, notes)
    sidecar_files.leader_epochs(listing, notes)
    sidecar_files.partition_metadata(listing, notes)
    sidecar_files.meta_properties(listing, notes)


def java_properties(data: bytes) -> None:
    """A client's properties file, with its references resolved."""
    found = properties.Properties()
    for line, key, value in properties.parse(data, "client.properties"):
        found[key], found.places[key] = value, f"client.properties, line {line}"
    if found.filled("config.providers"):
        return  # they read files and the environment
    properties.resolve(found)


def jaas(data: bytes) -> None:
    """A JAAS text."""
    try:
        parse_jaas(_text(data))
    except JaasError as error:
        assert error.column >= 1


def log_dirs(data: bytes) -> None:
    """What ``kafka-log-dirs.sh`` printed, or a listing."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        strays.read(file.name, 1)


# --- text that people type --------------------------------------------------------------------------------------------


@functools.cache
def _session() -> Session:
    return opened(FIXTURES / "4.3.1-lost" / "controller-3000")


def glob(data: bytes) -> None:
    """A pattern of paths, looked for in a real tree."""
    pattern = _text(data)
    list(globs.expand_braces(pattern))
    for _ in zip(range(20), globs.expand(_session().root, (), pattern), strict=False):
        pass


def condition(data: bytes) -> None:
    """An expression of ``--where``, compiled and asked of a row; and its completion."""
    text = _text(data)
    complete_where(text)
    compile_where(text)({"name": "a", "partition": 1, "isr": [1, 2], "data": {"x": None}, "offline": False})


def line(data: bytes) -> None:
    """A command line, up to where it would run."""
    text = _text(data)
    language.parts(text)
    for part in execution.commands(text):
        execution.prepare(_session(), part.text)


def point(data: bytes) -> None:
    """A moment, as ``--as-of`` takes it."""
    parse_point(_text(data), from_end=bool(data[:1] < b"a"))


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        record, control, batches, sealed_batch, replay, compressed, records_of_batch, response, request,
        sidecars, java_properties, jaas, log_dirs, glob, condition, line, point,
    )
}  # fmt: skip


def run(target: str, data: bytes) -> None:
    """Call a target; typed errors are its right."""
    with contextlib.suppress(KshellError, DecodeError):
        TARGETS[target](data)


def seeds(target: str) -> list[bytes]:
    """What the fuzzer begins with: real data, or what the documentation shows."""
    if target in _TYPED:
        return [text.encode() for text in _TYPED[target]]
    node = FIXTURES / "4.3.1-lost" / "controller-3000" / "__cluster_metadata-0"
    segment = next(iter(sorted(node.glob("*.log")))).read_bytes()
    if target == "batches":
        return [segment[:4000]]
    found: list[bytes] = []
    for batch in Chain(LeaderEpochs([]), None).walk(segment, "log"):
        records = list(iter_records(batch))
        if target == "sealed_batch":
            found.append(batch.raw())
        elif target == "records_of_batch":
            found.append(bytes([len(records) % 9]) + pack([(each.key, each.value) for each in records[:8]]))
        elif target == "record" and not batch.is_control:
            found += [each.value or b"" for each in records]
        elif target == "control" and batch.is_control:
            found += [bytes([len(each.key or b"")]) + (each.key or b"") + (each.value or b"") for each in records]
        elif target == "replay" and not batch.is_control:
            found.append(
                b"\n".join(
                    (each.value or b"").replace(b"\x0b", b"\x0b\x01").replace(b"\n", b"\x0b\x00") for each in records
                )
            )
    if target == "response":
        return [bytes((api, version)) + bytes(40) for api in range(len(_APIS)) for version in range(4)]
    if target == "sidecars":
        return [(node / name).read_bytes() for name in ("quorum-state", "leader-epoch-checkpoint")]
    return found or [os.urandom(0), bytes(20)]


_TYPED = {
    "glob": ("/image/topics/*", "/image/{topics,acls}/**", "[a-z]?\\*", "//..//{a,{b,c}}"),
    "condition": (
        "name = 'orders' and not offline",
        "isr contains 1 or (partition in (1, 2) and name ~ '^a.*b$')",
        "data.x is null",
        "len(isr) < 2",
    ),
    "line": (
        "topics --where \"name = 'a b'\" -o json > x | cat",
        "ls -l; cd /image && why a 0",
        "select * from topics",
        "log --since -1h -n 5 # comment",
        "'a'\"b\"\\ c",
    ),
    "point": ("end-10m", "-1h", "12:00", "yesterday", "2026-11-21 15:11", "@mark", "17", "2026-11-21T15:11:20.5+02:00"),
    "jaas": (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";',
        "a.B required c=1 /* x */ d='e'; // f",
    ),
    "java_properties": ("a=b\nc : d\\\n  e\n# x\n\\u0041=\\t", "security.protocol=SASL_SSL\n"),
    "log_dirs": (
        '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/a","error":null,"partitions":'
        '[{"partition":"t-0","size":1,"offsetLag":0,"isFuture":false}]}]}]}',
        "orders-0\ndrwx 2 a a 4096 Jan 1 00:00 orders-1\n/a/b-2.0123-delete\n",
    ),
    "compressed": ("\0", "\1x", "\2", "\3"),
    "request": ("\0\3\0\11\0\0\0\1\0\1a\0",),
}
