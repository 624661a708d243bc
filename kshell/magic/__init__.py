"""The magics ``%kafka`` and ``%%kafka``: kshell in IPython and Jupyter (``%load_ext kshell``).

A line of a cell comes in (parsed by ``lines`` and ``interpolate``), ``notebook`` runs it on one of its ``sessions``,
and a :class:`kshell.result.Result` goes out, shown by ``display`` or, if it has no end, by ``live``. Only this package
imports IPython.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_ATTRIBUTE = "_kshell_notebook"
_WIDGET = ("kshell.result.widget", "TableWidget")


def load(ip: InteractiveShell) -> None:
    """Register the magics, their completion, and the display of results. After a reload, sessions stay open."""
    from kshell.magic.display import install, show_widget
    from kshell.magic.matcher import matcher
    from kshell.magic.notebook import KafkaMagics, Notebook
    from kshell.result import Result

    unload(ip)
    previous = getattr(ip, _ATTRIBUTE, None)
    notebook = Notebook(ip, sessions=previous.sessions if previous is not None else None)
    setattr(ip, _ATTRIBUTE, notebook)
    ip.register_magics(KafkaMagics(ip, notebook))
    notebook.matcher = matcher(notebook)
    ip.Completer.custom_matchers.append(notebook.matcher)
    if ip.display_formatter is not None:
        displays = ip.display_formatter.ipython_display_formatter
        displays.for_type(Result, notebook.show)
        displays.for_type_by_name(*_WIDGET, show_widget)  # by name, so that the module is not imported yet
    ip.events.register("pre_run_cell", notebook.begin)
    install()


def unload(ip: InteractiveShell) -> None:
    """Undo :func:`load`; sessions stay open until the kernel ends."""
    from kshell.magic.display import remove
    from kshell.magic.notebook import KafkaMagics
    from kshell.result import Result

    notebook = getattr(ip, _ATTRIBUTE, None)
    if notebook is None:
        return
    if notebook.matcher in ip.Completer.custom_matchers:
        ip.Completer.custom_matchers.remove(notebook.matcher)
    if notebook.begin in ip.events.callbacks["pre_run_cell"]:
        ip.events.unregister("pre_run_cell", notebook.begin)
    for kind in ("line", "cell"):
        ip.magics_manager.magics[kind].pop("kafka", None)
    ip.configurables[:] = [magics for magics in ip.configurables if not isinstance(magics, KafkaMagics)]
    if ip.display_formatter is not None:
        displays = ip.display_formatter.ipython_display_formatter
        displays.pop(Result, None)
        displays.pop(".".join(_WIDGET), None)
    remove()
