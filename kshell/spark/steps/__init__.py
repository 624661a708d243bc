"""One step of the pipeline: plan the new records of all clusters, decode them, and write the tables layer by layer.

``step_run`` is the entry: it plans (``planning``) and calls ``step``, which writes (``layers``) and commits.
"""
