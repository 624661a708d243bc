"""The entry point of ``python -m kshell`` and of the command ``kshell``: prepares the process, then runs the CLI."""

import _signal  # type: ignore[import-not-found]  # the module signal without its enumerations, which cost 1 ms
import gc
import os
import sys
from typing import NoReturn

# While modules are imported, Ctrl-C ends the process at once, without a traceback from inside an import.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def entry() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    # A command creates objects that stay and hardly any cycles: searching them for garbage takes longer than
    # many an answer. The interactive shell turns the collector on again.
    gc.disable()
    from kshell.cli import main
    from kshell.lossy_stream import prepare_streams

    prepare_streams()
    if _signal.getsignal(_signal.SIGINT) is _signal.SIG_DFL:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    sys.unraisablehook = _interrupt_again
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 2
    # No normal exit: freeing a large image object by object would take longer than many an answer.
    os._exit(code)


def _interrupt_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Interrupt again: Python drops an exception that a signal raises inside a finalizer, and would only print it."""
    if dropped.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(dropped)
        return
    import _thread  # starting a threading.Thread waits for it, and the signal must not come in here

    main_thread, is_over = _thread.get_ident(), _thread.allocate_lock()

    def interrupt() -> None:
        import time

        with is_over:
            time.sleep(0.01)  # until the finalizer is over, too
        _signal.pthread_kill(main_thread, _signal.SIGINT)

    is_over.acquire()
    _thread.start_new_thread(interrupt, ())
    is_over.release()


if __name__ == "__main__":
    entry()
