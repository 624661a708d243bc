"""Tests against a real Kafka: its jars, its tools, running clusters. Skipped where there is no Java or Maven."""
