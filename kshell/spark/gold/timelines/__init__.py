"""Versions of silver as spans of time, which gold tables are computed from.

``durations`` says how long versions lasted and how that falls on days and months; ``partition_versions``,
``broker_versions``, ``min_isr`` and ``config_comparison`` are the timelines of those subjects; ``changes`` turns
versions into changes; ``retained_versions`` picks what the next step needs; ``aggregates`` has typed columns and
``GROUP BY``. In come DataFrames of silver, out go DataFrames: importing this needs no Spark.
"""
