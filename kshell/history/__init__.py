"""Questions to the past: everything that asks the log, or its index, what changed, when, and by which record.

``log`` (records), ``diff``, ``blame``, and the story of a partition with its brokers (``why``, ``timeline``). In come a
session and points in time; out go rows and sentences. Who caused a change is never known: records have no author.
"""
