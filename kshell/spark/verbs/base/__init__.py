"""What verbs of the pipeline share."""
