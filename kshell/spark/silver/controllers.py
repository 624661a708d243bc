"""The table ``controllers``: which are registered, which are voters and which leads, as far as the log says.

A voter's listeners are those of its registration, else those of the voter set. Without a voter set (kraft.version 0)
the voters are those that the last LeaderChange names. A snapshot has none: the one before its end is an event, too.
"""

from __future__ import annotations

from kshell.spark.silver.declaration import SilverTable, silver
from kshell.spark.silver.expressions import LISTENERS, features, listeners, quoted, record_fields_sql
from kshell.spark.silver.versions import BASES, last_of, until_base, versions

_SET, _REMOVED, _LEADER, _VOTERS = (
    "REGISTER_CONTROLLER_RECORD",
    "UNREGISTER_CONTROLLER_RECORD",
    "LEADER_CHANGE",
    "KRAFT_VOTERS",
)
_NO_IDS = "cast(array() AS array<int>)"
_ALWAYS = "cast(-9223372036854775808 AS bigint)"
"""SQL: an offset before all others, for a controller that has no current row."""
_REGISTRATION = ("listeners", "incarnationId", "zkMigrationReady", "supportedFeatures")
"""Columns that are known only while a controller is registered; ``listeners`` also from the voter set."""


def _controllers(table: SilverTable) -> str:
    """Build the query: one row per version of a controller."""
    endpoints = "transform(voter.endpoints, p -> struct(p.name, p.host, p.port, cast(NULL AS string)))"
    registered = f"""named_struct('listeners', {listeners("registered.endPoints")},
      'incarnationId', registered.incarnationId, 'zkMigrationReady', registered.zkMigrationReady,
      'supportedFeatures', {features("registered.features")})"""
    values = {
        "listeners": "CASE WHEN isRegistered THEN registered.listeners"
        " WHEN size(voter.points) > 0 THEN voter.points END",
        "isLeader": "leads",
        **{name: f"registered.{name}" for name in _REGISTRATION[1:]},
        "isVoter": "votes",
        "voterListeners": "voter.points",
    }
    is_there = "isRegistered OR votes OR leads"
    columns = ", ".join(f"CASE WHEN {is_there} THEN {value} END AS {name}" for name, value in values.items())
    return f"""
WITH {BASES},
opened AS (
  SELECT *,
    CASE WHEN type IN ('{_SET}', '{_REMOVED}') THEN {record_fields_sql(_SET)} END AS registered,
    CASE WHEN type = '{_LEADER}' THEN {record_fields_sql(_LEADER, "leaderId", "voters")} END AS change,
    CASE WHEN type = '{_VOTERS}' THEN {record_fields_sql(_VOTERS, "voters")} END AS quorum
  FROM {{events}} WHERE type IN ({quoted(table.record_types)})
),
ids AS (
  -- a record about all controllers says something of each that is named anywhere
  SELECT clusterId, explode(filter(flatten(array(
      coalesce(array(registered.controllerId), {_NO_IDS}), coalesce(change.voters.voterId, {_NO_IDS}),
      coalesce(quorum.voters.voterId, {_NO_IDS}), coalesce(array(change.leaderId), {_NO_IDS}))), i -> i >= 0)) AS id
  FROM opened
  UNION SELECT clusterId, id FROM {{controllers}}
),
named AS (
  SELECT /*+ BROADCAST(ids) */ opened.*, id, get(filter(quorum.voters, v -> v.voterId = id), 0) AS voter
  FROM opened JOIN ids ON opened.clusterId = ids.clusterId
  WHERE registered.controllerId IS NULL OR registered.controllerId = id
),
voter_sets AS (
  SELECT DISTINCT clusterId, true AS hasSet FROM {{controllers}} WHERE voterListeners IS NOT NULL
),
said AS (
  -- what each record says of the controller `id`; null is nothing
  SELECT clusterId, id, atOffset, atMs, sequence,
    CASE WHEN type IN ('{_SET}', '{_REMOVED}') THEN {registered} END AS registered,
    CASE WHEN type = '{_VOTERS}' THEN named_struct('votes', array_contains(quorum.voters.voterId, id),
      'points', cast({endpoints} AS {LISTENERS})) END AS voter,
    CASE WHEN type = '{_LEADER}' THEN array_contains(change.voters.voterId, id) END AS isNamed,
    CASE WHEN type = '{_LEADER}' THEN change.leaderId = id END AS leads
  FROM named
  UNION ALL
  -- what was so before; of controllers that were not there, only whether there is a voter set
  SELECT ids.clusterId, ids.id, coalesce(validFromOffset, {_ALWAYS}), validFromMs, -1L,
    CASE WHEN incarnationId IS NOT NULL THEN struct({", ".join(_REGISTRATION)}) END,
    CASE WHEN hasSet THEN struct(voterListeners IS NOT NULL AS votes, voterListeners AS points) END,
    CASE WHEN validFromOffset IS NOT NULL THEN isVoter END,
    CASE WHEN validFromOffset IS NOT NULL THEN isLeader END
  FROM ids
    LEFT JOIN {{controllers}} c ON ids.clusterId = c.clusterId AND ids.id = c.id
    LEFT JOIN voter_sets ON ids.clusterId = voter_sets.clusterId
  WHERE validFromOffset IS NOT NULL OR hasSet
),
bounded AS ({until_base("said")}
),
running AS (
  SELECT clusterId, id, atOffset, atMs, sequence, false AS isNew, endsOffset, endsMs,
    {last_of("registered", table)} AS registered, {last_of("voter", table)} AS voter,
    {last_of("isNamed", table)} AS isNamed, coalesce({last_of("leads", table)}, false) AS leads
  FROM bounded
),
judged AS (
  SELECT *, registered.incarnationId IS NOT NULL AS isRegistered,
    CASE WHEN voter IS NOT NULL THEN voter.votes ELSE coalesce(isNamed, false) END AS votes
  FROM running
),
states AS (
  SELECT clusterId, id, atOffset, atMs, sequence, isNew, endsOffset, endsMs,
    NOT ({is_there}) AS isGone,
    {columns}
  FROM judged
) {versions("states", table)}"""


TABLES = (
    silver(
        "controllers",
        "the controllers that the log names: registered, voters, the leader",
        ("id",),
        (_SET, _REMOVED, _LEADER, _VOTERS),
        _controllers,
    ),
)
