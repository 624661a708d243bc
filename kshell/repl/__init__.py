"""The interactive shell: ``prompt`` reads a line, ``lines`` runs it and prints the answer, ``app`` is the loop.

``completion``, ``highlight`` and ``toolbar`` help while the user types; ``loading`` reads the source in the background.
Only this package imports prompt_toolkit, and one-shot commands do not import it.
"""

from kshell.repl.app import run

__all__ = ["run"]
