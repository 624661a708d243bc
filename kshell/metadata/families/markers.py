"""Records that change nothing by themselves: NoOp (KIP-835), and transaction markers (KIP-868).

The replayer acts on the markers before they reach a delta; see :mod:`kshell.metadata.replay`.
"""

from __future__ import annotations

from typing import Any

from kshell.metadata.delta import Delta
from kshell.metadata.records import record
from kshell.metadata.values import Origin


@record(20, "NoOpRecord", "0")
def no_op(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
    """Only moves the offset on."""


@record(23, "BeginTransactionRecord", "0", "  name  string?  tag 0 = null")
def begin_transaction(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
    """Records after it wait for the end of the transaction."""


@record(24, "EndTransactionRecord", "0")
def end_transaction(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
    """The records that waited take effect."""


@record(25, "AbortTransactionRecord", "0", "  reason  string?  tag 0 = null")
def abort_transaction(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
    """The records that waited are dropped."""


BEGIN, END, ABORT = begin_transaction, end_transaction, abort_transaction
