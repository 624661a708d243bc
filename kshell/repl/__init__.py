"""The interactive shell: keys come in (``prompt``, ``completion``, ``highlight``), ``lines`` runs what was entered.

``app`` is the loop around both; ``loading`` reads the source meanwhile. Only this package imports prompt_toolkit, and
nothing of it is loaded for a one-shot command.
"""

from kshell.repl.app import run

__all__ = ["run"]
