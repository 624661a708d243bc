"""One step of the pipeline: what is new is planned, decoded, and written layer by layer."""
