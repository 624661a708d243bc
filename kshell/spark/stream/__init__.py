"""Structured Streaming: the source ``spark.readStream.format("kraft")``, and tables that follow growing directories."""
