"""A real KRaft cluster on the loopback address, for as long as a ``with`` block lasts."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from tests.kafka import jars
from tests.kafka.admin import Admin, AdminError
from tests.kafka.node import Node, free_ports, new_uuid
from tests.kafka.properties import SASL_USERS, START, server_properties
from tests.kafka.waiting import wait_until

FIRST_CONTROLLER = 3000
_BY_CHANCE = ("unable to register with the controller quorum", "Address already in use")
"""What a server says that may well come up when it is started again."""


class NotUp(RuntimeError):
    """Servers that do not come up, and may the next time; the message has what each of them said."""


class StartedAnew(UserWarning):
    """Kafka's servers did not find each other, and did when they were started again."""


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
        combined: bool = False,
        props: Sequence[str] = (),
        format_args: Sequence[str] = (),
        heap: str = "256m",
        home: Path | None = None,
        logged: Sequence[str] = (),
    ) -> None:
        """Describe a cluster. ``props`` are lines for every node; lines for one go into ``node_props``, by id.

        ``combined``: each controller is a broker, too, at the port behind its own.
        ``logged`` are loggers whose debug lines go to each node's ``server.log``, each with its time.
        """
        self.logged = list(logged)
        self.version = version
        self.dynamic = dynamic
        self.sasl = sasl
        self.combined = combined
        self.heap = heap
        self.cluster_id = new_uuid()
        self.props = list(props)
        self.node_props: dict[int, list[str]] = {}
        self.node_versions: dict[int, str] = {}
        """Node id -> the release that it runs, where that is another one than the cluster's."""
        self.not_started: set[int] = set()
        """Nodes that are formatted on entering, and started by whoever wants them."""
        self._format_args = list(format_args)
        self._own_home = home is None
        self.home = home or Path(tempfile.mkdtemp(prefix="kshell-cluster-"))
        self._admins: list[Admin] = []
        self._idle: Admin | None = None
        ports = free_ports(controllers + brokers)
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
        if self.combined:
            return ",".join(node.second_address for node in self.controllers)
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
            try:
                self._come_up()
            except NotUp as failed:
                # Nothing of ours takes part in this. It is to be seen, with what all servers said, and is no failure.
                warnings.warn(f"Kafka {self.version} was started anew: {failed}", StartedAnew, stacklevel=2)
                self._end()
                shutil.rmtree(self.home)
                self._come_up()
        except BaseException:
            self.close()
            raise
        return self

    def _come_up(self) -> None:
        initial = list(self.controllers)
        for node in self.nodes:
            self.format(node, initial)
        for group in (self.controllers, self.brokers):
            for node in group:
                if node.id not in self.not_started:
                    self.start(node, wait=False)
            if group is self.controllers and self.dynamic:
                self._wait_for_voters()
        for node in self.nodes:
            if node.id not in self.not_started:
                self.wait_up(node)
        if brokers := self.controllers if self.combined else self.brokers:
            self.wait_for_brokers({node.id for node in brokers} - self.not_started)

    def _wait_for_voters(self) -> None:
        """Wait until the set of voters is committed: before that a broker of a dynamic quorum must not read the log.

        What it has read of a first leader it takes back when another one is elected, as on a busy machine. In all
        releases so far (3.9 to 4.3) the place up to which Kafka's KRaftControlRecordStateMachine has read control
        records stays where it was: it does not see the voters when they come again, never learns where the leader is,
        and gives up its registration. (Its log then says "Truncated to offset 0", and no more "Latest set of voters".)
        """

        def active() -> bool:
            for node in self.controllers:
                if node.id not in self.not_started:
                    self._check_running(node)
            return any("Becoming the active controller at epoch" in node.log() for node in self.controllers)

        self._wait(active, f"no controller of Kafka {self.version} is active", START)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.close()

    def close(self) -> None:
        """Stop every process and remove the files, if they are ours."""
        atexit.unregister(self.close)
        self._end()
        if self._own_home:
            shutil.rmtree(self.home, ignore_errors=True)

    def _end(self) -> None:
        """End every process: at once where nobody reads the files (but for the one that leaves an archive of classes),
        else in the orderly way, brokers first.
        """
        for admin in self._admins:
            admin.close()
        self._admins.clear()
        self._idle = None
        for group in (self.brokers, self.controllers):
            with ThreadPoolExecutor(len(group) or 1) as pool:
                list(pool.map(Node.end if self._own_home else Node.stop, [node for node in group if node.process]))

    # One node

    def add_controller(self) -> Node:
        """Format one more controller, an observer until it is made a voter (dynamic quorums only); not started."""
        node_id = self.controllers[-1].id + 1
        node = Node("controller", node_id, free_ports(1)[0], self.home / f"controller-{node_id}")
        self.controllers.append(node)
        self.format(node, [])
        return node

    def format(self, node: Node, initial: Sequence[Node]) -> None:
        """Write a node's properties and format its directory; ``initial`` are the first voters of a dynamic quorum."""
        node.home.mkdir(parents=True, exist_ok=True)
        node.properties.write_text("\n".join(server_properties(self, node, initial)) + "\n")
        args = ["format", "-t", self.cluster_id, "-c", str(node.properties), *self._format_args]
        if self.dynamic and node.role == "controller":
            if initial:
                voters = ",".join(f"{c.id}@{c.address}:{c.directory_id}" for c in initial)
                args += ["--initial-controllers", voters]
            else:
                args.append("--no-initial-controllers")
        jars.run(f"{jars.libs(self.version)}/*", "kafka.tools.StorageTool", *args)

    def start(self, node: Node, *, wait: bool = True) -> None:
        """Start one node."""
        path = f"{jars.logging_jar()}:{jars.libs(self.node_versions.get(node.id, self.version))}/*"
        node.start(path, self.heap, dict.fromkeys(self.logged, "debug"))
        if wait:
            self.wait_up(node)

    def stop(self, node: Node) -> None:
        """Shut one node down in the orderly way."""
        node.stop()

    def kill(self, node: Node) -> None:
        """Kill one node, as a crash does."""
        node.kill()

    def wait_up(self, node: Node, seconds: float = START) -> None:
        """Wait until a node listens; raise NotUp if it ends, or does not in time."""

        def listens() -> bool:
            self._check_running(node)
            return node.listens

        self._wait(listens, f"{node.name} of Kafka {self.version} does not listen", seconds)

    def _check_running(self, node: Node) -> None:
        if not node.running:
            complaint = f"{node.name} of Kafka {self.version} ended"
            if any(words in node.log() for words in _BY_CHANCE):
                raise self._not_up(complaint, first=node)
            raise RuntimeError(f"{complaint}:\n{node.log_tail()}")

    def _wait(self, condition: Callable[[], bool], complaint: str, seconds: float) -> None:
        try:
            wait_until(condition, complaint, seconds)
        except TimeoutError as late:
            raise self._not_up(str(late)) from None

    def _not_up(self, complaint: str, first: Node | None = None) -> NotUp:
        """What to raise: the complaint, and the end of each server's log, that of the one it is about first."""
        nodes = sorted((node for node in self.nodes if node.process), key=lambda node: node is not first)
        return NotUp("\n".join([complaint, *(f"--- {node.name} said:\n{node.log_tail()}" for node in nodes)]))

    # The cluster

    def admin(self, user: str | None = None) -> Admin:
        """Return an administrator at the brokers: anonymous (a super user), or a PLAIN user at the SASL listeners."""
        if user is None:
            if (waited := self._idle) is not None:
                self._idle = None
                return waited
            properties = {"bootstrap.servers": self.bootstrap_servers}
        else:
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            properties = {
                "bootstrap.servers": ",".join(node.second_address for node in self.brokers),
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

    def wait_for_brokers(self, ids: set[int], seconds: float = START) -> None:
        """Wait until exactly these brokers are unfenced; raise NotUp if they are not in time."""
        admin = self.admin()

        def unfenced() -> bool:
            for node in self.brokers:
                if node.id in ids:
                    self._check_running(node)
            try:
                return set(admin.brokers()) == ids
            except AdminError:
                return False

        self._wait(unfenced, f"the unfenced brokers are not {sorted(ids)}", seconds)
        self._idle = admin  # a Java is slow to start: who asks for one next has this

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
        return jars.run(f"{jars.libs(self.version)}/*", main, *options, *args)
