"""Record what real servers of a release answer to ApiVersions: ``python -m tests.tools.record_versions VERSION``.

Starts a broker and a controller on the loopback address, as they come and with unstable APIs and features switched on,
and adds their answers to ``tests/client/recorded_versions.jsonl``: ``tests/client/test_releases.py`` holds them against
the table of releases.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from kshell.client.releases import BROKER, CONTROLLER, Range
from tests.kafka.cluster import Cluster
from tests.kafka.node import HOST

TARGET = Path(__file__).parents[1] / "client" / "recorded_versions.jsonl"
UNSTABLE = ["unstable.api.versions.enable=true", "unstable.feature.versions.enable=true"]
TELLS_FEATURES = range(3, 6)
"""Versions of ApiVersions that tell features; the later ones do not leave out those whose lowest level is 0."""


def ask(port: int, version: int) -> tuple[dict[int, Range], dict[str, Range]] | None:
    """ApiVersions over a bare socket: ranges and supported features; ``None``: the version is not supported."""
    request = struct.pack(">hhih", 18, version, 7, 1) + b"x"
    if version >= 3:
        no_cluster_no_node = b"\0" + struct.pack(">i", -1) if version >= 5 else b""
        request += b"\0\2k\0021" + no_cluster_no_node + b"\0"
    with socket.create_connection((HOST, port), 30) as server:
        server.sendall(struct.pack(">i", len(request)) + request)
        stream = server.makefile("rb")
        frame = stream.read(struct.unpack(">i", stream.read(4))[0])
    correlation, error = struct.unpack_from(">ih", frame)
    assert correlation == 7
    if error == 35:
        return None
    assert error == 0
    if version < 3:
        count, at, step = struct.unpack_from(">i", frame, 6)[0], 10, 6
    else:
        count, at, step = frame[6] - 1, 7, 7  # fewer than 127 APIs: a length of one byte; no tags in an entry
    spans = [struct.unpack_from(">hhh", frame, at + i * step) for i in range(count)]
    ranges = {key: (low, high) for key, low, high in spans}
    return ranges, _supported(frame[at + count * step + 4 :]) if version >= 3 else {}


def _supported(tags: bytes) -> dict[str, Range]:
    """Tag 0, whose size may take more than one byte: an array of (name, lowest, highest), each length in one byte."""
    if tags[0] == 0 or tags[1] != 0:
        return {}
    at = 2 + next(i for i, byte in enumerate(tags[2:]) if byte < 128) + 1
    count, at = tags[at] - 1, at + 1
    features = {}
    for _ in range(count):
        end = at + tags[at]
        features[tags[at + 1 : end].decode()] = struct.unpack_from(">hh", tags, end)
        at = end + 5
    return features


def record(version: str, *, unstable: bool) -> list[dict[str, Any]]:
    """Return one line for each server and version of ApiVersions that it takes."""
    lines: list[dict[str, Any]] = []
    with Cluster(version, props=UNSTABLE if unstable else []) as cluster:
        for server, node in ((BROKER, cluster.brokers[0]), (CONTROLLER, cluster.controllers[0])):
            for asked in TELLS_FEATURES:
                if (answer := ask(node.port, asked)) is not None:
                    apis, features = ({key: f"{low}-{high}" for key, (low, high) in part.items()} for part in answer)
                    lines.append({"version": version, "server": server, "unstable": unstable, "asked": asked,
                                  "apis": apis, "features": features})  # fmt: skip
    return lines


if __name__ == "__main__":
    found = [line for unstable in (False, True) for line in record(sys.argv[1], unstable=unstable)]
    with open(TARGET, "a") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in found)
