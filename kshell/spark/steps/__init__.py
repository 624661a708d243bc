"""One step of the pipeline: what is new, planned, decoded, and written layer by layer."""
