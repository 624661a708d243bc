"""Decide, for one cluster, which records of its metadata log to read, and from which copy.

Several nodes have a copy of the log. Any copy may be behind, damaged, cut off at its end, or of another cluster under
the same cluster id. :func:`reconcile` plans to read every offset once, from the best copy that has it. It also says
which offsets are proven to be committed, from which snapshots the cluster's state is replayed, and what is wrong with
which copy.

::

    copies of one cluster           checkpoint: how far its tables are
          |                                |
          v                                v
    inventory    which files and batches each copy has after the checkpoint (headers only)
          |
    comparison   Raft's rules: the reference, the limit of every other copy, what is committed, whose copy it is
          |
    plan         the merged log, cut into slices; the snapshots that states begin with; whether to start from scratch
          |
    copy_report  rows of files, copies, clusters, quarantine
          |
          v
    ReconciledLog: slices to read, ranges to replay, rows, the next checkpoint

``logs`` has what all four modules use (a log as runs of batches); ``cluster`` calls them in this order. The code reads
files and returns plain values, so it runs on the driver or in a task. It does not import Spark.
"""

from kshell.spark.reconcile.cluster import ReconciledLog, reconcile
from kshell.spark.reconcile.copy_report import copy_row
from kshell.spark.reconcile.inventory import Checkpoint, by_cluster, cluster_of
from kshell.spark.reconcile.logs import BadBatches
from kshell.spark.reconcile.plan import ReplayRange, Request

__all__ = [
    "BadBatches",
    "Checkpoint",
    "ReconciledLog",
    "ReplayRange",
    "Request",
    "by_cluster",
    "cluster_of",
    "copy_row",
    "reconcile",
]
