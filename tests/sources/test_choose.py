"""Flags > environment > context > properties file, and what each choice opens."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kshell.client import contexts
from kshell.client.contexts import Context
from kshell.client.settings import Settings
from kshell.errors import UsageError
from kshell.sources.choose import (
    CONTROLLERS,
    DIRECTORY,
    NO_SOURCE,
    SERVERS,
    Choice,
    choose,
    demo_directory,
    open_source,
)
from kshell.sources.directory.source import DirectorySource


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with the contexts prod (controllers, ssl.properties), dev (brokers) and file (file.properties)."""
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "ssl.properties").write_text("security.protocol=SSL\nclient.id=ssl\n")
    (tmp_path / "file.properties").write_text("bootstrap.servers=file:1\nclient.id=file\n")
    known = contexts.load(environment)
    known.add(Context("prod", CONTROLLERS, "prod:1", str(tmp_path / "ssl.properties")))
    known.add(Context("dev", SERVERS, "dev:1", None))
    known.add(Context("file", None, None, str(tmp_path / "file.properties")))
    known.add(Context("copy", DIRECTORY, "/copy", None))
    known.save()
    return environment


def default(environment: dict[str, str], name: str) -> dict[str, str]:
    known = contexts.load(environment)
    known.use(name)
    known.save()
    return environment


def settings(choice: Choice) -> Settings:
    assert choice.settings is not None
    return choice.settings


class TestLevels:
    def test_flags_first(self, home: dict[str, str]) -> None:
        home = default(home, "dev") | {"KSHELL_BOOTSTRAP_SERVERS": "env:1", "KSHELL_CONTEXT": ""}
        choice = choose({CONTROLLERS: "flag:1"}, home)
        assert choice[:2] == (CONTROLLERS, "flag:1")

    def test_then_the_environment(self, home: dict[str, str]) -> None:
        home = default(home, "dev")
        assert choose({}, home | {"KSHELL_BOOTSTRAP_CONTROLLERS": "env:1"})[:2] == (CONTROLLERS, "env:1")
        assert choose({}, home | {"KSHELL_CONTEXT": "prod"})[:2] == (CONTROLLERS, "prod:1")
        assert choose({"context": "file"}, home | {"KSHELL_CONTEXT": "prod"})[:2] == (SERVERS, "file:1")

    def test_then_the_default_context(self, home: dict[str, str], tmp_path: Path) -> None:
        home = default(home, "prod")
        choice = choose({}, home)
        assert choice[:2] == (CONTROLLERS, "prod:1")
        assert settings(choice).client_id == "ssl"
        assert settings(choice).tls is not None

    def test_then_the_file(self, home: dict[str, str], tmp_path: Path) -> None:
        path = str(tmp_path / "file.properties")
        for choice in (choose({}, home, path), choose({}, home | {"KSHELL_CONFIG": path})):
            assert choice[:2] == (SERVERS, "file:1")
            assert settings(choice).bootstrap_servers == "file:1"

    def test_a_named_file_is_said_to_be_passed_over(self, home: dict[str, str], tmp_path: Path) -> None:
        choice = choose({}, default(home, "prod"), str(tmp_path / "file.properties"))
        assert choice[:2] == (CONTROLLERS, "prod:1")
        assert settings(choice).client_id == "file"
        (warning,) = choice.warnings
        assert "bootstrap.servers" in warning
        assert "the context prod names the source" in warning

    def test_a_context_that_is_not_meant_gives_no_secrets_away(self, home: dict[str, str]) -> None:
        """The properties of prod go to prod's addresses only."""
        choice = choose({CONTROLLERS: "flag:1"}, default(home, "prod"))
        assert settings(choice).client_id == "kshell"
        assert settings(choice).tls is None

    def test_two_at_one_level(self, home: dict[str, str]) -> None:
        for flags, environment, words in (
            ({CONTROLLERS: "a:1", SERVERS: "b:1"}, {}, "--bootstrap-controllers and --bootstrap-servers"),
            ({CONTROLLERS: "a:1", "context": "prod"}, {}, "--bootstrap-controllers and --context"),
            ({}, {"KSHELL_DIRECTORY": "/x", "KSHELL_CONTEXT": "prod"}, "KSHELL_DIRECTORY and KSHELL_CONTEXT"),
        ):
            with pytest.raises(UsageError, match=f"{words} are two sources"):
                choose(flags, home | environment)

    def test_none(self, home: dict[str, str], tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=NO_SOURCE):
            choose({}, home)
        with pytest.raises(UsageError, match=NO_SOURCE) as raised:
            choose({}, home, str(tmp_path / "ssl.properties"))
        assert "ssl.properties sets neither" in str(raised.value.hint)


