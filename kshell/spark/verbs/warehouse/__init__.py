"""What verbs share: options that name a warehouse (``flags``), ``opening`` it, a step's answer (``step_summary``)."""
