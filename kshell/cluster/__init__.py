"""Facts about a cluster that several commands need, gathered from its nodes or from the metadata image.

Input: a session and, for live sources, its connections (:mod:`kshell.client`). Output: nodes with their API versions
and software, supported and finalized features, entities with configs, the load of each broker, and the state that the
checks of ``health`` read. What only one command needs is in the module of that command.
"""
