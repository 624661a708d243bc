"""Versions of silver as spans of time: the steps that several gold tables have in common.

``durations`` says how long versions lasted and divides that time among days and months; ``partition_versions``,
``broker_versions``, ``min_isr`` and ``config_comparison`` are the timelines of those subjects; ``changes`` turns
versions into changes; ``retained_versions`` picks the ended versions that the next step needs; ``aggregates``
has typed columns and ``GROUP BY``. In come DataFrames of silver, out go DataFrames: importing this needs no Spark.
"""
