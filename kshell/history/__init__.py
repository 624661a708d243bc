"""Questions to the past: everything that asks the metadata log, or its index, what changed, when, and by which record.

The commands ``log`` (records, and what fills the log), ``diff``, ``blame``, and the stories of a partition with its
brokers (``why``, ``timeline``), of a topic and of a node live on it. A session and points in time come in; rows,
sentences and bars go out. Records have no author, so no answer says who caused a change.
"""
