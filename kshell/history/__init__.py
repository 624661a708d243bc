"""Questions to the past: everything that asks the log, or its index, what changed, when, and by which record.

``log`` (records, and what fills the log), ``diff``, ``blame``, and stories: of a partition with its brokers (``why``,
``timeline``), of a topic, of a node. In come a session and points in time; out go rows, sentences and bars. Who caused
a change is never known: records have no author.
"""
