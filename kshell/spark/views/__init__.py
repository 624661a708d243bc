"""The shell's tables for all clusters, computed from silver: the views ``current_…``, with ``clusterId`` in front.

Silver has only what records say. Columns that depend on several tables, such as a partition's ``state`` and ``minIsr``,
are computed here, by the rules of :mod:`kshell.metadata.partition_state`. As in silver, a table is one SQL query, which
reads the versions that are valid at one moment as ``{name of the silver table}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.errors import UsageError
from kshell.metadata import partition_state
from kshell.metadata.config_types import LISTENER_PREFIX, PER_MECHANISM, TABLE, known_types
from kshell.metadata.partition_state import MIN_ISR_CONFIG as MIN_ISR
from kshell.spark import silver
from kshell.spark.gold.timelines.min_isr import number
from kshell.spark.schemas import spark_columns
from kshell.spark.silver.declaration import CLUSTER
from kshell.spark.steps.local_frames import frame_of
from kshell.tables.declaration import Field, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONTROLLERS = "controllers"
NEEDS: dict[str, tuple[str, ...]] = {
    "topics": ("topics", "partitions", "configs"),
    "partitions": ("partitions", "configs"),
}
"""Shell's table -> the silver tables that it is computed from; any other needs only the one of the same name."""


def view_fields(name: str) -> tuple[Field, ...]:
    """Return the columns that :func:`shell_table` returns. Raises UsageError for a table that silver does not have."""
    if name not in silver.tables():
        raise UsageError(f"{name}: no such view", hint=f"there are {', '.join(silver.tables())}")
    return (CLUSTER, *tables()[name].fields)


def shell_table(name: str, versions: Mapping[str, DataFrame]) -> DataFrame:
    """Return the shell's table ``name`` for all clusters, in no particular order.

    Args:
        versions: by name of a silver table, its rows that are valid at one moment (:func:`valid_at`); all tables that
            :data:`NEEDS` names. For ``controllers`` as of now, add the table ``clusters``: it has the leader that files
            beside the log name, for which there is no history.

    Raises:
        UsageError: silver has no such table.
    """
    fields, read = view_fields(name), dict(versions)
    if name == "configs":
        read[name] = with_facts(read[name])
    if name == CONTROLLERS and "clusters" in read:
        read[name] = read[name].sparkSession.sql(_QUORUM_STATE, None, **read)
    query = _QUERIES.get(name, f"SELECT * FROM {{{name}}}")
    columns = ", ".join(f"cast(`{column}` AS {kind}) AS `{column}`" for column, kind in spark_columns(fields))
    return read[name].sparkSession.sql(f"SELECT {columns} FROM ({query})", None, **read)


_AT = "_at"
_OFFSETS = (CLUSTER, Field(_AT, "int64", "the offset"))


def valid_at(versions: DataFrame, offsets: Mapping[str, int] | None = None) -> DataFrame:
    """Return the rows of a silver table that were valid after the record at an offset.

    There is no search by time: clocks of controllers differ, so times of a log may run backwards, and two versions of a
    key could be valid at one time. :mod:`~kshell.spark.views.moment` translates a time into offsets.

    Args:
        offsets: cluster -> offset; other clusters are left out. ``None``: the current rows of all clusters.
    """
    if offsets is None:
        return versions.where("isCurrent")
    rows = ({CLUSTER.name: cluster, _AT: at} for cluster, at in offsets.items())
    then = fn.broadcast(frame_of(versions.sparkSession, _OFFSETS, rows))
    since, to, at = fn.col("validFromOffset"), fn.col("validToOffset"), fn.col(_AT)
    return versions.join(then, CLUSTER.name).where((since <= at) & (to.isNull() | (to > at))).drop(_AT)


# --- partitions and topics --------------------------------------------------------------------------------------------

