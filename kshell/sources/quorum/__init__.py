"""A running quorum as a source: an observer of its log."""
