"""Brokers over time: their registrations, the state of each version, the rack of each day."""

from kshell.spark.gold.timelines.durations import DAY_MS, by_keys, timed, versions_of

OF_A_BROKER = versions_of(("broker",))
"""SQL: the window over the versions of one broker, by offset; for the rows of :data:`BROKER_VERSIONS`."""
IS_FENCING = "fenced AND NOT previous.fenced AND previous.session = session"
"""SQL: whether a version of :data:`BROKER_VERSIONS` began with the fencing of a broker that was not fenced."""

_VERSIONS = """(
    SELECT clusterId, id AS broker, epoch, fenced, inControlledShutdown, rack, incarnationId, validFromOffset,
      validFromMs, validToOffset, validToMs
    FROM {brokers}
  )"""
_OF_A_SESSION = versions_of(("broker", "session"))
BROKER_VERSIONS = f"""
  SELECT * EXCEPT (before, wasUnfenced),
    CASE WHEN fenced AND NOT wasUnfenced THEN 'registered' WHEN fenced THEN 'fenced'
      WHEN inControlledShutdown THEN 'controlled-shutdown' ELSE 'unfenced' END AS state
  FROM (
    SELECT *, bool_or(NOT fenced) OVER {_OF_A_SESSION} AS wasUnfenced,
      lag(struct(fenced, session)) OVER {OF_A_BROKER} AS previous
    FROM (
      SELECT *, sum(if(before.validToOffset = validFromOffset AND before.epoch = epoch, 0, 1)) OVER {OF_A_BROKER}
        AS session
      FROM (
        SELECT *, lag(struct(epoch, validToOffset)) OVER {OF_A_BROKER} AS before,
          lead(struct(validFromOffset, validFromMs)) OVER {OF_A_BROKER} AS following
        FROM ({timed(_VERSIONS, ("broker",))})
      )
    )
  )"""
"""SQL: the versions of brokers with spans (:mod:`.durations`), ``session`` (the number of the registration, from 1),
``state`` (registered, unfenced, controlled-shutdown, fenced), and parts of the version before (``previous``: fenced,
session) and after (``following``: validFromOffset, validFromMs), even if there is a gap between them. Reads
``{brokers}`` and ``{clusters}``."""

RACKS_BY_DAY = f"""
  SELECT clusterId, dayNumber, broker, max_by(rack, validFromOffset) AS rack
  FROM (
    SELECT *, explode(sequence(beginMs div {DAY_MS}, greatest(beginMs, endMs - 1) div {DAY_MS})) AS dayNumber
    FROM ({timed(_VERSIONS, ("broker",))})
  )
  GROUP BY {by_keys(("clusterId", "dayNumber", "broker"))}"""
"""SQL: one row per day (``dayNumber``: days since 1970) and ``broker`` that was registered at any time of it, with its
``rack`` by the last version on that day. Reads ``{brokers}`` and ``{clusters}``."""
