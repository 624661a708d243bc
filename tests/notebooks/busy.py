"""A cluster in which something happens, for notebooks that follow one."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator

from tests.kafka.cluster import Cluster


@contextlib.contextmanager
def topics_come(cluster: Cluster) -> Iterator[None]:
    """While it lasts, a topic is created every second."""
    done = threading.Event()

    def create() -> None:
        with cluster.admin() as admin:
            for number in itertools.count(1):
                if done.wait(1):
                    return
                admin.create_topic(f"hello-{number}", 2, 2)

    thread = threading.Thread(target=create)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
