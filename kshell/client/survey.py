"""Many nodes asked for their versions at once, each itself and over a connection of its own (KIP-35)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kshell.client.address import Address
from kshell.client.handshake import connect
from kshell.client.together import at_once
from kshell.client.versions import NodeVersions
from kshell.errors import ConnectError, NodeError

if TYPE_CHECKING:
    from kshell.client.settings import Settings

_AT_ONCE = 32


class Told(NamedTuple):
    """What the node at an address said of itself, or why it said nothing: one of both is ``None``."""

    versions: NodeVersions | None
    failure: NodeError | None


def ask_versions(addresses: Iterable[Address], settings: Settings) -> dict[Address, Told]:
    """Asks every node, all at the same time; each has ``connect_timeout`` twice over for its answer.

    Nobody logs in for this: ApiVersions is answered before SASL (KIP-43), so a node that would not have us still tells.
    Raises what is no failure of a node (UsageError for properties that cannot be used).
    """
    asked = list(dict.fromkeys(addresses))
    return dict(zip(asked, at_once(lambda address: _ask(address, settings), asked, most=_AT_ONCE), strict=True))


def _ask(address: Address, settings: Settings) -> Told:
    try:
        connection = connect(*address, settings._replace(sasl=None), timeout=settings.connect_timeout * 2)
    except NodeError as error:
        return Told(None, error)
    try:
        return Told(connection.versions, None)
    finally:
        connection.close()


def unreachable(told: Iterable[Told]) -> NodeError:
    """One error for nodes of which none answered: the one failure, or all of them side by side."""
    failures = [one.failure for one in told if one.failure is not None]
    if len(failures) == 1:
        return failures[0]
    reasons = "; ".join(f"{error.node}: {error.reason}" for error in failures)
    hint = next((error.hint for error in failures if error.hint), None)
    names = ", ".join(error.node for error in failures)
    return ConnectError(names, f"none answers ({reasons})", hint=hint)
