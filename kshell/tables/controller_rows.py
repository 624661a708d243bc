"""Rows of the table ``controllers``: registrations of the image, and voters without one (before Kafka 3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.client.address import Address, name_of
from kshell.errors import AuthorizationError
from kshell.metadata.image import families
from kshell.sources.directory import describe

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.engine.result import Row
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject


def controller_rows(session: Session) -> list[Row]:
    """Return one row per controller, by id; from brokers, only what they report of the quorum. Raises NodeError."""
    nodes = session.source.nodes
    rows = _of_quorum(nodes) if nodes is not None and nodes.kind == "broker" else _of_image(session, nodes)
    return [rows[node_id] for node_id in sorted(rows)]


def _of_image(session: Session, nodes: Nodes | None) -> dict[int, JsonObject]:
    loaded = session.loaded
    leader = describe.leader_id(loaded)
    rows: dict[int, JsonObject] = {voter["voterId"]: _voter(voter) for voter in describe.voters(loaded)}
    if nodes is not None and loaded.until is None:
        rows |= _ask_quorum(session, nodes)
    if leader is not None and leader >= 0:
        rows.setdefault(leader, {"listeners": None})
    plain = families()["controllers"].plain
    for node_id, entry in session.image["controllers"].items():
        rows[node_id] = plain(entry.value)
    addresses: dict[int, Address] = {}
    if nodes is not None and loaded.until is None:
        from kshell.sources.quorum.reachable import controller_addresses

        registered = {node_id: entry.value.listeners for node_id, entry in session.image["controllers"].items()}
        addresses = controller_addresses(nodes, registered)
    for node_id, row in rows.items():
        address = addresses.get(node_id)
        row |= {"id": node_id, "isLeader": node_id == leader, "address": name_of(*address) if address else None}
        if row["address"] is None and row["listeners"]:
            row["address"] = name_of(row["listeners"][0]["host"], row["listeners"][0]["port"])
    return rows


def _ask_quorum(session: Session, nodes: Nodes) -> dict[int, JsonObject]:
    """Return what the quorum reports: before 3.7, the log need not name the voters. If not allowed, add a remark."""
    try:
        return _of_quorum(nodes)
    except AuthorizationError as error:
        hint = f"; {error.hint}" if error.hint else ""
        session.remarks.append(f"{error.message}: only the controllers that the log names are shown{hint}")
        return {}


def _voter(voter: Row) -> JsonObject:
    """Return the row of a voter that is not registered."""
    return {"listeners": voter_listeners(voter) or None}


def voter_listeners(voter: Row) -> list[JsonObject]:
    """Return the listeners in a voter's entry. It has no security protocol, so that is ``None``."""
    names = ("name", "host", "port")
    return [{name: point[name] for name in names} | {"securityProtocol": None} for point in voter.get("endpoints", ())]


def _of_quorum(nodes: Nodes) -> dict[int, JsonObject]:
    """Return the voters, and observers with endpoints: brokers are observers, too, but have none. Raises NodeError."""
    from kshell.sources.quorum.facts import describe_quorum

    quorum = describe_quorum(nodes)
    rows = {}
    for replica in [*quorum["voters"], *(replica for replica in quorum["observers"] if replica["endpoints"])]:
        listeners = voter_listeners(replica) or None
        address = name_of(listeners[0]["host"], listeners[0]["port"]) if listeners else None
        leads = replica["id"] == quorum["leaderId"]
        rows[replica["id"]] = {"id": replica["id"], "listeners": listeners, "isLeader": leads, "address": address}
    return rows
