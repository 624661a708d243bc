"""The full screen of the command ``top``: a cluster's problems, topics, brokers and records at any moment of its log.

The contents are answers of commands (:mod:`.panels`), computed in one background thread (:mod:`.viewer`). textual draws
them (:mod:`.rows_view`, :mod:`.screen`); only this package imports it.
"""
