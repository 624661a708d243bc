"""The tables of a cluster's state at one offset, one module per subject; :func:`.declaration.tables` finds them."""
