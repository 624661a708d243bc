"""Measurements, side by side with Kafka's own tools in one run: ratios, because machines differ. Never timed tests.

A benchmark is a module with ``run(rounds) -> Comparison``. ``python -m tests.bench [NAME …] [--rounds N]`` runs them.
"""
