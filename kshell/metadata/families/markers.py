"""Records that change no value: NoOpRecord (KIP-835), and the markers of metadata transactions (KIP-868).

Their functions do nothing: :mod:`kshell.metadata.replay` acts on the markers before they reach a delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.metadata.delta import Delta
from kshell.metadata.records import record
from kshell.metadata.values import Origin

if TYPE_CHECKING:
    from kshell.protocol.decoder import Message


@record(20, "NoOpRecord", "0")
def no_op(delta: Delta, data: Message, origin: Origin) -> None:
    """Change nothing; an idle controller writes this record to advance the log."""


@record(23, "BeginTransactionRecord", "0", "  name  string?  tag 0 = null")
def begin_transaction(delta: Delta, data: Message, origin: Origin) -> None:
    """Begin a transaction: the records after it wait for its end."""


@record(24, "EndTransactionRecord", "0")
def end_transaction(delta: Delta, data: Message, origin: Origin) -> None:
    """End a transaction: its records take effect."""


@record(25, "AbortTransactionRecord", "0", "  reason  string?  tag 0 = null")
def abort_transaction(delta: Delta, data: Message, origin: Origin) -> None:
    """Abort a transaction: its records are dropped."""


BEGIN, END, ABORT = begin_transaction, end_transaction, abort_transaction
