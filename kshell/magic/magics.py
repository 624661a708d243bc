"""The magics themselves: IPython's side of :class:`~kshell.magic.notebook.Notebook`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand

from kshell.result import Result

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from kshell.magic.notebook import Notebook


@magics_class
class KafkaMagics(Magics):
    """``%kafka`` and ``%%kafka``."""

    def __init__(self, ip: InteractiveShell, notebook: Notebook) -> None:
        super().__init__(ip)
        self._notebook = notebook

    # IPython would replace $name and {name} by itself; here only {{expr}} is Python's.
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def kafka(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Result:
        """Kafka's metadata: ``%kafka --help`` says how it is used, ``%kafka help`` what there is."""
        if cell is None:
            return self._notebook.line(line, local_ns)
        return self._notebook.cell(line, cell, local_ns)
