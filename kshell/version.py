"""The version, in one place, below everything."""

__version__ = "0.1.0"
