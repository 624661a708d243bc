"""The shell's tables for all clusters, computed from silver: the views ``current_…``, with ``clusterId`` in front.

Silver has only what records say. Columns that depend on several tables, such as a partition's ``state`` and ``minIsr``,
are computed here, by the rules of :mod:`kshell.metadata.partition_state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.errors import UsageError
from kshell.metadata import partition_state
from kshell.metadata.config_types import LISTENER_PREFIX, PER_MECHANISM, TABLE, known_types
from kshell.metadata.partition_state import MIN_ISR_CONFIG as MIN_ISR
from kshell.metadata.partition_state import NUMBER_PATTERN
from kshell.spark import silver
from kshell.spark.schemas import spark_schema
from kshell.spark.silver.declaration import CLUSTER
from kshell.spark.steps.local_frames import frame_of
from kshell.tables.declaration import Field, tables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
    fields = view_fields(name)
    derive = {"topics": _topics, "partitions": _partitions, "configs": _configs, "controllers": _controllers}.get(name)
    rows = derive(versions) if derive else versions[name]
    types = {field.name: field.dataType for field in spark_schema(fields)}
    return rows.select(*(fn.col(field.name).cast(types[field.name]).alias(field.name) for field in fields))


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


def _with_states(versions: Mapping[str, DataFrame]) -> DataFrame:
    """Return the partitions with their ``minIsr``, ``problems`` and ``state``."""
    configs = versions["configs"].where((fn.col("name") == MIN_ISR) & fn.col("resourceType").isin("TOPIC", "BROKER"))
    numbers = configs.select("clusterId", "resourceType", "resourceName", _number(fn.col("value")).alias("_value"))
    min_isr = numbers.where("_value IS NOT NULL")
    topics = min_isr.where("resourceType = 'TOPIC'").select(
        "clusterId", fn.col("resourceName").alias("topic"), fn.col("_value").alias("_own")
    )
    of_brokers = min_isr.where("resourceType = 'BROKER'").groupBy("clusterId")
    brokers = of_brokers.agg(
        fn.map_from_entries(fn.collect_list(fn.struct("resourceName", "_value"))).alias("_brokers")
    )
    rows = versions["partitions"].join(topics, ["clusterId", "topic"], "left")
    rows = rows.join(fn.broadcast(brokers), "clusterId", "left")
    leaders, everyone = (
        fn.element_at("_brokers", fn.col("leader").cast("string")),
        fn.element_at("_brokers", fn.lit("")),
    )
    with_min_isr = rows.withColumn("minIsr", fn.coalesce("_own", leaders, everyone))
    return with_min_isr.withColumn("problems", _problems()).withColumn("state", _state()).drop("_own", "_brokers")


def _number(value: Column) -> Column:
    """A config value as a number, as a broker reads it; null where it is no number in range."""
    digits = fn.regexp_extract(value, NUMBER_PATTERN, 1)
    return fn.when(digits != "", digits.cast("int"))


def _factor() -> Column:
    """The replication factor: replicas that are being added do not count yet."""
    return fn.size("replicas") - fn.size("addingReplicas")


def _is_reassigning() -> Column:
    return (fn.size("addingReplicas") > 0) | (fn.size("removingReplicas") > 0)


def _problems() -> Column:
    in_sync, leaderless = fn.size("isr"), fn.col("leader") == -1
    preferred = fn.get("replicas", fn.lit(0))
    has = {
        partition_state.OFFLINE: leaderless,
        partition_state.UNDER_MIN_ISR: leaderless | (in_sync < fn.col("minIsr")),
        partition_state.AT_MIN_ISR: in_sync == fn.col("minIsr"),
        partition_state.UNDER_REPLICATED: in_sync < _factor(),
        partition_state.UNCLEAN: fn.col("leaderRecoveryState") == "RECOVERING",
        partition_state.REASSIGNING: _is_reassigning(),
        partition_state.NON_PREFERRED: ~leaderless & (fn.col("leader") != preferred),
    }
    return fn.array_compact(fn.array(*(fn.when(condition, fn.lit(problem)) for problem, condition in has.items())))


def _state() -> Column:
    state = fn.lit(partition_state.ONLINE)
    for problem in (partition_state.UNDER_REPLICATED, partition_state.UNDER_MIN_ISR, partition_state.OFFLINE):
        state = fn.when(_has(problem), fn.lit(problem)).otherwise(state)
    return state


def _has(problem: str) -> Column:
    return fn.array_contains("problems", problem)


def _partitions(versions: Mapping[str, DataFrame]) -> DataFrame:
    return _with_states(versions)


def _topics(versions: Mapping[str, DataFrame]) -> DataFrame:
    key = ["clusterId", "topicId"]
    counts = (
        _with_states(versions)
        .groupBy(*key)
        .agg(
            fn.count(fn.lit(1)).alias("partitions"),
            fn.min_by(_factor(), "partition").alias("replicationFactor"),
            fn.count_if(_has(partition_state.UNDER_REPLICATED)).alias("underReplicated"),
            fn.count_if(_has(partition_state.OFFLINE)).alias("offline"),
            fn.count_if(_has(partition_state.UNDER_MIN_ISR)).alias("underMinIsr"),
            fn.count_if(_is_reassigning()).alias("reassigning"),
        )
    )
    configs = versions["configs"]
    own = configs.where("resourceType = 'TOPIC'").groupBy("clusterId", fn.col("resourceName").alias("name"))
    pairs = fn.map_from_entries(fn.sort_array(fn.collect_list(fn.struct(fn.col("name"), "value"))))
    of_topics = own.agg(pairs.alias("configs"))
    everyone = configs.where(f"resourceType = 'BROKER' AND resourceName = '' AND name = '{MIN_ISR}'")
    rows = versions["topics"].select("clusterId", "name", "topicId").join(counts, key, "left")
    rows = rows.join(of_topics, ["clusterId", "name"], "left")
    rows = rows.join(
        fn.broadcast(everyone.select("clusterId", _number(fn.col("value")).alias("_all"))), "clusterId", "left"
    )
    least = fn.coalesce(_number(fn.element_at("configs", fn.lit(MIN_ISR))), fn.col("_all"))
    none = fn.create_map().cast("map<string,string>")
    zero = {name: fn.coalesce(name, fn.lit(0)) for name in _COUNTED}
    return rows.withColumns({"minIsr": least, "configs": fn.coalesce("configs", none), **zero})


_COUNTED = ("partitions", "underReplicated", "offline", "underMinIsr", "reassigning")


def _configs(versions: Mapping[str, DataFrame]) -> DataFrame:
    kind, name = fn.col("resourceType"), fn.col("resourceName")
    source = fn.when((kind == "BROKER") & (name == ""), fn.lit("DYNAMIC_DEFAULT_BROKER_CONFIG")).otherwise(
        fn.concat(fn.lit("DYNAMIC_"), kind, fn.lit("_CONFIG"))
    )
    not_in_records = ("isReadOnly", "synonyms", "documentation")
    return with_facts(versions["configs"]).withColumns(
        {"source": source, **{column: fn.lit(None) for column in not_in_records}}
    )


_FACTS = (
    Field("_kind", "string", "the type of resources that have the key"),
    Field("_key", "string", "its name"),
    Field("type", "string", "the type of its values"),
    Field("isSensitive", "boolean", "whether they are secrets"),
)


def with_facts(rows: DataFrame) -> DataFrame:
    """Add ``type`` and ``isSensitive`` of the config key to rows with ``resourceType`` and ``name``. Both are null for
    a key that no release knows. Keys are looked up as in :func:`kshell.metadata.config_types.known_key`.
    """
    listed = (
        {"_kind": kind, "_key": name, "type": key_type.type, "isSensitive": key_type.is_password}
        for kind in TABLE
        for name, key_type in known_types(kind).items()
    )
    name, facts = fn.col("name"), frame_of(rows.sparkSession, _FACTS, listed)
    exact = rows.join(fn.broadcast(facts), _is_key(name), "left").drop("_kind", "_key")
    listeners = facts.where("_kind = 'BROKER'").withColumnsRenamed({"type": "_type", "isSensitive": "_isSensitive"})
    joined = exact.join(fn.broadcast(listeners), fn.col("type").isNull() & _is_key(_after_prefix(name)), "left")
    known = {fact: fn.coalesce(fact, f"_{fact}") for fact in ("type", "isSensitive")}
    return joined.withColumns(known).drop("_kind", "_key", *(f"_{fact}" for fact in known))


def _is_key(name: Column) -> Column:
    return (fn.col("resourceType") == fn.col("_kind")) & (name == fn.col("_key"))


def _after_prefix(name: Column) -> Column:
    """The key after the prefix ``listener.name.LISTENER.`` and after a SASL mechanism, if any; null without prefix."""
    rest = fn.regexp_extract(name, r"^listener\.name\.[^.]*\.(.*)$", 1)
    base = rest
    for key in sorted(PER_MECHANISM):
        base = fn.when(rest.endswith(f".{key}"), fn.lit(key)).otherwise(base)
    return fn.when(name.startswith(LISTENER_PREFIX), base)


def _controllers(versions: Mapping[str, DataFrame]) -> DataFrame:
    rows = versions[CONTROLLERS]
    if "clusters" in versions:
        rows = _with_quorum_state(rows, versions["clusters"])
    first = fn.get("listeners", fn.lit(0))
    host = fn.when(first["host"].contains(":"), fn.concat(fn.lit("["), first["host"], fn.lit("]")))
    address = fn.concat(fn.coalesce(host, first["host"]), fn.lit(":"), first["port"].cast("string"))
    return rows.withColumn("address", address)


def _with_quorum_state(rows: DataFrame, clusters: DataFrame) -> DataFrame:
    """Add the leader that ``clusters`` names; and its voters, for clusters in whose log no voter is named."""
    has_voters = rows.groupBy("clusterId").agg(fn.bool_or("isVoter").alias("_named"))
    leaders = clusters.select("clusterId", fn.col("leaderId").alias("_leader"), fn.col("voters").alias("_voters"))
    leaders = leaders.join(has_voters, "clusterId", "left")
    named = fn.when(~fn.coalesce("_named", fn.lit(False)), fn.col("_voters"))
    ids = fn.array_distinct(fn.concat(fn.coalesce(named, fn.array().cast("array<int>")), fn.array("_leader")))
    ids = fn.filter(ids, lambda node: node >= 0)
    more = leaders.select("clusterId", fn.explode(ids).alias("id"), fn.lit(True).alias("_isInQuorumState"))
    both = rows.join(more, ["clusterId", "id"], "full").join(fn.broadcast(leaders), "clusterId", "left")
    leads = fn.coalesce(fn.col("_leader") == fn.col("id"), fn.col("isLeader"), fn.lit(False))
    stays = fn.col("incarnationId").isNotNull() | fn.col("isVoter") | fn.col("_isInQuorumState") | leads
    return both.withColumn("isLeader", leads).where(fn.coalesce(stays, fn.lit(False)))
