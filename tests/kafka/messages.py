"""Kafka's own message definitions, out of the jars of a release: what our declarations are compared with."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any

from tests.kafka import jars

Message = dict[str, Any]
"""A definition as Kafka writes it: name, type, apiKey, validVersions, flexibleVersions, fields, commonStructs."""

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')


def metadata_records(version: str) -> dict[str, Message]:
    """Return the metadata records (``type`` is ``metadata``) of a release, by Kafka's name for the message."""
    return _read(version, "kafka-metadata", "common/metadata/", "metadata")


def control_records(version: str) -> dict[str, Message]:
    """Return the bodies of control records that a release knows, by Kafka's name for the message."""
    names = (
        "LeaderChangeMessage",
        "SnapshotHeaderRecord",
        "SnapshotFooterRecord",
        "KRaftVersionRecord",
        "VotersRecord",
    )
    found = _read(version, "kafka-clients", "common/message/", "data")
    return {name: found[name] for name in names if name in found}


def requests(version: str) -> dict[str, Message]:
    """Return the requests of a release, by name."""
    return _read(version, "kafka-clients", "common/message/", "request")


def responses(version: str) -> dict[str, Message]:
    """Return the responses of a release, by name."""
    return _read(version, "kafka-clients", "common/message/", "response")


def without_comments(text: str) -> str:
    """Return JSON text without its ``//`` comments."""
    return _COMMENT.sub(lambda match: match[1] or "", text)


@cache
def _read(version: str, artifact: str, folder: str, kind: str) -> dict[str, Message]:
    found = {}
    with zipfile.ZipFile(jars.libs(version) / f"{artifact}-{version}.jar") as jar:
        for name in jar.namelist():
            if name.startswith(folder) and name.endswith(".json"):
                message: Message = json.loads(without_comments(jar.read(name).decode("utf-8")))
                if message["type"] == kind:
                    found[message["name"]] = message
    return found
