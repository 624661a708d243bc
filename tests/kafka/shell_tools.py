"""Kafka's command line tools of a release as programs that a shell finds, to run what is printed for users.

The jars have the tools' classes, but not the scripts of the distribution, which add nothing but the class path.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tests.kafka import jars

_TOOLS = "org.apache.kafka.tools."
_MAINS = {
    "kafka-acls.sh": (_TOOLS + "AclCommand", "kafka.admin.AclCommand"),
    "kafka-cluster.sh": (_TOOLS + "ClusterTool",),
    "kafka-configs.sh": (_TOOLS + "ConfigCommand", "kafka.admin.ConfigCommand"),
    "kafka-delegation-tokens.sh": (_TOOLS + "DelegationTokenCommand",),
    "kafka-features.sh": (_TOOLS + "FeatureCommand",),
    "kafka-leader-election.sh": (_TOOLS + "LeaderElectionCommand",),
    "kafka-log-dirs.sh": (_TOOLS + "LogDirsCommand",),
    "kafka-metadata-quorum.sh": (_TOOLS + "MetadataQuorumCommand",),
    "kafka-reassign-partitions.sh": (_TOOLS + "reassign.ReassignPartitionsCommand",),
    "kafka-topics.sh": (_TOOLS + "TopicCommand",),
}
"""Each tool's class, and what it was in earlier releases."""
_OLD = {
    "3.9": {"kafka-acls.sh", "kafka-configs.sh"},
    "4.0": {"kafka-configs.sh"},
    "4.1": {"kafka-configs.sh"},
    "4.2": {"kafka-configs.sh"},
    "4.3": {"kafka-configs.sh"},
}
"""The tools that a release has in their old place still."""


class Shell:
    """A bash that finds the tools of one release."""

    def __init__(self, version: str, directory: Path) -> None:
        """Write the programs into a new directory."""
        directory.mkdir(parents=True)
        old = _OLD.get(version.rpartition(".")[0], set())
        for name, mains in _MAINS.items():
            main = mains[-1] if name in old else mains[0]
            command = shlex.join(jars.java(f"{jars.libs(version)}/*", main, heap="128m"))
            program = directory / name
            program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            program.chmod(0o755)
        self._path = f"{directory}:{os.environ['PATH']}"

    def run(self, line: str, *, seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run a line as it stands; nobody is there to answer a question."""
        return subprocess.run(
            ["bash", "-c", line], env={**os.environ, "PATH": self._path}, stdin=subprocess.DEVNULL, text=True,
            capture_output=True, timeout=seconds, check=False,
        )  # fmt: skip
