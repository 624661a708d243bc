"""Write several tables of a step in parallel, in threads of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress

Work = tuple[str, Callable[[], None]]
"""The name of a table, and the function that writes it."""
_THREADS = 4
"""Tables written in parallel: each needs a few short Spark jobs, between which cores wait for the driver."""


def write_in_parallel(work: Sequence[Work], progress: Progress) -> None:
    """Write several tables in parallel. The first error is raised, once the running writes have finished."""
    with ThreadPoolExecutor(_THREADS, "kshell table") as pool:
        running = {pool.submit(write): name for name, write in work}
        try:
            for number, future in enumerate(as_completed(running), 1):
                future.result()
                progress(0, 0, f"{running[future]} written, {number} of {len(work)}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
