"""Bytes <-> values: primitives, declared messages, record batches, compression. No I/O."""
