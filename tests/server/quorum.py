"""A quorum and its brokers: who leads, what the log holds, what is committed, and what everybody was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from kshell.client.releases import RELEASES, offers, supported_features
from kshell.protocol.api import Api
from kshell.protocol.decoder import Message
from kshell.protocol.messages.drafts import DIALECTS
from tests import builders
from tests.server.faults import Fault
from tests.server.log import Log, SnapshotId
from tests.server.node import Asked, Node, Range
from tests.server.sasl import Scram

CLUSTER_ID = "Ai5mFmTgQ5uaDrOX6gSlbQ"


def ranges_of(kind: str, release: str) -> dict[int, Range]:
    """What a node of that kind and release offers in ApiVersions."""
    for offer in offers():
        if (offer.release, offer.kind, offer.kraft, offer.patch) == (release, kind, True, None):
            return dict(offer.ranges)
    raise ValueError(f"no {kind} of release {release} is known")


class Closes(Protocol):
    """What ends with ``close``."""

    def close(self) -> None:
        """Lets go."""


_Closes = TypeVar("_Closes", bound=Closes)


class Quorum:
    """``controllers`` have the ids 1, 2, …, ``brokers`` 101, 102, …; the first controller leads epoch 1.

    ``dialects``: the drafts that every node speaks. ``users``: name -> password; with any, SASL comes first.
    ``lists_versions``: whether a refused ApiVersions says what would do (from 2.4 on).
    """

    def __init__(
        self,
        controllers: int = 1,
        brokers: int = 0,
        *,
        release: str = RELEASES[-1],
        dialects: Sequence[str] = (),
        users: dict[str, str] | None = None,
        log: Log | None = None,
    ) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.over = threading.Event()
        self.cluster_id = CLUSTER_ID
        self.release = release
        self.dialects: dict[int, Api] = {DIALECTS[name].key: DIALECTS[name] for name in dialects}
        self.users = users or {}
        self.mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        self.scram = Scram()
        self.lists_versions = True
        self.asked: list[Asked] = []
        self.bytes_sent = 0
        self._kept: list[Closes] = []
        self._cut_at: int | None = None
        self._cut_resets = False
        self.software: dict[int, tuple[str | None, str | None]] = {}
        self.supported = {"metadata.version": supported_features()[RELEASES[-1]]["metadata.version"]}
        """Feature -> the levels that every node says it supports, whatever its release."""
        self.finalized = {"metadata.version": 30}
        self.configs: dict[tuple[int, str], list[dict[str, Any]]] = {}
        """(resource type, name) -> DescribeConfigsResourceResult; IncrementalAlterConfigs sets values here."""
        self.bodies: dict[str, Message] = {}
        """API -> the body that every node answers with, for what the server has no idea of its own."""
        self.log = log or Log()
        self.epoch = self.log.last_epoch
        self.leader_id = -1
        self.knows_watermark = True
        """A new leader learns the high watermark with its first commit; until then it says -1."""
        self.prefers_snapshot = tuple(map(int, release.split("."))) >= (3, 9)
        """Whether who begins at offset 0 is given a snapshot if there is one, though the log is whole."""
        self.writes_refusals = False
        """Whether a refused FetchSnapshot says why. Kafka's says UNKNOWN_SERVER_ERROR: it fails to write the answer."""
        self.max_piece = 8 << 20
        """Bytes of one piece of a snapshot, and of one Fetch, at most."""
        self.nodes = [Node(self, 1 + i, "controller", ranges_of("controller", release)) for i in range(controllers)]
        self.nodes += [Node(self, 101 + i, "broker", ranges_of("broker", release)) for i in range(brokers)]
        for node in self.nodes:
            for api in self.dialects.values():
                node.ranges[api.key] = (api.versions.low, api.versions.high or 0)
        self.elect(1)
        self.commit()

    def __enter__(self) -> Quorum:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends what was kept, and every node."""
        for made in self._kept:
            made.close()
        self.over.set()
        with self.changed:
            self.changed.notify_all()
        for node in self.nodes:
            node.stop()

    def keep(self, made: _Closes) -> _Closes:
        """A client's connection, nodes or source, to be closed with the quorum."""
        self._kept.append(made)
        return made

    # --- nodes ---------------------------------------------------------------------------------------------------

    @property
    def controllers(self) -> list[Node]:
        """In the order of their ids."""
        return [node for node in self.nodes if node.kind == "controller"]

    @property
    def brokers(self) -> list[Node]:
        """In the order of their ids."""
        return [node for node in self.nodes if node.kind == "broker"]

    def node(self, node_id: int) -> Node:
        """By id."""
        return next(node for node in self.nodes if node.id == node_id)

    @property
    def leader(self) -> Node:
        """The active controller's node."""
        return self.node(self.leader_id)

    @property
    def bootstrap(self) -> str:
        """The controllers as a list for ``-q``."""
        return ",".join(node.address for node in self.controllers)

    @property
    def bootstrap_servers(self) -> str:
        """The brokers as a list for ``-b``."""
        return ",".join(node.address for node in self.brokers)

    def on(self, api: str | None, fault: Fault, *, times: int | None = None, skip: int = 0) -> None:
        """As :meth:`Node.on`, at every node; each counts for itself."""
        for node in self.nodes:
            node.on(api, fault, times=times, skip=skip)

    def well(self) -> None:
        """Every node forgets its faults; connections end after no bytes any more."""
        with self.changed:
            self._cut_at = None
        for node in self.nodes:
            node.well()

    # --- what was asked ------------------------------------------------------------------------------------------

    def note(self, asked: Asked) -> None:
        """Called by nodes."""
        with self.changed:
            self.asked.append(asked)

    def asked_for(self, api: str) -> list[Asked]:
        """The requests of one API, in order."""
        with self.changed:
            return [asked for asked in self.asked if asked.api == api]

    def cut_after(self, count: int, *, reset: bool = False) -> None:
        """Once: the connection that would carry byte ``count`` (all nodes' bytes from now on) ends before it."""
        with self.changed:
            self._cut_at, self._cut_resets = self.bytes_sent + count, reset

    def spend(self, count: int) -> tuple[int, bool]:
        """(how many of ``count`` bytes may be sent, whether the end is a reset). Called by nodes."""
        with self.changed:
            end = self.bytes_sent + count
            if self._cut_at is not None and end > self._cut_at:
                allowed = self._cut_at - self.bytes_sent
                self.bytes_sent, self._cut_at = self._cut_at, None
                return allowed, self._cut_resets
            self.bytes_sent = end
            return count, False

    # --- the log -------------------------------------------------------------------------------------------------

    def append(self, *values: bytes, commit: bool = True) -> None:
        """One batch of records by the leader."""
        with self.changed:
            self.log.append(values, self.epoch)
            self.changed.notify_all()
        if commit:
            self.commit()

    def commit(self, offset: int | None = None) -> None:
        """The high watermark moves to ``offset``, or to the log's end."""
        with self.changed:
            self.log.high_watermark = self.log.end if offset is None else offset
            self.knows_watermark = True
            self.changed.notify_all()

    def elect(self, node_id: int | None, *, keep: int | None = None) -> None:
        """A new epoch, led by a node, or by nobody yet. Records from offset ``keep`` on (not committed) are lost."""
        with self.changed:
            if keep is not None:
                self.log.truncate(max(keep, self.log.high_watermark))
            self.epoch += 1
            self.leader_id = -1 if node_id is None else node_id
            self.knows_watermark = False
            if node_id is not None:
                pairs = [builders.leader_change(node_id)]
                self.log.put(builders.control_batch(pairs, self.log.end, self.epoch))
            self.changed.notify_all()

    def snapshot(self, values: Iterable[bytes], *, end: int | None = None, delete: bool = True) -> SnapshotId:
        """A snapshot of the records ``values`` up to offset ``end`` (the high watermark); the log before it goes."""
        with self.changed:
            at = self.log.high_watermark if end is None else end
            epoch = max((entry.epoch for entry in self.log.entries if entry.end <= at), default=self.log.last_epoch)
            found = (at, epoch)
            self.log.snapshots[found] = builders.snapshot(list(values), epoch)
            if delete:
                self.log.delete_before(found)
            self.changed.notify_all()
            return found

    def told_watermark(self) -> int:
        """What the leader says of the high watermark."""
        return self.log.high_watermark if self.knows_watermark else -1
