"""``top``: the cluster as a full screen, at any moment of its log.

What is shown are the answers of commands (:mod:`.panels`), computed in one thread beside the screen (:mod:`.viewer`),
and drawn by textual (:mod:`.rows_view`, :mod:`.screen`): nobody else knows that library.
"""
