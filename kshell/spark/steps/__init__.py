"""One step of the pipeline: plan the new records of all clusters, decode them, and write the tables layer by layer.

``step`` is the entry: it plans (``planning``), writes (``layers``) and commits.
"""
