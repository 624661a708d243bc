"""Copies of one metadata log, from several nodes, side by side."""
