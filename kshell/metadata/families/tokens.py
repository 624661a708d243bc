"""Delegation tokens (``DelegationTokenDelta``, KIP-900). The records hold no HMAC: nothing in them is secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.names import encode_name
from kshell.metadata.records import LatestByKey, record
from kshell.metadata.values import Origin

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

TOKENS = family(Family("delegationToken", ("delegationToken",), (encode_name,), "delegationToken"))


class DelegationToken(NamedTuple):
    """A delegation token; times are in epoch milliseconds."""

    owner: str
    token_requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int
    token_id: str


@record(
    10,
    "DelegationTokenRecord",
    "0",
    """
  owner                string
  requester            string
  renewers             []string
  issueTimestamp       int64
  maxTimestamp         int64
  expirationTimestamp  int64
  tokenId              string
""",
    LatestByKey("delegationToken", ("tokenId",)),
)
def delegation_token(delta: Delta, data: Message, origin: Origin) -> None:
    """Set a token; a renewal is a record with the same id."""
    token = DelegationToken(
        owner=data["owner"],
        token_requester=data["requester"],
        renewers=tuple(data["renewers"]),
        issue_timestamp=data["issueTimestamp"],
        max_timestamp=data["maxTimestamp"],
        expiry_timestamp=data["expirationTimestamp"],
        token_id=data["tokenId"],
    )
    delta.put("delegationToken", token.token_id, token, origin)


@record(
    26,
    "RemoveDelegationTokenRecord",
    "0",
    "  tokenId  string",
    LatestByKey("delegationToken", ("tokenId",), tombstone=True),
)
def remove_delegation_token(delta: Delta, data: Message, origin: Origin) -> None:
    """Remove a token; one that does not exist is no error."""
    delta.drop("delegationToken", data["tokenId"])