class TestProperties:
    def test_x_wins_over_the_file(self, home: dict[str, str], tmp_path: Path) -> None:
        path = str(tmp_path / "file.properties")
        choice = choose({}, home, path, ["client.id=x", "bootstrap.servers=x:1"])
        assert (choice.value, settings(choice).client_id) == ("x:1", "x")

    def test_both_lists_in_the_file_are_an_error(self, home: dict[str, str], tmp_path: Path) -> None:
        path = str(tmp_path / "file.properties")
        above = ["bootstrap.controllers=c:1"]
        with pytest.raises(UsageError, match=r"bootstrap\.controllers and bootstrap\.servers"):
            choose({}, home, path, above)

    def test_a_flag_clears_the_other_one_of_the_file(self, home: dict[str, str], tmp_path: Path) -> None:
        path = str(tmp_path / "file.properties")
        for above in ([], ["bootstrap.controllers=c:1"]):
            choice = choose({CONTROLLERS: "flag:1"}, home, path, above)
            assert choice[:2] == (CONTROLLERS, "flag:1")
            found = settings(choice)
            assert (found.bootstrap_controllers, found.bootstrap_servers) == ("flag:1", None)
            assert choice.warnings == ()

    def test_warnings(self, home: dict[str, str]) -> None:
        choice = choose({SERVERS: "a:1"}, home, None, ["clientid=hunter2"])
        assert choice.warnings == ("-X: clientid is not a client property that is known",)

    def test_a_directory_needs_none(self, home: dict[str, str]) -> None:
        """A broken file in the environment is not in its way; one that a flag names is read."""
        broken = {"KSHELL_CONFIG": "/nonexistent/c"}
        assert choose({DIRECTORY: "/x"}, home | broken) == Choice(DIRECTORY, "/x")
        assert choose({}, default(home, "copy") | broken) == Choice(DIRECTORY, "/copy")
        with pytest.raises(UsageError, match="No such file"):
            choose({DIRECTORY: "/x"}, home, "/nonexistent/c")


class TestOpen:
    @pytest.mark.parametrize(
        ("kind", "module", "name"), [(CONTROLLERS, "quorum", "QuorumSource"), (SERVERS, "brokers", "BrokerSource")]
    )
    @pytest.mark.parametrize("given", [None, Settings.of({"client.id": "me"})])
    def test_live_sources_get_list_and_settings(
        self, monkeypatch: pytest.MonkeyPatch, kind: str, module: str, name: str, given: Settings | None
    ) -> None:
        made = ModuleType(f"kshell.sources.{module}.source")
        setattr(made, name, lambda value, settings: (value, settings))
        monkeypatch.setitem(sys.modules, made.__name__, made)
        opened: object = open_source(Choice(kind, "a:1", given))
        assert opened == ("a:1", given or Settings.of({}))

    def test_a_directory(self) -> None:
        assert isinstance(open_source(Choice(DIRECTORY, demo_directory())), DirectorySource)

    def test_a_directory_imports_nothing_of_the_client(self) -> None:
        import subprocess

        code = (
            "import sys; from kshell.sources.choose import choose, demo_directory, open_source;"
            "open_source(choose({'directory': demo_directory()}, {}));"
            "print([name for name in sys.modules if name.startswith('kshell.client') or name in ('ssl', 'socket')])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
