"""The interactive shell. Only this package knows prompt_toolkit; nothing of it is imported for a one-shot command."""

from kshell.repl.app import run

__all__ = ["run"]
