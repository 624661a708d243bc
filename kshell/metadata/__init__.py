"""What the records mean: declarations, replay, the immutable image, redaction."""
