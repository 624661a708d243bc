"""A month of a busy cluster as a real metadata directory: everything that gold tables count happens in it, by chance
that a seed decides.
"""

from __future__ import annotations

from pathlib import Path

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import control, value, write_log
from tests.spark.gold.busy import BEGIN, DAY, HOUR, RACKS, Clock, Cluster, right

CLUSTER = "churnchurnchurnchurn_w"
DAYS = 36


def month(folder: Path, seed: int = 8, clock: Clock = right) -> Path:
    """The log directory, with the log in it. ``clock``: what the controller takes a time for."""
    made = Cluster(seed, clock)
    made.control(control(2, leaderId=1))
    made.control(control(5, kRaftVersion=0))
    made.write(
        value("FEATURE_LEVEL", name="metadata.version", featureLevel=25),
        value("FEATURE_LEVEL", name="group.version", featureLevel=1),
    )
    for broker in RACKS:
        made.register(broker)
        made.ms += 700
        made.registration(broker, fenced=-1)
    for number in range(8):
        made.topic(f"topic-{number}", 1 + number, 1 + number % 3)
    made.topic("never", 2, 2, "ABORT")
    made.topic("whole", 2, 2, "END")
    while made.ms < BEGIN + DAYS * DAY:
        made.ms += made.random.randrange(4 * HOUR)
        _something(made)
    part = next(part for part in made.parts if not (part.adding or part.removing))
    made.write(made.change(part, addingReplicas=[99]))
    made.registration(2, fenced=1)
    made.lose(2)
    lacking = next(one for one in made.parts if one.topic != part.topic and len(one.isr) < len(one.replicas))
    made.remove_topic(lacking.topic)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n")
    write_log(folder / METADATA_DIRECTORY, *made.batches)
    return folder


def _something(made: Cluster) -> None:
    some, day = made.random, (made.ms - BEGIN) // DAY
    pick = some.random()
    if day == 20 and some.random() < 0.4:
        for _ in range(15):  # a storm, which no other week has
            parts = [part for part in made.parts if len(part.isr) > 1]
            for part in parts:
                part.leader = next(b for b in part.isr if b != part.leader)
                made.write(made.change(part, leader=part.leader))
    if pick < 0.12:
        made.fail(some.choice(list(RACKS)), clean=some.random() < 0.6)
    elif pick < 0.3:
        made.reassign(some.choice(made.parts))
    elif pick < 0.45:
        made.some_config()
    elif pick < 0.65:
        made.access()
    elif pick < 0.68 and len(made.names) > 5:
        made.remove_topic(some.choice(list(made.names)))
    elif pick < 0.71:
        made.topic(some.choice([f"topic-{number}" for number in range(9)]) + f".{made.new_id()}", 3, 3)
    elif pick < 0.73:
        level = some.choice([25, 26, 30])
        made.write(value("FEATURE_LEVEL", name="metadata.version", featureLevel=level))
        made.write(value("FEATURE_LEVEL", name="group.version", featureLevel=some.choice([0, 1])))
        made.control(control(5, kRaftVersion=some.choice([0, 1])))
    elif pick < 0.75 and len(made.live()) == len(RACKS):
        gone = 5
        made.registration(gone, fenced=1)
        made.lose(gone)
        made.write(value("UNREGISTER_BROKER", brokerId=gone, brokerEpoch=made.epochs[gone]))
        made.ms += some.randrange(DAY)
        made.register(gone)
        made.registration(gone, fenced=-1)
        made.recover(gone)
    else:
        made.write(value("NO_OP"))
