"""Tables that are written in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress

Work = tuple[str, Callable[[], None]]
"""What writes a table, with its name."""
_THREADS = 4
"""Tables in parallel: each is a few short jobs, between which a core waits for the driver."""


def write_in_parallel(work: Sequence[Work], progress: Progress) -> None:
    """Write several tables in parallel. The first error ends it, once the writes that run have finished."""
    with ThreadPoolExecutor(_THREADS, "kshell table") as pool:
        running = {pool.submit(write): name for name, write in work}
        try:
            for number, future in enumerate(as_completed(running), 1):
                future.result()
                progress(0, 0, f"{running[future]} written, {number} of {len(work)}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
