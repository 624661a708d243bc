"""Brokers as a source: an image of what they answer."""
