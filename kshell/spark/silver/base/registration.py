"""What registrations of brokers and controllers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.metadata.values import SECURITY_PROTOCOLS
from kshell.spark.silver.base.payload import named, one_by_name

if TYPE_CHECKING:
    from pyspark.sql import Column

_FEATURES = "map<string,struct<min:smallint,max:smallint>>"


def listeners(points: Column) -> Column:
    """Endpoints as the shell lists them: sorted by name, each once."""

    def one(point: Column) -> Column:
        protocol = named(SECURITY_PROTOCOLS, point["securityProtocol"]).alias("securityProtocol")
        return fn.struct(
            point["name"].alias("name"), point["host"].alias("host"), point["port"].alias("port"), protocol
        )

    return fn.transform(one_by_name(points, "name"), one)


def features(listed: Column) -> Column:
    """Feature -> the levels that the node supports."""

    def one(feature: Column) -> Column:
        least, most = feature["minSupportedVersion"].alias("min"), feature["maxSupportedVersion"].alias("max")
        return fn.struct(feature["name"], fn.struct(least, most))

    return fn.map_from_entries(fn.transform(one_by_name(listed, "name"), one)).cast(_FEATURES)
