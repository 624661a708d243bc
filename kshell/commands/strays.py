"""``strays``: what lies in brokers' log directories against what the image places there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kshell.commands.drain_check import complete_broker
from kshell.engine.arguments import count
from kshell.engine.declaration import Command, Example, Flag
from kshell.engine.result import Result
from kshell.errors import EXIT_FINDING, EXIT_OK, UsageError
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition, Topic
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import row_flags, select

if TYPE_CHECKING:
    from kshell.cluster.log_dirs import Found, Held
    from kshell.engine.session import Session

UNKNOWN_TOPIC = "unknown-topic"
OTHER_TOPIC_ID = "other-topic-id"
NO_SUCH_PARTITION = "no-such-partition"
NOT_A_REPLICA = "not-a-replica"
SET_ASIDE = "set-aside"
MISSING = "missing"
FINDINGS = (UNKNOWN_TOPIC, OTHER_TOPIC_ID, NO_SUCH_PARTITION, NOT_A_REPLICA, SET_ASIDE, MISSING)

_FIELDS = (
    Field("broker", "int32", "the broker whose log directory it is"),
    Field("topic", "string", "the topic's name"),
    Field("partition", "int32", "the partition's number"),
    Field("finding", Enumeration(FINDINGS), "what is wrong; see `man strays`"),
    Field("logDir", "string", "the log directory; null if it is missing"),
    Field("size", "int64", "bytes, as far as they are told"),
    Field("replicas", ["int32"], "the brokers that the image places it on; null if it has no such partition"),
    Field("topicId", "string", "the topic's id on disk; null if it is not told", True),
    Field("imageTopicId", "string", "the topic's id in the image", True),
)


def run(session: Session, args: Any) -> Result:
    """A row a finding; exit code 1 when there is one. Raises CommandError for a file that tells nothing."""
    if args.log_dirs is None:
        raise UsageError(
            "strays: --log-dirs FILE is missing",
            hint="kafka-log-dirs.sh --describe > FILE; or a listing, with --broker",
        )
    from kshell.cluster.log_dirs import read

    held = read(args.log_dirs, args.broker)
    image = image_for(session, "strays", ("topics",))
    rows = [*_strays(image, held.found), *_missing(session, image, held)]
    rows.sort(key=lambda row: (row["broker"], row["topic"], row["partition"], row["finding"]))
    return select(_FIELDS, rows, args, exit_code=EXIT_FINDING if rows else EXIT_OK)


def _strays(image: Image, found: Iterable[Found]) -> Iterator[dict[str, Any]]:
    """What is on disk and has no place in the image. What is being deleted is on its way already."""
    for one in found:
        if one.state == "delete":
            continue
        topic, placed = _of_image(image, one)
        finding = SET_ASIDE if one.state == "stray" else _finding(one, topic, placed)
        if finding is not None:
            yield {
                "broker": one.broker,
                "topic": one.topic,
                "partition": one.partition,
                "finding": finding,
                "logDir": one.log_dir,
                "size": one.size,
                "replicas": placed,
                "topicId": one.topic_id,
                "imageTopicId": str(topic.id) if topic else None,
            }


def _of_image(image: Image, one: Found) -> tuple[Topic | None, list[int] | None]:
    """(the topic of that name, the brokers that are to have the partition)."""
    topic: Topic | None = image[TOPICS].get(image[NAMES].get(one.topic))
    entry = topic.partition(one.partition) if topic is not None else None
    value = entry.value if entry is not None else None
    return topic, list(value.replicas) if isinstance(value, Partition) else None


def _finding(one: Found, topic: Topic | None, placed: list[int] | None) -> str | None:
    if topic is None:
        return UNKNOWN_TOPIC
    if one.topic_id is not None and one.topic_id != str(topic.id):
        return OTHER_TOPIC_ID
    if placed is None:
        return None if one.partition in topic else NO_SUCH_PARTITION
    return None if one.broker in placed else NOT_A_REPLICA


def _missing(session: Session, image: Image, held: Held) -> Iterator[dict[str, Any]]:
    """What the image places on a broker of which everything was seen, and that is not there."""
    for broker, why in sorted(held.partial.items()):
        session.remarks.append(f"broker {broker}: what is missing there is not known: {why}")
    seen = held.brokers.difference(held.partial)
    there: dict[tuple[int, str, int], set[str | None]] = {}
    for one in held.found:
        if one.state == "":
            there.setdefault((one.broker, one.topic, one.partition), set()).add(one.topic_id)
    for topic in image[TOPICS].values() if seen else ():
        topic_id = str(topic.id)
        for number, value in topic.scan():
            if not isinstance(value, Partition):
                continue
            for broker in seen.intersection(value.replicas):
                ids = there.get((broker, topic.name, number), set())
                if None in ids or topic_id in ids:
                    continue
                yield {
                    "broker": broker,
                    "topic": topic.name,
                    "partition": number,
                    "finding": MISSING,
                    "replicas": list(value.replicas),
                    "imageTopicId": topic_id,
                }


COMMAND = Command(
    name="strays",
    summary="partitions on brokers' disks that the image does not place there, and missing ones",
    run=run,
    flags=(
        Flag(
            ("--log-dirs",),
            "what kafka-log-dirs.sh --describe printed; a listing of a log directory (with --broker); a log directory;"
            " - for standard input",
            metavar="FILE",
        ),
        Flag(
            ("--broker",),
            "the broker whose listing or log directory it is",
            metavar="ID",
            convert=count,
            complete=complete_broker,
        ),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("strays --log-dirs log-dirs.json", "every broker, as kafka-log-dirs.sh tells it", 1),
        Example("strays --log-dirs listing.txt --broker 1 -o json", "one broker, as `ls` lists its directory", 1),
        Example(
            "strays --log-dirs log-dirs.json --where 'finding != missing' --columns broker,topic,size", "strays only", 1
        ),
    ),
    description=(
        "Findings: unknown-topic (the image has no topic of that name), other-topic-id (it has one, made anew after"
        " this one was deleted), no-such-partition, not-a-replica (the image places it on other brokers), set-aside"
        " (the broker itself renamed it to …-stray), missing (the image places it on the broker, and it is not"
        " there).\n\n"
        "A listing is what `ls`, `ls -l`, `ls -R` or `find` print. Where it holds topic ids, as `grep -r topic_id"
        " --include partition.metadata DIR` prints them, or where the directory itself is read, these are compared,"
        " too. kafka-log-dirs.sh tells no ids, and with --topic-list it leaves topics out, which then seem to be"
        " missing. A broker with several log directories needs all of them in one listing. The image and the disks are"
        " not of the same moment: what was created, moved or deleted in between may show."
    ),
    says_no="there is a finding, whether the options show it or not",
)
