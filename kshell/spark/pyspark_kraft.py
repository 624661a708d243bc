"""Make ``spark.read.format("kraft")`` work without ``kshell.spark.register``.

The wheel has this module at its top level, where pyspark looks for modules ``pyspark_*`` with a ``DefaultSource``.
"""

from kshell.spark.source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
