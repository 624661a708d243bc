"""The columns of tables of versions: what was so, from when to when. Declared once, for the shell and for Spark.

A table of versions has those columns of a table of state that come from its own records. What is derived from several
families (a partition's ``state`` also depends on configs) has no versions: a query joins the two histories, or asks for
the table as of one offset.
"""

from __future__ import annotations

from kshell.tables.declaration import Field, tables

VERSION = (
    Field("validFromOffset", "int64", "the offset of the record that made it so; of a transaction, of its end"),
    Field("validFromMs", "int64", "that record's time, in milliseconds since 1970"),
    Field("validToOffset", "int64", "the offset of the record that ended it; null if it lasts"),
    Field("validToMs", "int64", "that record's time"),
    Field("isCurrent", "boolean", "whether it lasts"),
)
"""The columns of a version, which holds at every offset from ``validFromOffset`` up to ``validToOffset``
(exclusive). What the first snapshot has holds from the offset before the snapshot's end."""

_ONLY = {"topics": ("name", "topicId"), "configs": ("resourceType", "resourceName", "name", "value")}
_WITHOUT = {"partitions": ("state", "problems", "minIsr"), "controllers": ("address",)}
_MORE = {
    "controllers": (
        Field("isVoter", "boolean", "whether the log names it as a voter"),
        Field(
            "voterListeners",
            [{"name": "string", "host": "string", "port": "int32", "securityProtocol": "string"}],
            "where the voter set says that it can be reached; null where no voter set names it (kraft.version 0)",
            True,
        ),
    )
}


def recorded_fields(name: str) -> tuple[Field, ...]:
    """Return the columns of a table of state that have versions, in its order, and those that only versions have."""
    only, without = _ONLY.get(name), _WITHOUT.get(name, ())
    own = [
        field for field in tables()[name].fields if field.name not in without and (only is None or field.name in only)
    ]
    return (*own, *_MORE.get(name, ()))
