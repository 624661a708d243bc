"""Which records count, and from which copy are they read?

Several nodes have a copy of one cluster's metadata log. Any of them may be behind, damaged, cut off at its end, or of
another cluster under the same name. :func:`reconcile` answers for one cluster: every offset once, from the best
copy that has it, and which of them are committed; where states begin; and rows that say what is wrong with which copy.

::

    copies of one cluster           checkpoint of its tables
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

``logs`` has what all four stand on (a log as runs of batches), ``cluster`` runs them. A call works on one cluster, on
the driver or in a task; it reads files and gives plain values. Free of Spark.
"""

from kshell.spark.reconcile.cluster import ReconciledLog, reconcile
from kshell.spark.reconcile.copy_report import copy_row
from kshell.spark.reconcile.inventory import Checkpoint, by_cluster, cluster_of
from kshell.spark.reconcile.logs import BadBatches
from kshell.spark.reconcile.plan import ReplayRange

__all__ = [
    "BadBatches",
    "Checkpoint",
    "ReconciledLog",
    "ReplayRange",
    "by_cluster",
    "cluster_of",
    "copy_row",
    "reconcile",
]
