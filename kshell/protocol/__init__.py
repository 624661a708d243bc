"""Kafka's bytes: record batches and their verification; declared messages, their decoding and encoding. No I/O.

In: bytes that ``sources`` read or ``client`` received. Out: batches, records and messages, whose meaning is
``metadata``'s subject; and the bytes of requests.
"""
