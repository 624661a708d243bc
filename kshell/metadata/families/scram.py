"""SCRAM credentials of users (``ScramDelta``, KIP-900). Everything in them but the iterations is secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kshell.metadata.delta import Delta
from kshell.metadata.image import Family, family
from kshell.metadata.names import encode_name
from kshell.metadata.records import LatestByKey, record
from kshell.metadata.values import Origin, enum_name

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

SCRAM = family(
    Family(
        "scram",
        ("scram",),
        (str, encode_name),
        "scram",
        secret=("salt", "storedKey", "serverKey"),
        constant=tuple(MECHANISMS.values()),
    )
)


class ScramCredential(NamedTuple):
    """What Kafka stores in place of a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


@record(
    11,
    "UserScramCredentialRecord",
    "0",
    """
  name        string
  mechanism   int8
  salt        bytes   secret
  storedKey   bytes   secret
  serverKey   bytes   secret
  iterations  int32
""",
    LatestByKey("scram", ("name", "mechanism")),
)
def user_scram_credential(delta: Delta, data: Message, origin: Origin) -> None:
    """Set a user's credential for a mechanism; it replaces an earlier one."""
    credential = ScramCredential(data["salt"], data["storedKey"], data["serverKey"], data["iterations"])
    delta.put_inner("scram", enum_name(MECHANISMS, data["mechanism"]), data["name"], credential, origin)


@record(
    22,
    "RemoveUserScramCredentialRecord",
    "0",
    """
  name       string
  mechanism  int8
""",
    LatestByKey("scram", ("name", "mechanism"), tombstone=True),
)
def remove_user_scram_credential(delta: Delta, data: Message, origin: Origin) -> None:
    """Remove a user's credential for a mechanism; one that does not exist is no error."""
    delta.drop_inner("scram", enum_name(MECHANISMS, data["mechanism"]), data["name"])
