"""``plan-restore``: commands that a shell reads as they are meant, and that hold no secret."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.commands.plan_restore import LEFT_OUT, RESTORED, steps
from kshell.engine.session import Session
from kshell.metadata.image import Family, Image, families
from kshell.metadata.kafka_tools import KafkaTools
from kshell.shell_words import command_line, option
from tests import builders
from tests.builders import uuid, value
from tests.commands import cluster
from tests.commands.shell import lines, opened, rows, run

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
HOSTILE = "x'; touch /tmp/never #$(id)`id`\"\\ \n\x1b[31m\u202e$HOME*?[]{}~!-"


def read_by_bash(line: str) -> list[str]:
    """The words that bash makes of a command line, whose program is not run."""
    script = f'f() {{ printf "%s\\0" "$@"; }}; f {line}'
    printed = subprocess.run(["bash", "-c", script], capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    return [word.decode("utf-8", "surrogateescape") for word in printed.split(b"\0")[:-1]]


@given(st.lists(TEXT, min_size=1, max_size=8))
def test_words_are_what_bash_reads(words: list[str]) -> None:
    assert read_by_bash(command_line(words)) == words


@given(TEXT)
def test_what_is_printed_holds_nothing_that_a_terminal_obeys(word: str) -> None:
    assert command_line([word]).isprintable()


@pytest.mark.parametrize("word", ["-x", "--all", "-"])
def test_a_value_is_never_an_option(word: str) -> None:
    assert option("--topic", word) == (f"--topic={word}",)
    assert option("--topic", "x-") == ("--topic", "x-")


@pytest.fixture
def hostile(tmp_path: Path) -> Session:
    """Names and values that a shell or a tool would take for more."""
    quota = {"key": "producer_byte_rate", "value": 1.0, "remove": False}
    acl = {"resourceType": 2, "patternType": 4, "host": "*", "operation": 10, "permissionType": 2}
    return cluster.cluster(
        tmp_path,
        cluster.broker(1),
        cluster.topic(1, "-t"),
        cluster.partition(1, 0, [1], [1], 1),
        cluster.config(cluster.TOPIC, "-t", "cleanup.policy", "compact,delete"),
        cluster.config(cluster.TOPIC, "-t", "leader.replication.throttled.replicas", "a=b"),
        cluster.config(cluster.TOPIC, "-t", "follower.replication.throttled.replicas", ""),
        cluster.config(cluster.CLIENT_METRICS, HOSTILE, "match", "[client_id=a,b\n"),
        cluster.config(cluster.BROKER, "", "ssl.key.password", "canary-of-a-secret"),
        value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": HOSTILE}], **quota),
        value("CLIENT_QUOTA", entity=[{"entityType": "client-id", "entityName": None}], **quota),
        value("CLIENT_QUOTA", entity=[{"entityType": "planet", "entityName": "x"}], **quota),
        value("ACCESS_CONTROL_ENTRY", id=uuid(1), resourceName=HOSTILE, principal=f"User:{HOSTILE}", **acl),
        value("ACCESS_CONTROL_ENTRY", id=uuid(2), resourceName=" edge", principal="User:x", **acl),
        value("ACCESS_CONTROL_ENTRY", id=uuid(3), resourceName="u", principal="User:x", **(acl | {"resourceType": 9})),
        value("ACCESS_CONTROL_ENTRY", id=uuid(4), resourceName="t", principal="User:x", **(acl | {"operation": 9})),
        value("ACCESS_CONTROL_ENTRY", id=uuid(5), resourceName="", principal="User:x", **acl),
    )


class TestPlan:
    def test_every_command_is_words(self, hostile: Session) -> None:
        for row in rows(hostile, "plan-restore --bootstrap-server localhost:1"):
            if row["command"] is not None and "<(" not in row["command"]:
                words = read_by_bash(row["command"])
                assert words[:3] == [words[0], "--bootstrap-server", "localhost:1"]

    def test_values(self, hostile: Session) -> None:
        found = {(row["kind"], row["subject"]): row for row in rows(hostile, "plan-restore --where 'command != null'")}
        topic = read_by_bash(found["topic", "-t"]["command"])
        assert topic[3:] == [
            "--create",
            "--topic=-t",
            "--replica-assignment",
            "1",
            "--config",
            "cleanup.policy=compact,delete",
        ]
        configs = read_by_bash(found["config", "TOPIC:-t"]["command"])
        assert configs[-1] == ("follower.replication.throttled.replicas=,leader.replication.throttled.replicas=[a=b]")
        deny = read_by_bash(next(row["command"] for key, row in found.items() if key[0] == "acl"))
        assert deny[deny.index("--deny-principal") + 1] == f"User:{HOSTILE}"
        assert deny[deny.index("--operation") + 1] == "DescribeConfigs"
        assert deny[-4:] == ["--topic", HOSTILE, "--resource-pattern-type", "prefixed"]

    def test_what_brackets_would_change_goes_through_a_file(self, hostile: Session) -> None:
        (row,) = rows(hostile, "plan-restore --where \"kind == config and 'CLIENT_METRICS' in subject\"")
        head, _, printed = row["command"].partition("--add-config-file <(")
        assert HOSTILE in read_by_bash(head)
        told = subprocess.run(["bash", "-c", printed.rstrip(")")], capture_output=True, text=True, check=True).stdout
        assert told == "match=[client_id=a,b\\u000a\n"

    def test_what_no_tool_can_say_is_a_note(self, hostile: Session) -> None:
        notes = {
            (row["kind"], row["subject"]): row["note"]
            for row in rows(hostile, "plan-restore --where 'command == null'")
        }
        assert {kind for kind, _ in notes} == {"config", "quota", "acl"}
        assert "ssl.key.password" in notes["config", "BROKER"]
        assert len(notes) == 6
        empty = notes["acl", "DENY User:x DESCRIBE_CONFIGS TOPIC:"]
        assert empty == "KRaft refuses an empty resource name: LITERAL * covers the same"
        assert notes["acl", "DENY User:x CLUSTER_ACTION TOPIC:t"].startswith("kafka-acls.sh does not take this entry")

    @pytest.mark.parametrize("words", ["", "--show-secrets", "-o json --show-secrets"])
    def test_secrets_are_never_printed(self, hostile: Session, words: str) -> None:
        from kshell.render import render

        for fmt in ("text", "json", "csv"):
            assert "canary" not in "".join(render(run(hostile, f"plan-restore {words}"), fmt))

    def test_as_text_it_is_a_script_that_bash_takes(self, hostile: Session, sample: Session) -> None:
        for session in (hostile, sample):
            script = "\n".join(lines(session, "plan-restore"))
            assert script.isprintable() or script.replace("\n", "").isprintable()
            subprocess.run(["bash", "-n", "-c", script], check=True)
        assert lines(sample, "plan-restore")[1].startswith(': "${BOOTSTRAP_SERVER:?')
        assert not any("BOOTSTRAP_SERVER" in line for line in lines(sample, "plan-restore --bootstrap-server h:1"))
        assert lines(sample, "plan-restore --columns kind --limit 1")[0] == "kind"

    def test_what_no_step_is_known_for_is_a_note(self, hostile: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        """Metadata of a release to come is not left out in silence; what every cluster makes anew is."""
        known = ({*RESTORED} - {"topics"}) | LEFT_OUT.keys()
        assert families().keys() == known, (
            "name the family in LEFT_OUT of plan_restore.py, or in RESTORED and give it steps"
        )
        monkeypatch.setitem(families(), "zones", Family("zones", ("zones",), (str,), "zone"))
        tables = {**hostile.image.tables, "zones": {"a": object()}}
        made = list(steps(Image(tables, hostile.image.provenance), KafkaTools("b:9092")))
        assert [step.note for step in made if step.subject == "zones"] == ["not in the plan: no step for it is known"]
        assert not any(step.subject in ("features", "cluster/controllers", "producerIds") for step in made)

    def test_a_plan_of_a_damaged_log_says_so_itself(self, tmp_path: Path) -> None:
        """What was on standard error is gone when the script is run."""
        directory = builders.copy_of(builders.FIXTURES / "4.3.1/controller-3000", tmp_path)
        log = directory / builders.LOG
        builders.flip(log, log.stat().st_size - 3)
        session = opened(directory)
        step = rows(session, "plan-restore")[0]
        assert (step["kind"], step["command"]) == ("source", None)
        assert step["note"].endswith(f"this is the state at offset {session.image.provenance.offset}")
        assert lines(session, "plan-restore")[2] == f"# source the log: {step['note']}"

    def test_a_reassignment_ends_where_it_was_going(self, tmp_path: Path) -> None:
        session = cluster.cluster(
            tmp_path, cluster.topic(1, "t"),
            cluster.partition(1, 0, [3, 1, 2], [1, 2], 1, addingReplicas=[3], removingReplicas=[1]),
            cluster.partition(1, 1, [1, 2], [1, 2], 1),
        )  # fmt: skip
        (row,) = rows(session, "plan-restore")
        assert "--replica-assignment 3:2,1:2" in row["command"]

    def test_configs_of_a_controller_are_set_at_controllers(self, tmp_path: Path) -> None:
        controller = value("REGISTER_CONTROLLER", controllerId=3000, incarnationId=uuid(1), zkMigrationReady=False,
                           endPoints=[], features=[])  # fmt: skip
        set_on = [cluster.config(cluster.BROKER, name, "log.cleaner.threads", "2") for name in ("1", "3000", "")]
        session = cluster.cluster(tmp_path, cluster.broker(1), controller, *set_on)
        everywhere, broker, theirs = (row["command"] for row in rows(session, "plan-restore --sort subject"))
        assert all('--bootstrap-server "$BOOTSTRAP_SERVER"' in command for command in (everywhere, broker))
        assert '--bootstrap-controller "$BOOTSTRAP_CONTROLLER" --alter' in theirs and "--entity-name 3000" in theirs
        assert "BOOTSTRAP_CONTROLLER:?" in lines(session, "plan-restore")[2]
        assert not any("CONTROLLER" in line for line in lines(session, "plan-restore --where 'subject == BROKER'"))

    def test_partitions_that_differ_or_are_not_all_there(self, tmp_path: Path) -> None:
        session = cluster.cluster(
            tmp_path, cluster.topic(1, "mixed"), cluster.topic(2, "gap"), cluster.topic(3, "none"),
            cluster.partition(1, 0, [1, 2], [1, 2], 1), cluster.partition(1, 1, [1], [1], 1),
            cluster.partition(2, 1, [1], [1], 1),
        )  # fmt: skip
        gap, mixed, none = rows(session, "plan-restore --sort subject")
        assert "--partitions 2 --replication-factor 2" in mixed["command"]
        assert "kafka-reassign-partitions.sh" in mixed["note"]
        assert gap["command"] is None
        assert none["command"] is None
