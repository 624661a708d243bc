"""kshell's version; everything that shows or needs it imports it from here."""

__version__ = "0.1.0"
