"""What the sections of a report share."""
