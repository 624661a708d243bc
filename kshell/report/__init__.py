"""Render the HTML page of the command ``report``; apart from it, for commands may not import rendering."""
