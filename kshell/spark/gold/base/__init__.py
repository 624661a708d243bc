"""What the modules of gold tables share: their declaration, times, partitions over time, aggregation."""
