"""What verbs do with a warehouse: its ``flags``, ``opening`` it, and a step's answer (``step_summary``)."""
