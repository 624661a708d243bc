"""The meaning of metadata records: which state of a cluster they result in, and what is wrong with that state.

Verified batches come in from :mod:`kshell.protocol`. Out go immutable images (:mod:`.image`, made by :mod:`.replay`),
the image at any offset of the log (:mod:`.history`), and findings (:mod:`.health`). Record types are declared in
:mod:`.families`. Nothing in here reads files or connects to nodes.
"""
