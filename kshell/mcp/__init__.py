"""``kshell mcp``: a server of the Model Context Protocol (MCP), with commands as tools for a language model's client.

The client's messages come in on standard input; only answers go out on standard output. :mod:`kshell.engine.tools` says
which tools there are, with which arguments; this package adds limits (:mod:`.answers`) and the protocol.

The main thread runs the calls one after another (:mod:`.calls`), because only there a deadline can end them. A second
thread handles the protocol (:mod:`.server`, the only module that imports ``mcp``, which takes a second).
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from types import SimpleNamespace

from kshell.engine.source_flags import sources_of
from kshell.errors import EXIT_OK, UsageError
from kshell.escape import terminal
from kshell.extras import require
from kshell.mcp.messages import report

TIMEOUT = 60.0
"""Seconds that one call may take, unless ``--timeout`` is given."""


def serve(options: SimpleNamespace) -> int:
    """Serve until the client closes standard input, and return the exit code.

    Args:
        options: the options of the command line that name sources, and ``show_secrets``, ``as_of`` and ``timeout``.

    Raises:
        UsageError: the package ``mcp`` is missing, no source is given, two sources have the same name, or
            ``--show-secrets`` or ``--as-of`` is given.
        SourceError: a source has nothing to read.
    """
    if options.show_secrets:
        raise UsageError("mcp: secrets stay redacted: a model's client may store or send what it is given")
    if options.as_of is not None:
        raise UsageError("mcp: --as-of is an argument of each call, as_of")
    require("mcp", "mcp", "mcp")
    from kshell.mcp.calls import Calls, open_sources  # late, as the next import: only this command needs them

    sources, warnings = open_sources(sources_of(options), os.environ, options)
    for warning in warnings:
        report(f"warning: {terminal(warning)}")
    if sys.stdin.isatty():
        report("note: a model's client starts this, and speaks MCP with it (docs/mcp.md); Ctrl-D ends it")
    from kshell.mcp.server import speak

    gc.enable()  # one-shot commands run without garbage collection
    calls = Calls(sources, options.timeout or TIMEOUT)
    threading.Thread(target=speak, args=(calls,), name="kshell mcp", daemon=True).start()
    calls.run()
    return EXIT_OK
