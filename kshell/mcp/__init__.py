"""``kshell mcp``: commands as tools of the Model Context Protocol (MCP), for a language model's client on this machine.

In come a client's messages on standard input; out go answers on standard output, and nothing else does. Which tools
there are, and with which arguments, says :mod:`kshell.engine.tools`; this package adds limits and a protocol.

The main thread runs one call after another (:mod:`.calls`), as only there a deadline can end it; a second thread speaks
the protocol (:mod:`.server`, the only one that knows the library ``mcp``, which takes a second to import).
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
from kshell.mcp.messages import tell

TIMEOUT = 60.0
"""Seconds that one call may take where ``--timeout`` says nothing else."""


def serve(options: SimpleNamespace) -> int:
    """Serve until the client closes standard input, and return the exit code.

    Args:
        options: what the command line says, with ``show_secrets``, ``as_of`` and ``timeout`` of the command.

    Raises:
        UsageError: the package ``mcp`` is missing, no source is given, two have one name, or secrets are asked for.
        SourceError: there is nothing to read.
    """
    if options.show_secrets:
        raise UsageError("mcp: secrets stay redacted: a model's client may store or send what it is given")
    if options.as_of is not None:
        raise UsageError("mcp: --as-of is an argument of each call, as_of")
    require("mcp", "mcp", "mcp")
    from kshell.mcp.calls import Calls, open_sources  # late, as the next: they are for this command alone

    sources, warnings = open_sources(sources_of(options), os.environ, options)
    for warning in warnings:
        tell(f"warning: {terminal(warning)}")
    if sys.stdin.isatty():
        tell("note: a model's client starts this, and speaks MCP with it (docs/mcp.md); Ctrl-D ends it")
    from kshell.mcp.server import speak

    gc.enable()  # one-shot commands do without
    calls = Calls(sources, options.timeout or TIMEOUT)
    threading.Thread(target=speak, args=(calls,), name="kshell mcp", daemon=True).start()
    calls.run()
    return EXIT_OK
