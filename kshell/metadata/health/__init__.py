"""Health checks: what is wrong with a cluster, or may go wrong. One declared check per kind of finding.

The checks are in one module per subject (:mod:`.check` declares them, :mod:`.examine` runs them). A new check is a new
declaration in one of these modules, or in a new one: no other module lists them.
"""