_FACTOR = "size(replicas) - size(addingReplicas)"
"""SQL: the replication factor: replicas that are being added do not count yet."""
_IS_REASSIGNING = "(size(addingReplicas) > 0 OR size(removingReplicas) > 0)"
_PROBLEMS = {
    partition_state.OFFLINE: "leader = -1",
    partition_state.UNDER_MIN_ISR: "leader = -1 OR size(isr) < minIsr",
    partition_state.AT_MIN_ISR: "size(isr) = minIsr",
    partition_state.UNDER_REPLICATED: f"size(isr) < {_FACTOR}",
    partition_state.UNCLEAN: "leaderRecoveryState = 'RECOVERING'",
    partition_state.REASSIGNING: _IS_REASSIGNING,
    partition_state.NON_PREFERRED: "leader <> -1 AND leader <> get(replicas, 0)",
}
"""Problem of a partition -> SQL: whether it has it."""
_STATES = (partition_state.OFFLINE, partition_state.UNDER_MIN_ISR, partition_state.UNDER_REPLICATED)


def _has(problem: str) -> str:
    return f"array_contains(problems, '{problem}')"


_PARTITIONS = f"""
  WITH settings AS (
    SELECT clusterId, resourceType, resourceName, {number("value")} AS value FROM {{configs}}
    WHERE name = '{MIN_ISR}' AND resourceType IN ('TOPIC', 'BROKER')
  ),
  of_topics AS (
    SELECT clusterId, resourceName AS topic, value AS ofTopic FROM settings WHERE resourceType = 'TOPIC'
  ),
  of_brokers AS (
    SELECT clusterId, map_from_entries(collect_list(struct(resourceName, value))) AS byBroker
    FROM settings WHERE resourceType = 'BROKER' AND value IS NOT NULL
    GROUP BY clusterId
  )
  SELECT *, CASE {" ".join(f"WHEN {_has(state)} THEN '{state}'" for state in _STATES)}
    ELSE '{partition_state.ONLINE}' END AS state
  FROM (
    SELECT *, array_compact(array(
        {", ".join(f"if({condition}, '{problem}', NULL)" for problem, condition in _PROBLEMS.items())})) AS problems
    FROM (
      SELECT /*+ BROADCAST(of_brokers) */ *,
        coalesce(ofTopic, element_at(byBroker, cast(leader AS string)), element_at(byBroker, '')) AS minIsr
      FROM {{partitions}} LEFT JOIN of_topics USING (clusterId, topic) LEFT JOIN of_brokers USING (clusterId)
    )
  )"""
_TOPICS = f"""
  WITH counts AS (
    SELECT clusterId, topicId, count(*) AS partitions, min_by({_FACTOR}, partition) AS replicationFactor,
      count_if({_has(partition_state.UNDER_REPLICATED)}) AS underReplicated,
      count_if({_has(partition_state.OFFLINE)}) AS offline,
      count_if({_has(partition_state.UNDER_MIN_ISR)}) AS underMinIsr,
      count_if({_IS_REASSIGNING}) AS reassigning
    FROM ({_PARTITIONS})
    GROUP BY clusterId, topicId
  ),
  of_topics AS (
    SELECT clusterId, resourceName, map_from_entries(sort_array(collect_list(struct(name, value)))) AS own
    FROM {{configs}} WHERE resourceType = 'TOPIC'
    GROUP BY clusterId, resourceName
  ),
  of_all AS (
    SELECT clusterId, {number("value")} AS ofAll FROM {{configs}}
    WHERE resourceType = 'BROKER' AND resourceName = '' AND name = '{MIN_ISR}'
  )
  SELECT /*+ BROADCAST(of_all) */ t.clusterId, t.name, t.topicId, replicationFactor,
    coalesce(partitions, 0) AS partitions, coalesce(underReplicated, 0) AS underReplicated,
    coalesce(offline, 0) AS offline, coalesce(underMinIsr, 0) AS underMinIsr, coalesce(reassigning, 0) AS reassigning,
    coalesce({number(f"element_at(own, '{MIN_ISR}')")}, ofAll) AS minIsr,
    coalesce(own, cast(map() AS map<string, string>)) AS configs
  FROM {{topics}} t
    LEFT JOIN counts ON t.clusterId = counts.clusterId AND t.topicId = counts.topicId
    LEFT JOIN of_topics ON t.clusterId = of_topics.clusterId AND name = resourceName
    LEFT JOIN of_all ON t.clusterId = of_all.clusterId"""


