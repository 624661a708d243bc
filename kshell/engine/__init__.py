"""What every front end stands on: the command language, how commands are declared, sessions and results."""
