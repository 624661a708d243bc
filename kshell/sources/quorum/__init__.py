"""A running quorum as a source: an observer fetches its snapshot and its log, which are then read like files."""
