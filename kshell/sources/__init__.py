"""Where records come from. A source only reads: no lock, no write, no temporary file beside the data.

One command changes something at a running node, past the source: ``loggers NODE set``
(:mod:`kshell.client.loggers`).
"""
