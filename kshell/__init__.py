"""kshell: a metadata shell for Apache Kafka's KRaft mode."""

__version__ = "0.1.0"
