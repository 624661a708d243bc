"""Found by Spark itself: the wheel has this module at its top, where pyspark looks for ``pyspark_*`` with a
``DefaultSource``. So ``spark.read.format("kraft")`` works without ``kshell.spark.register``.
"""

from kshell.spark.source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
