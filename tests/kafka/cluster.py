"""A real KRaft cluster on the loopback address, for as long as a ``with`` block lasts."""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.kafka import jars
from tests.kafka.admin import Admin, AdminError

HOST = "127.0.0.1"
FIRST_CONTROLLER = 3000
METADATA = "__cluster_metadata-0"
SASL_USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret", "dave": "dave-secret"}
"""PLAIN users of a ``sasl=True`` cluster; admin is a super user."""

LOG_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"
"""How a node writes the time of what it logs (``SimpleDateFormat``)."""

NOT_METADATA = (".index", ".timeindex", ".txnindex", ".snapshot", ".lock", ".part", ".deleted")
"""Suffixes of files that no reader of a metadata directory needs."""


def small_files(
    version: str, *, snapshot_bytes: int = 6000, segment_bytes: int = 16000, retention_bytes: int | None = None
) -> list[str]:
    """Return settings under which a server snapshots and rolls its log often, and deletes what is old (if asked to)."""
    props = [f"metadata.log.max.record.bytes.between.snapshots={snapshot_bytes}"]
    if _release(version) >= (4, 1):
        props.append(f"internal.metadata.log.segment.bytes={segment_bytes}")
    else:
        props += ["metadata.log.segment.min.bytes=12", f"metadata.log.segment.bytes={segment_bytes}"]
    if retention_bytes is not None:
        props.append(f"metadata.max.retention.bytes={retention_bytes}")
    return props


class Node:
    """One server: its files and its process."""

    def __init__(self, role: str, node_id: int, port: int, home: Path) -> None:
        """Name a server that is not running yet."""
        self.role = role
        self.id = node_id
        self.port = port
        self.home = home
        self.directory_id = _uuid()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """``controller-3000``, ``broker-0``."""
        return f"{self.role}-{self.id}"

    @property
    def address(self) -> str:
        """``host:port`` of the node's plain listener."""
        return f"{HOST}:{self.port}"

    @property
    def sasl_address(self) -> str:
        """``host:port`` of a broker's SASL listener."""
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

    def log_tail(self) -> str:
        """Return the end of what the server printed."""
        log = self.home / "server.log"
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""


