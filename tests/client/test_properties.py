"""Client properties: the file as Java reads it, lines above it, variables of config providers."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies

from kshell.client.properties import Properties, parse, read
from kshell.errors import UsageError
from tests.client.java_oracle import judge
from tests.kafka import jars

_PIECES = (
    "a", "b", "key", "=", ":", " ", "\t", "\f", "\\", "\n", "\r", "\r\n", "#", "!", "\\\n", "\\u0041", "\\u00e4",
    "\\uD83D\\uDE00", "\\uZZ", "\\n", "\\t", "é", "\x00", "\\\\", "  ",
)  # fmt: skip
_BLANK_CONTINUED = re.compile(r"(?:\A|[\r\n])[ \t\f]*\\(?:[\r\n]|\Z)")
"""A line of nothing but a continuation: to Java the next one may be a comment, or an entry with an empty key. No such
line says anything, and the library takes it otherwise."""


def values(text: str | bytes) -> dict[str, str]:
    return {key: value for _, key, value in parse(text, "x.properties")}


class TestSyntax:
    def test_as_in_java(self) -> None:
        text = (
            b"# comment\n! another\n\n a = 1\nb:2\nc 3\nd=\ne\n"
            b"long = one,\\\n    two\npath=C:\\\\x\nsp\\ ace=\\u00e9\\tx \nlatin=\xe9\na = again"
        )
        assert values(text) == {
            "a": "again", "b": "2", "c": "3", "d": "", "e": "", "long": "one,two", "path": "C:\\x",
            "sp ace": "é\tx ", "latin": "é",
        }  # fmt: skip

    @pytest.mark.live
    def test_java_reads_the_same(self) -> None:
        """Thousands of texts, each read by java.util.Properties too."""
        jars.require()
        source = random.Random(919)
        texts = ["".join(source.choice(_PIECES) for _ in range(source.randrange(14))) for _ in range(4000)]
        texts = [text for text in texts if not _BLANK_CONTINUED.search(text)]
        refused = 0
        for text, expected in zip(texts, judge("properties", [t.encode("latin-1") for t in texts]), strict=True):
            try:
                found: dict[str, str] | None = values(text.encode("latin-1"))
            except UsageError:
                found, refused = None, refused + 1
            assert found == expected, text
        assert 0 < refused < len(texts) / 2

    def test_a_fault_names_file_and_line_but_no_value(self) -> None:
        with pytest.raises(UsageError, match=r"x\.properties: line 3: ") as raised:
            values(b"a=1\n# \\uXX\npassword=hunter2\\u12 \n")
        assert "hunter2" not in raised.value.message
        assert "12" not in raised.value.message

    @given(strategies.binary())
    def test_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        with contextlib.suppress(UsageError):
            values(data)


class TestRead:
    def test_lines_above_win_and_places_are_known(self, tmp_path: Path) -> None:
        path = tmp_path / "c.properties"
        path.write_text("a=1\n\nb=\\\n  2\nc=3\n")
        found = read(str(path), ["b = x=y", "d="])
        assert found == {"a": "1", "b": " x=y", "c": "3", "d": ""}
        assert found.places == {"a": f"{path}: line 1", "b": "-X", "c": f"{path}: line 5", "d": "-X"}
        assert found.text("b") == "x=y"

    @pytest.mark.parametrize("line", ["hunter2", "=hunter2", ""])
    def test_a_line_without_a_key_is_refused_and_not_repeated(self, line: str) -> None:
        with pytest.raises(UsageError) as raised:
            read(None, [line])
        assert "hunter2" not in raised.value.message + str(raised.value.hint)

    def test_a_file_that_is_not_there(self) -> None:
        with pytest.raises(UsageError, match=r"/nonexistent/c\.properties: No such file"):
            read("/nonexistent/c.properties")

    def test_repr_has_keys_only(self) -> None:
        assert repr(Properties({"ssl.key.password": "hunter2"})) == "Properties(ssl.key.password)"

    def test_space_around_a_password_is_what_java_calls_space(self) -> None:
        """``String.trim``: all up to U+0020, and no space of Unicode beyond."""
        secret = Properties({"ssl.key.password": "\x00 \t\x1fhunter2\xa0\u3000\n "}).secret("ssl.key.password")
        assert secret is not None
        assert secret.value == "hunter2\xa0\u3000"

    def test_milliseconds_and_switches(self) -> None:
        given = Properties({"a": " 1500 ", "b": "-1", "c": "TRUE", "d": "1"}, {"b": "f: line 2"})
        assert given.seconds("a", 0) == 1.5
        assert given.switch("c") is True
        assert given.switch("e", default=True) is True
        with pytest.raises(UsageError, match="f: line 2: b: is not a number of milliseconds"):
            given.seconds("b", 0)
        with pytest.raises(UsageError, match="d: is neither true nor false"):
            given.switch("d")


_CLASS = "org.apache.kafka.common.config.provider."


def resolved(*lines: str) -> Properties:
    return read(None, lines)


class TestProviders:
    def test_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KSHELL_TEST_SECRET", "s3cret")
        lines = ("config.providers=e", f"config.providers.e.class={_CLASS}EnvVarConfigProvider")
        assert resolved(*lines, "p=<${e:KSHELL_TEST_SECRET}>")["p"] == "<s3cret>"
        with pytest.raises(UsageError, match="the environment has no KSHELL_TEST_NOTHING"):
            resolved(*lines, "p=${e:KSHELL_TEST_NOTHING}")
        with pytest.raises(UsageError, match="has no path"):
            resolved(*lines, "p=${e:/x:KSHELL_TEST_SECRET}")
        with pytest.raises(UsageError, match=r"allowlist\.pattern does not allow it"):
            resolved(*lines, "config.providers.e.param.allowlist.pattern=OTHER_.*", "p=${e:KSHELL_TEST_SECRET}")

    def test_a_line_of_a_secret_is_not_named(self, tmp_path: Path) -> None:
        """A value that goes on in the next line without a backslash leaves a key; its variable may have no value."""
        path = tmp_path / "client.properties"
        provider = f"config.providers=e\nconfig.providers.e.class={_CLASS}EnvVarConfigProvider\n"
        path.write_text(f"{provider}ssl.key.password=\nHunter2 ${{e:KSHELL_TEST_NOTHING}}\n")
        with pytest.raises(UsageError) as raised:
            read(str(path))
        assert raised.value.message == (
            f"{path}: line 4: the variable ${{e:KSHELL_TEST_NOTHING}}: the environment has no KSHELL_TEST_NOTHING"
        )

    def test_file(self, tmp_path: Path) -> None:
        secrets = tmp_path / "secrets.properties"
        secrets.write_text("user = älice\npw=\\u00e9x\n", encoding="utf-8")
        lines = ("config.providers=f", f"config.providers.f.class={_CLASS}FileConfigProvider")
        found = resolved(*lines, f"p=${{f:{secrets}:user}}/${{f:{secrets}:pw}}")
        assert found["p"] == "älice/éx"
        with pytest.raises(UsageError, match=r"-X: p: the variable .* has no key nothing"):
            resolved(*lines, f"p=${{f:{secrets}:nothing}}")
        with pytest.raises(UsageError, match="No such file"):
            resolved(*lines, f"p=${{f:{tmp_path}/missing:user}}")

    def test_directory(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("abc\n")
        lines = ("config.providers=d", f"config.providers.d.class={_CLASS}DirectoryConfigProvider")
        assert resolved(*lines, f"p=${{d:{tmp_path}:token}}")["p"] == "abc\n"
        for name in ("..", "x/y", ""):
            with pytest.raises(UsageError, match="names no file"):
                resolved(*lines, f"p=${{d:{tmp_path}:{name}}}")

    def test_only_allowed_paths(self, tmp_path: Path) -> None:
        inside, outside = tmp_path / "in", tmp_path / "in-side"
        for folder in (inside, outside):
            folder.mkdir()
            (folder / "k").write_text("v")
        lines = (
            "config.providers=d",
            f"config.providers.d.class={_CLASS}DirectoryConfigProvider",
            f"config.providers.d.param.allowed.paths={inside}",
        )
        assert resolved(*lines, f"p=${{d:{inside}:k}}")["p"] == "v"
        for path in (outside, f"{inside}/../in-side", "/"):
            with pytest.raises(UsageError, match="does not allow"):
                resolved(*lines, f"p=${{d:{path}:k}}")

    def test_a_variable_nobody_provides_is_text(self) -> None:
        assert resolved("p=${env:HOME}")["p"] == "${env:HOME}"
        lines = ("config.providers=e", f"config.providers.e.class={_CLASS}EnvVarConfigProvider")
        assert resolved(*lines, "p=${other:HOME}")["p"] == "${other:HOME}"

    def test_what_a_variable_gives_is_not_looked_into(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KSHELL_TEST_SECRET", "${e:HOME}")
        lines = ("config.providers=e", f"config.providers.e.class={_CLASS}EnvVarConfigProvider")
        assert resolved(*lines, "p=${e:KSHELL_TEST_SECRET}")["p"] == "${e:HOME}"

    def test_an_unknown_class_is_refused(self) -> None:
        with pytest.raises(UsageError, match=r"config\.providers\.v\.class: com\.example\.Vault is not supported"):
            resolved("config.providers=v", "config.providers.v.class=com.example.Vault")
