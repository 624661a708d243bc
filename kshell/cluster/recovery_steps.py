"""The instructions that ``recover`` prints: how to start a quorum from the directory that it writes.

They differ for static and dynamic quorums, and for controllers that are brokers, too. Source: KIP-853
(``kafka-storage.sh``, ``kafka-metadata-quorum.sh``), ``QuorumState.initialize``.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import NamedTuple

from kshell.client.address import name_of
from kshell.sources.copies.logs import Copy
from kshell.sources.copies.recovery import Voter
from kshell.sources.directory.files import METADATA_DIRECTORY


class RecoverySteps(NamedTuple):
    """The facts that the instructions depend on; :meth:`steps` writes them.

    ``kept_copy``: the copy that the new log is made from; ``cluster_id``: ``None`` if no copy knows it; ``broker_ids``:
    nodes that registered as brokers; ``voter``: the controller that starts first, and ``directory``: its new directory,
    both ``None`` before the user has named them; ``joining``: the other controllers that the user has named.
    """

    copies: Collection[Copy]
    kept_copy: Copy
    cluster_id: str | None
    broker_ids: frozenset[int]
    kraft_version: int
    voter: Voter | None
    directory: str | None
    joining: tuple[Voter, ...] = ()

    @property
    def own_copy(self) -> Copy | None:
        """The copy of the first controller, if that node is a broker, too (``process.roles=broker,controller``).

        Its directory also holds partitions of topics, and the directory id with which the metadata refers to them, so
        both must stay. If no voter is chosen yet, the node of the kept copy counts, provided that it is a controller.
        """
        if self._first not in self.broker_ids:
            return None
        return next((copy for copy in self.copies if copy.node_id == self._first), None)

    @property
    def _first(self) -> int | None:
        """The node that starts first."""
        kept_id = self.kept_copy.node_id if self.kept_copy.node_id in self.kept_copy.voters else None
        return self.voter.id if self.voter else kept_id

    def steps(self) -> list[str]:
        """The instructions in order, one text per step; commands are in backticks."""
        paths = shlex.join(copy.path for copy in self.copies)
        make = f"kshell recover {paths} --to NEWDIR --voters {self._endpoint}"
        return [
            "Stop every controller. Keep all copies of their directories: nothing here changes them.",
            *([] if self.directory else [f"Make the directory for one controller: `{make}`"]),
            self._move(),
            *self._brokers(),
            *(self._dynamic() if self.kraft_version > 0 else self._static()),
        ]

    @property
    def _endpoint(self) -> str:
        return self.voter.endpoint if self.voter else "ID@HOST:PORT"

    def _move(self) -> str:
        node = self._endpoint.partition("@")[0]
        directory = self.directory or "NEWDIR"
        owner = "give it to the user of the server: `chown -R kafka: DIRECTORY`"
        if self.own_copy:
            return (
                f"Controller {node} is a broker, too: in its metadata directory (metadata.log.dir, else the first of"
                f" log.dirs) move only {METADATA_DIRECTORY} away, put {directory}/{METADATA_DIRECTORY} in its place,"
                f" and {owner}. All else in it stays, meta.properties and the partitions of topics above all."
            )
        move = (
            f"Move the metadata directory of controller {node} (metadata.log.dir, else the first of log.dirs) away, put"
            f" {directory} in its place, and {owner}"
        )
        if self._first not in self.broker_ids:
            return move
        return (
            f"Controller {node} is a broker, too, and its copy was not given. If its disk is still there, run recover"
            " again with that copy, too: its metadata directory may hold partitions of topics, and has an id that must"
            f" stay. Only if the disk is lost: {move}"
        )

    def _brokers(self) -> list[str]:
        """The step for brokers that are no controllers and have a damaged copy, with which they may fail to start."""
        brokers = self.broker_ids - self.kept_copy.voters.keys()
        damaged = [copy.path for copy in self.copies if copy.damage and copy.node_id in brokers]
        if not damaged:
            return []
        return [
            f"Of each broker whose copy is damaged ({', '.join(damaged)}): stop it, and move {METADATA_DIRECTORY} of"
            " its metadata directory away, and nothing else. When it starts, it fetches that again."
        ]

    def _dynamic(self) -> list[str]:
        node, _, host = self._endpoint.partition("@")
        status = f"`kafka-metadata-quorum.sh --bootstrap-controller {host} describe --status`"
        return [
            f"In server.properties of controller {node}: node.id={node}, controller.quorum.bootstrap.servers={host},"
            " and no controller.quorum.voters. Start it: it elects itself.",
            f"See that it leads: {status}",
            f"In server.properties of every broker: controller.quorum.bootstrap.servers={host}. Restart the brokers.",
            f"For {self._joiners}, one after another: empty its directory{self._unless_broker()}, run"
            f" `kafka-storage.sh format --cluster-id {self._cluster_id} --no-initial-controllers --config"
            f" server.properties`, start it, wait until it has caught up ({status}), then `kafka-metadata-quorum.sh"
            f" --command-config server.properties --bootstrap-controller {host} add-controller`",
            f"Then {self._servers} on every node.",
        ]

    def _static(self) -> list[str]:
        node, _, host = self._endpoint.partition("@")
        return [
            f"In server.properties of controller {node} and of every broker: controller.quorum.voters={self._endpoint}."
            f" Start the controller. Stop the brokers, remove the file quorum-state in {METADATA_DIRECTORY} of each"
            " (before 3.9 they do not start with other voters than it names), and start them.",
            f"See that it leads: `kafka-metadata-quorum.sh --bootstrap-controller {host} describe --status` (before"
            " 3.7: --bootstrap-server of a broker)",
            f"Then {self._joiners}, one at a time, never two new ones at once: they could elect each other with empty"
            f" logs. Stop the controllers and the brokers, remove quorum-state in {METADATA_DIRECTORY} of each,"
            f" format the new one{self._unless_broker()} (`kafka-storage.sh format --cluster-id {self._cluster_id}"
            " --config server.properties`), write controller.quorum.voters with the new one on every node"
            f"{self._last_voters}, start all, wait until it has caught up.",
        ]

    @property
    def _joiners(self) -> str:
        """The controllers that join the first one, by their names if the user has named them."""
        listed = ", ".join(f"{voter.id} ({name_of(*voter.address)})" for voter in self.joining)
        return f"the other controllers, {listed}" if listed else "each further controller"

    @property
    def _named(self) -> tuple[Voter, ...]:
        """All controllers, from the first one on, if the user has named them; else empty."""
        return () if self.voter is None or not self.joining else (self.voter, *self.joining)

    @property
    def _servers(self) -> str:
        servers = "controller.quorum.bootstrap.servers"
        listed = ",".join(name_of(*voter.address) for voter in self._named)
        return f"write {servers}={listed}" if listed else f"list all controllers in {servers} again,"

    @property
    def _last_voters(self) -> str:
        listed = ",".join(voter.endpoint for voter in self._named)
        return f" (with the last one {listed})" if listed else ""

    @property
    def _cluster_id(self) -> str:
        return self.cluster_id or "CLUSTER_ID"

    def _unless_broker(self) -> str:
        """What to do instead of formatting a controller that is a broker, too; empty if none is, or may be."""
        first = () if self._first is None else (self._first,)
        joining_ids = {voter.id for voter in self.joining} or {*self.kept_copy.voters, *first}
        brokers = sorted(self.broker_ids.intersection(joining_ids))
        if not brokers:
            return ""
        owner = "one that is a broker, too,"
        if self.joining:
            listed = " and ".join(map(str, brokers))
            owner = f"{listed}, which {'is a broker' if len(brokers) == 1 else 'are brokers'}, too,"
        return (
            f" (of {owner} if the disk is still there: only move {METADATA_DIRECTORY} away, and do not format it: the"
            " rest are partitions of topics)"
        )
