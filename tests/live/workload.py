"""Changes of every kind on a running cluster, for as long as somebody watches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from tests.kafka.admin import Admin, AdminError


def change(admin: Admin, number: int, *, scram: bool = True) -> None:
    """One round: creates, alters and deletes topics, configs, ACLs, quotas and SCRAM users."""
    name = f"work.{number}"
    admin.create_topic(name, 1 + number % 3, 1, configs={"retention.ms": str(1000 + number)})
    admin.set_config("TOPIC", name, {"max.message.bytes": "1048576", "retention.ms": None})
    admin.set_config("BROKER", "", {"log.cleaner.threads": str(1 + number % 2)})
    admin.acl(("TOPIC", name), f"User:user {number}", "READ", permission="DENY" if number % 2 else "ALLOW")
    admin.quota({"user": f"user/{number}", "client-id": None}, "request_percentage", number + 0.5)
    if scram:
        admin.scram(f"user-{number}", "SCRAM-SHA-256", "made-up")
    if number >= 3:
        old = number - 3
        admin.delete_topic(f"work.{old}")
        admin.acl(("TOPIC", f"work.{old}"), f"User:user {old}", "READ", remove=True,
                  permission="DENY" if old % 2 else "ALLOW")  # fmt: skip
        admin.quota({"user": f"user/{old}", "client-id": None}, "request_percentage", None)
        if scram:
            admin.scram(f"user-{old}", "SCRAM-SHA-256", None)


class Work:
    """How far the background changes are; ``refused`` counts rounds that Kafka broke off (elections do that)."""

    def __init__(self) -> None:
        self.rounds = 0
        self.refused = 0


@contextlib.contextmanager
def changing(admin: Admin, *, scram: bool = True, first: int = 0) -> Iterator[Work]:
    """Keep a cluster changing in the background. A round that is refused half-way is left as it is."""
    work = Work()
    stop = threading.Event()

    def loop() -> None:
        number = first
        while not stop.is_set():
            try:
                change(admin, number, scram=scram)
                work.rounds += 1
            except AdminError:
                work.refused += 1
                stop.wait(0.2)
            number += 1

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield work
    finally:
        stop.set()
        thread.join()
