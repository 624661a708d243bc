"""Where metadata records come from: a directory, a running quorum, brokers, several copies of one log, object stores.

A path or addresses come in; a :class:`.Source` goes out, which lists, loads and follows the log. It only reads: no
lock, no write, no temporary file next to the data.

One command changes something at a running node, without a source: ``loggers NODE set``
(:mod:`kshell.client.loggers`).
"""
