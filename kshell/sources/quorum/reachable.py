"""Where this client reaches each controller, if no controller tells: DescribeCluster needs ALTER on the cluster.

A controller may have several listeners, and only one of them suits the client's properties and certificates: the one
that the bootstrap list belongs to. Registrations (3.7 and later) name all listeners of each controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kshell.client.address import Address

if TYPE_CHECKING:
    from kshell.client.nodes import Nodes
    from kshell.metadata.families.cluster import Listener


def controller_addresses(nodes: Nodes, listeners: Mapping[int, Iterable[Listener]]) -> dict[int, Address]:
    """Choose an address for each controller.

    The first that there is: one of the bootstrap list, or that a controller has reported; that of the listener whose
    name is the same as of an address in the bootstrap list; that of a listener with this client's security protocol.

    Args:
        nodes: the controllers as the client knows them.
        listeners: registered listeners by controller.

    Returns:
        Addresses by controller; those without a listener that fits are missing.
    """
    points = [(node_id, listener) for node_id, own in listeners.items() for listener in own]
    given: dict[int, Address] = {}
    names: dict[str, None] = {}
    for address in nodes.bootstrap:
        host, port = address
        there = [(node_id, point) for node_id, point in points if point.port == port]
        # Behind a forwarded port, the host is another one than the one that is registered.
        matches = [(node_id, point) for node_id, point in there if point.host.lower() == host.lower()] or there
        if len(matches) == 1:
            given.setdefault(matches[0][0], address)
        matching_names = {point.name for _, point in matches}
        if len(matching_names) == 1:
            names |= dict.fromkeys(matching_names)
    protocol = nodes.settings.security_protocol
    chosen: dict[int, Address] = {}
    # From the worst to the best: later assignments win.
    for node_id, point in reversed([point for point in points if point[1].security_protocol == protocol]):
        chosen[node_id] = (point.host, point.port)
    for name in reversed(names):
        chosen |= {node_id: (point.host, point.port) for node_id, point in points if point.name == name}
    return chosen | {node.id: node.address for node in nodes.by_id.values()} | given