class Cluster:
    """Formats and starts every node on entering, stops all of them on leaving, whatever happened."""

    def __init__(
        self,
        version: str = jars.LATEST,
        *,
        controllers: int = 1,
        brokers: int = 1,
        first_broker: int = 0,
        dynamic: bool = False,
        sasl: bool = False,
        props: Sequence[str] = (),
        format_args: Sequence[str] = (),
        heap: str = "256m",
        home: Path | None = None,
        logged: Sequence[str] = (),
    ) -> None:
        """Describe a cluster. ``props`` are lines for every node; lines for one go into ``node_props``, by id.

        ``logged`` are loggers whose debug lines go to each node's ``server.log``, each with its time.
        """
        self.logged = list(logged)
        self.version = version
        self.dynamic = dynamic
        self.sasl = sasl
        self.heap = heap
        self.cluster_id = _uuid()
        self.props = list(props)
        self.node_props: dict[int, list[str]] = {}
        self._format_args = list(format_args)
        self._own_home = home is None
        self.home = home or Path(tempfile.mkdtemp(prefix="kshell-cluster-"))
        self._admins: list[Admin] = []
        ports = _free_ports(controllers + brokers)
        self.controllers = [
            Node("controller", FIRST_CONTROLLER + i, ports[i], self.home / f"controller-{FIRST_CONTROLLER + i}")
            for i in range(controllers)
        ]
        self.brokers = [
            Node("broker", first_broker + i, ports[controllers + i], self.home / f"broker-{first_broker + i}")
            for i in range(brokers)
        ]

    @property
    def nodes(self) -> list[Node]:
        """All nodes, controllers first."""
        return [*self.controllers, *self.brokers]

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses."""
        return ",".join(node.address for node in self.brokers)

    @property
    def bootstrap_controllers(self) -> str:
        """The controllers' addresses."""
        return ",".join(node.address for node in self.controllers)

    def __enter__(self) -> Cluster:
        """Format, start, and wait until every broker is unfenced."""
        atexit.register(self.close)
        try:
            jars.libs(self.version)
            initial = list(self.controllers)
            for node in self.nodes:
                self.format(node, initial)
            for node in self.nodes:
                self.start(node, wait=False)
            for node in self.nodes:
                self.wait_up(node)
            if self.brokers:
                self.wait_for_brokers({node.id for node in self.brokers})
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.close()

    def close(self) -> None:
        """Stop every process (brokers first) and remove the files, if they are ours."""
        atexit.unregister(self.close)
        for admin in self._admins:
            admin.close()
        self._admins.clear()
        for group in (self.brokers, self.controllers):
            for node in group:
                if node.running:
                    assert node.process
                    node.process.terminate()
            for node in group:
                self._reap(node)
        if self._own_home:
            shutil.rmtree(self.home, ignore_errors=True)

    # One node

    def add_controller(self) -> Node:
        """Format one more controller, an observer until it is made a voter (dynamic quorums only); not started."""
        node_id = self.controllers[-1].id + 1
        node = Node("controller", node_id, _free_ports(1)[0], self.home / f"controller-{node_id}")
        self.controllers.append(node)
        self.format(node, [])
        return node

    def format(self, node: Node, initial: Sequence[Node]) -> None:
        """Write a node's properties and format its directory; ``initial`` are the first voters of a dynamic quorum."""
        node.home.mkdir(parents=True, exist_ok=True)
        node.properties.write_text("\n".join(self._server_properties(node, initial)) + "\n")
        args = ["format", "-t", self.cluster_id, "-c", str(node.properties), *self._format_args]
        if self.dynamic and node.role == "controller":
            if initial:
                voters = ",".join(f"{c.id}@{c.address}:{c.directory_id}" for c in initial)
                args += ["--initial-controllers", voters]
            else:
                args.append("--no-initial-controllers")
        jars.run(f"{jars.libs(self.version)}/*", "kafka.tools.StorageTool", *args, heap="128m")

    def start(self, node: Node, *, wait: bool = True) -> None:
        """Start one node."""
        # Errors are always logged: a node that ends says why.
        path = f"{jars.logging_jar()}:{jars.libs(self.version)}/*"
        settings = {"defaultLogLevel": "error", "showDateTime": "true", "dateTimeFormat": LOG_TIME,
                    **{f"log.{name}": "debug" for name in self.logged}}  # fmt: skip
        flags = [f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in settings.items()]
        command = jars.java(path, "kafka.Kafka", str(node.properties), heap=self.heap, flags=flags)
        with open(node.home / "server.log", "ab") as log:
            node.process = subprocess.Popen(
                [*_die_with_parent(), *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        if wait:
            self.wait_up(node)

    def stop(self, node: Node) -> None:
        """Shut one node down in the orderly way."""
        assert node.process
        node.process.terminate()
        self._reap(node)

    def kill(self, node: Node) -> None:
        """Kill one node, as a crash does."""
        assert node.process
        node.process.kill()
        node.process.wait()

    def wait_up(self, node: Node, seconds: float = 90) -> None:
        """Wait until a node listens."""

        def listens() -> bool:
            if not node.running:
                raise RuntimeError(f"{node.name} of Kafka {self.version} ended:\n{node.log_tail()}")
            try:
                socket.create_connection((HOST, node.port), 1).close()
            except OSError:
                return False
            return True

        wait_until(listens, f"{node.name} does not listen", seconds)

    # The cluster

    def admin(self, user: str | None = None) -> Admin:
        """Return an administrator at the brokers: anonymous (a super user), or a PLAIN user at the SASL listeners."""
        if user is None:
            properties = {"bootstrap.servers": self.bootstrap_servers}
        else:
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            properties = {
                "bootstrap.servers": ",".join(node.sasl_address for node in self.brokers),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{module} required username="{user}" password="{SASL_USERS[user]}";',
            }
        return self._admin(properties)

    def controller_admin(self) -> Admin:
        """Return an administrator at the controllers (3.7 and later): no broker checks what it asks for."""
        return self._admin({"bootstrap.controllers": self.bootstrap_controllers})

    def _admin(self, properties: Mapping[str, str]) -> Admin:
        number = len(self._admins)
        admin = Admin(self.version, properties, self.home / f"admin-{number}.properties")
        self._admins.append(admin)
        return admin

    def wait_for_brokers(self, ids: set[int], seconds: float = 90) -> None:
        """Wait until exactly these brokers are unfenced."""
        with Admin(self.version, {"bootstrap.servers": self.bootstrap_servers}, self.home / "wait.properties") as admin:

            def unfenced() -> bool:
                try:
                    return set(admin.brokers()) == ids
                except AdminError:
                    return False

            wait_until(unfenced, f"the unfenced brokers are not {sorted(ids)}", seconds)

    def node(self, node_id: int) -> Node:
        """Return the node with that id."""
        return next(node for node in self.nodes if node.id == node_id)

    def leader(self) -> Node:
        """Return the active controller, as the voters' own files name it."""

        leader = -1

        def named() -> bool:
            nonlocal leader
            states = [json.loads((c.metadata / "quorum-state").read_text()) for c in self.controllers if c.running]
            newest = max(states, key=lambda state: int(state["leaderEpoch"]))
            leader = int(newest["leaderId"])
            return leader >= 0 and self.node(leader).running

        wait_until(named, "no controller leads")
        return self.node(leader)

    def quorum(self, *args: str) -> str:
        """Run Kafka's quorum command at the controllers (3.9 and later), such as ``describe --status``."""
        options = ("--bootstrap-controller", self.bootstrap_controllers)
        main = "org.apache.kafka.tools.MetadataQuorumCommand"
        return jars.run(f"{jars.libs(self.version)}/*", main, *options, *args, heap="128m")

    def _server_properties(self, node: Node, initial: Sequence[Node]) -> Iterator[str]:
        yield f"process.roles={node.role}"
        yield f"node.id={node.id}"
        yield f"log.dirs={node.logs}"
        yield "controller.listener.names=CONTROLLER"
        if self.dynamic:
            yield f"controller.quorum.bootstrap.servers={','.join(c.address for c in initial or self.controllers)}"
        else:
            yield f"controller.quorum.voters={','.join(f'{c.id}@{c.address}' for c in self.controllers)}"
        protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"
        yield f"listener.security.protocol.map={protocols}"
        if node.role == "controller":
            yield f"listeners=CONTROLLER://{node.address}"
        else:
            listeners = f"PLAINTEXT://{node.address}"
            if self.sasl:
                listeners += f",SASL://{node.sasl_address}"
                users = " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())
                module = "org.apache.kafka.common.security.plain.PlainLoginModule"
                yield "sasl.enabled.mechanisms=PLAIN"
                yield f"listener.name.sasl.plain.sasl.jaas.config={module} required {users};"
            yield f"listeners={listeners}"
            yield f"advertised.listeners={listeners}"
            yield f"broker.rack=rack-{'abc'[node.id % 3]}"
        if self.sasl and _release(self.version) >= (3, 6):
            yield "delegation.token.secret.key=made-up-token-secret"
        yield "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        yield "super.users=User:ANONYMOUS;User:admin"
        yield "num.network.threads=1"
        yield "num.io.threads=2"
        yield "offsets.topic.num.partitions=2"
        yield "offsets.topic.replication.factor=1"
        yield "transaction.state.log.num.partitions=2"
        yield "transaction.state.log.replication.factor=1"
        yield "transaction.state.log.min.isr=1"
        yield from self.props
        yield from self.node_props.get(node.id, ())

    def _reap(self, node: Node) -> None:
        if node.process is None:
            return
        try:
            node.process.wait(20)
        except subprocess.TimeoutExpired:
            node.process.kill()
            node.process.wait()


def wait_until(condition: Callable[[], bool], complaint: str, seconds: float = 60) -> None:
    """Poll until a condition holds; raise TimeoutError with the complaint if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{complaint} (waited {seconds:g} s)")
        time.sleep(0.1)


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


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _die_with_parent() -> list[str]:
    """Return the prefix of a command line that ends the child with us, even if we are killed, where there is one."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL"] if found else []


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now, each with a free successor."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        while len(ports) < count:
            first, second = held.enter_context(socket.socket()), held.enter_context(socket.socket())
            first.bind((HOST, 0))
            port = first.getsockname()[1]
            try:
                second.bind((HOST, port + 1))
            except OSError:
                continue
            ports.append(port)
    return ports


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _uuid() -> str:
    """Return a random id in Kafka's base64, without the leading dash that command lines cannot take."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