# --- configs and controllers ------------------------------------------------------------------------------------------

_FACTS = (
    Field("kind", "string", "the type of resources that have the key"),
    Field("key", "string", "its name"),
    Field("type", "string", "the type of its values"),
    Field("isSensitive", "boolean", "whether they are secrets"),
)
_REST = r"regexp_extract(name, r'^listener\.name\.[^.]*\.(.*)$', 1)"
_ENDINGS = " ".join(f"WHEN endswith({_REST}, '.{key}') THEN '{key}'" for key in sorted(PER_MECHANISM))
_LISTENER_KEY = f"if(startswith(name, '{LISTENER_PREFIX}'), CASE {_ENDINGS} ELSE {_REST} END, NULL)"
"""SQL: the key after the prefix ``listener.name.LISTENER.`` and after a SASL mechanism, if any; null without prefix."""
_WITH_FACTS = f"""
  SELECT /*+ BROADCAST(exact), BROADCAST(general) */ c.*, coalesce(exact.type, general.type) AS type,
    coalesce(exact.isSensitive, general.isSensitive) AS isSensitive
  FROM {{configs}} c
    LEFT JOIN {{facts}} exact ON resourceType = exact.kind AND name = exact.key
    LEFT JOIN {{facts}} general ON exact.type IS NULL AND general.kind = 'BROKER' AND resourceType = 'BROKER'
      AND {_LISTENER_KEY} = general.key"""
_CONFIGS = """
  SELECT *, NULL AS isReadOnly, NULL AS synonyms, NULL AS documentation,
    if(resourceType = 'BROKER' AND resourceName = '', 'DYNAMIC_DEFAULT_BROKER_CONFIG',
      concat('DYNAMIC_', resourceType, '_CONFIG')) AS source
  FROM {configs}"""


def with_facts(configs: DataFrame) -> DataFrame:
    """Add ``type`` and ``isSensitive`` of the config key to rows with ``resourceType`` and ``name``. Both are null for
    a key that no release knows. Keys are looked up as in :func:`kshell.metadata.config_types.known_key`.
    """
    listed = (
        {"kind": kind, "key": name, "type": key_type.type, "isSensitive": key_type.is_password}
        for kind in TABLE
        for name, key_type in known_types(kind).items()
    )
    spark = configs.sparkSession
    return spark.sql(_WITH_FACTS, None, configs=configs, facts=frame_of(spark, _FACTS, listed))


_CONTROLLERS = """
  SELECT *, concat(if(contains(host, ':'), concat('[', host, ']'), host), ':', cast(port AS string)) AS address
  FROM (SELECT *, get(listeners, 0).host AS host, get(listeners, 0).port AS port FROM {controllers})"""
_QUORUM_STATE = """
  WITH leaders AS (
    SELECT clusterId, leaderId,
      if(coalesce(isNamed, false), cast(array() AS array<int>), coalesce(voters, cast(array() AS array<int>))) AS ids
    FROM {clusters}
      LEFT JOIN (SELECT clusterId, bool_or(isVoter) AS isNamed FROM {controllers} GROUP BY clusterId) USING (clusterId)
  ),
  more AS (
    SELECT clusterId, explode(filter(array_distinct(concat(ids, array(leaderId))), node -> node >= 0)) AS id,
      true AS isInQuorumState
    FROM leaders
  )
  SELECT * FROM (
    SELECT /*+ BROADCAST(leaders) */ * EXCEPT (isLeader), coalesce(leaderId = id, isLeader, false) AS isLeader
    FROM {controllers} FULL JOIN more USING (clusterId, id) LEFT JOIN leaders USING (clusterId)
  )
  WHERE incarnationId IS NOT NULL OR isVoter OR isInQuorumState OR isLeader"""
"""SQL: controllers with the leader that ``clusters`` names and, of clusters in whose log none is named, its voters."""

_QUERIES = {"topics": _TOPICS, "partitions": _PARTITIONS, "configs": _CONFIGS, CONTROLLERS: _CONTROLLERS}
"""Shell's table -> SQL of its rows; any other has the rows of the silver table."""
