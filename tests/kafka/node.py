"""One Kafka server: its files, its process, and what a reader of its metadata gets of them."""

from __future__ import annotations

import base64
import contextlib
import functools
import itertools
import os
import shutil
import signal
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.kafka import jars
from tests.kafka.archives import Archive, Making

HOST = "127.0.0.1"
METADATA = "__cluster_metadata-0"

LOG_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"
"""How a node writes the time of what it logs (``SimpleDateFormat``)."""

NOT_METADATA = (".index", ".timeindex", ".txnindex", ".snapshot", ".lock", ".part", ".deleted")
"""Suffixes of files that no reader of a metadata directory needs."""

_TERMINATED = 128 + signal.SIGTERM
"""What Java ends with when it is asked to."""

_TOLD = (
    "org.apache.kafka.raft", "org.apache.kafka.controller.QuorumController",
    "org.apache.kafka.server.BrokerLifecycleManager", "kafka.server.BrokerLifecycleManager",
    "kafka.server.NodeToControllerRequestThread", "kafka.server.BrokerToControllerRequestThread",
)  # fmt: skip
"""Loggers that say how a quorum and its brokers find each other: what one has to know of a start that fails."""

_FIRST_PORT = 15_000
"""From here on, below what Linux and macOS give to connections, each process has ports of its own, by its id."""

_PORTS = 100
"""Ports of a process. A port is free when a cluster is made and taken seconds later: nobody else must get it then."""


@functools.cache
def _ports() -> Iterator[int]:
    """The even ones of this process, over and over."""
    first = _FIRST_PORT + os.getpid() % 150 * _PORTS
    return itertools.cycle(range(first, first + _PORTS, 2))


class Node:
    """One server: its files and its process."""

    def __init__(self, role: str, node_id: int, port: int, home: Path) -> None:
        """Name a server that is not running yet."""
        self.role = role
        self.id = node_id
        self.port = port
        self.home = home
        self.directory_id = new_uuid()
        self.process: subprocess.Popen[bytes] | None = None
        self.making: Making | None = None

    @property
    def name(self) -> str:
        """``controller-3000``, ``broker-0``."""
        return f"{self.role}-{self.id}"

    @property
    def address(self) -> str:
        """``host:port`` of the node's plain listener."""
        return f"{HOST}:{self.port}"

    @property
    def second_address(self) -> str:
        """``host:port`` of the other listener: a broker's for SASL, or for clients where a controller is a broker."""
        return f"{HOST}:{self.port + 1}"

    @property
    def properties(self) -> Path:
        """The server's properties file."""
        return self.home / "server.properties"

    @property
    def logs(self) -> Path:
        """The log directory (``log.dirs``)."""
        return self.home / "data"

    @property
    def metadata(self) -> Path:
        """The node's ``__cluster_metadata-0`` directory."""
        return self.logs / METADATA

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self.process is not None and self.process.poll() is None

    @property
    def listens(self) -> bool:
        """Whether somebody takes connections at the node's plain listener."""
        try:
            socket.create_connection((HOST, self.port), 1).close()
        except OSError:
            return False
        return True

    def log(self) -> str:
        """Return what the server printed."""
        log = self.home / "server.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def log_tail(self) -> str:
        """Return the last hundred lines that the server printed, each as far as a person reads it."""
        return "\n".join(line[:300] for line in self.log().splitlines()[-100:])

    def start(self, class_path: str, heap: str, levels: Mapping[str, str]) -> None:
        """Start the process. ``levels`` are of loggers, beside the errors that each one tells."""
        archive = Archive(class_path)
        self._left(is_whole=False)  # it may have ended by itself
        self.making = archive.making() if self.role == "broker" else None
        flags = self.making.flags if self.making else archive.reading
        told = dict.fromkeys(_TOLD, "info") | dict(levels)
        settings = {"defaultLogLevel": "error", "showDateTime": "true", "dateTimeFormat": LOG_TIME,
                    **{f"log.{name}": level for name, level in told.items()}}  # fmt: skip
        flags += [f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in settings.items()]
        command = jars.java(class_path, "kafka.Kafka", str(self.properties), heap=heap, flags=flags)
        with open(self.home / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [*_die_with_parent(), *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def stop(self) -> None:
        """Shut down in the orderly way; after 20 s, and the time that an archive takes, in the other."""
        assert self.process
        self.process.terminate()
        try:
            self.process.wait(60 if self.making else 20)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._left(is_whole=self.process.returncode in (0, _TERMINATED))

    def kill(self) -> None:
        """Kill the process, as a crash does."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self._left(is_whole=False)

    def end(self) -> None:
        """End the process, in the orderly way only where it leaves an archive."""
        (self.stop if self.making else self.kill)()

    def _left(self, *, is_whole: bool) -> None:
        if self.making:
            self.making.finish(is_whole=is_whole)
            self.making = None


def copy_node(node: Node, target: Path) -> None:
    """Copy what a reader of metadata needs out of a node's log directory, running or not."""
    metadata = target / METADATA
    metadata.mkdir(parents=True, exist_ok=True)
    for name in ("meta.properties", "bootstrap.checkpoint"):
        if (node.logs / name).exists():
            _copy(node.logs / name, target / name)
    for file in sorted(node.metadata.iterdir()):
        if not file.name.endswith(NOT_METADATA):
            with contextlib.suppress(FileNotFoundError):  # a running server deletes old snapshots and segments
                _copy(file, metadata / file.name)


@contextlib.contextmanager
def keeping(metadata: Path, kept: Path) -> Iterator[None]:
    """Link every segment and every snapshot into another directory, where they stay when the server deletes them."""
    stop = threading.Event()

    def keep() -> None:
        for file in (*metadata.glob("*.log"), *metadata.glob("*.checkpoint")):
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                (kept / file.name).hardlink_to(file)

    def again() -> None:
        while not stop.wait(0.1):
            keep()

    keep()
    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        keep()


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _die_with_parent() -> list[str]:
    """Return the prefix of a command line that ends the child with us, even if we are killed, where there is one."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL"] if found else []


def free_ports(count: int) -> list[int]:
    """Return ports that are free now, each with a free successor."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        while len(ports) < count:
            first, second = held.enter_context(socket.socket()), held.enter_context(socket.socket())
            port = next(_ports())
            try:
                first.bind((HOST, port))
                second.bind((HOST, port + 1))
            except OSError:
                continue
            ports.append(port)
    return ports


def new_uuid() -> str:
    """Return a random id in Kafka's base64, without the leading dash that command lines cannot take."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
