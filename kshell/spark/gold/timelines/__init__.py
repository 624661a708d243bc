"""Versions of silver as spans of time: SQL that several gold tables have in common.

``durations`` says how long versions lasted and divides that time among days and months; ``partition_versions``,
``broker_versions``, ``min_isr`` and ``config_comparison`` are the timelines of those subjects; ``changes`` turns
versions into changes; ``retained_versions`` picks the ended versions that the next step needs. All of it is text: a
query, which reads silver as ``{name of the table}``, or an expression. Importing this needs no Spark. A parameter with
rows (``versions``, ``spans``, ``changed``) is what may follow ``FROM``: a table's name, or a query in parentheses.
"""
