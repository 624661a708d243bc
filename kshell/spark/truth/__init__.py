"""One truth out of the copies of a cluster's metadata log: what is to be read, once each, and what states begin with.

Free of Spark: one call works on one cluster, and what it gives are plain values.
"""

from kshell.spark.truth.cluster import truth
from kshell.spark.truth.clusters import by_cluster
from kshell.spark.truth.values import Era, Reached, Truth

__all__ = ["Era", "Reached", "Truth", "by_cluster", "truth"]
