"""Which files there are, where their batches begin, bounded slices, what an executor reads. Free of Spark."""
