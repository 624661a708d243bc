"""Questions to the past: what changed, who wrote it, and what became of a partition or a broker."""
