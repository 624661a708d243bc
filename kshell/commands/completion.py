"""``completion``: a script by which bash, zsh or fish complete kshell's commands, options, paths and values."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from kshell.engine.declaration import Arg, Command, Example, Flag, Task
from kshell.engine.language import quote
from kshell.engine.result import Result, Rows, Text, typed
from kshell.errors import KshellError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kshell.engine.session import Session

_BASH = """\
# kshell completion bash >> ~/.bashrc
_kshell() {
    local IFS=$'\\n'
    COMPREPLY=($(kshell completion --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
    return 0
}
complete -o filenames -o nosort -F _kshell kshell 2>/dev/null || complete -o filenames -F _kshell kshell
# In a path of the tree a colon is part of a word.
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}
"""
_ZSH = """\
#compdef kshell
# kshell completion zsh > "${fpath[1]}/_kshell"
_kshell() {
    local -a found
    found=("${(@f)$(kshell completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    compadd -Q -S '' -- ${(M)found:#*/}
    compadd -Q -- ${found:#*/}
}
compdef _kshell kshell
"""
_FISH = """\
# kshell completion fish > ~/.config/fish/completions/kshell.fish
function __kshell_complete
    set -l tokens (commandline -opc) (commandline -ct)
    kshell completion --words -- $tokens[2..-1] 2>/dev/null
end
complete -c kshell -f -a '(__kshell_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_WORDS = typed("word:string")


def run(session: Session, args: Any) -> Result:
    """Print the script for a shell; or, for such a script, the words that the last one may become.

    Raises:
        UsageError: there is no such shell.
    """
    if args.words:
        return Rows(_WORDS, [{"word": word} for word in _candidates(session, args.shell)], "lines", line_column="word")
    if len(args.shell) != 1 or args.shell[0] not in _SCRIPTS:
        raise UsageError("completion: which shell?", hint=f"one of {', '.join(_SCRIPTS)}")
    return Text(_SCRIPTS[args.shell[0]])


def _candidates(session: Session, words: list[str]) -> Iterable[str]:
    """What the last word may become, after words that the user's shell has split and unquoted."""
    from kshell.engine.completion import complete

    *before, last = words or [""]
    names, options, command = _split(before)
    if not command and last.startswith("-"):
        return [name for name in names if name.startswith(last)]
    if command and not last.startswith("-"):
        session = _with_source(session, options)
    typed_line = " ".join([*map(quote, command), ""]) + last
    completions = complete(session, typed_line)
    cut = len(typed_line) - len(last)
    head = typed_line[cut : completions.start]
    return [head + candidate.text for candidate in completions.candidates]


def _with_source(session: Session, options: list[str]) -> Session:
    """A session that has loaded a directory, if the options or the environment name one; nobody waits for a network."""
    from kshell.engine.arguments import SHAPING, parse_options
    from kshell.engine.session import Session as EngineSession
    from kshell.engine.source_flags import PROPERTIES, READING, SOURCES, given_sources
    from kshell.sources.choose import choose, open_source

    with contextlib.suppress(KshellError):
        parsed, _ = parse_options("kshell", (*SOURCES, *PROPERTIES, *READING, *SHAPING), [*options, "pwd"])
        choice = choose(given_sources(parsed), os.environ, parsed.config, parsed.X or ())
        if choice.kind in ("directory", "demo"):
            session = EngineSession(open_source(choice))
            session.image  # noqa: B018  # a property that loads: completion itself never waits for data
    return session


def _split(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The names of kshell's own options; those that stand before the command; and the words from the command on."""
    from kshell.engine.arguments import SHAPING
    from kshell.engine.source_flags import PROPERTIES, READING, SOURCES

    flags = [*SOURCES, *PROPERTIES, *READING, *SHAPING]
    takes_value = {name: flag.metavar is not None for flag in flags for name in flag.names}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if takes_value.get(words[at], False) else 1
    return sorted([*takes_value, "--help", "--version"]), words[:at], words[at:]


def _complete_shell(session: Session, typed_word: str) -> Iterable[str]:
    return [name for name in _SCRIPTS if name.startswith(typed_word)]


COMMAND = Command(
    name="completion",
    task=Task.SHELL,
    summary="a script that lets bash, zsh or fish complete commands, options and paths",
    run=run,
    args=(Arg("shell", "bash, zsh or fish", arity="*", complete=_complete_shell),),
    flags=(Flag(("--words",), "for the script: what the last of these words may become"),),
    examples=(
        Example("completion bash", "for bash: append it to ~/.bashrc"),
        Example("completion --words -- sta", "what the script asks"),
    ),
    description=(
        "bash: `kshell completion bash >> ~/.bashrc`. zsh: `kshell completion zsh > ~/.zfunc/_kshell`, with ~/.zfunc in"
        " fpath before compinit. fish: `kshell completion fish > ~/.config/fish/completions/kshell.fish`. Paths of the"
        " tree are completed from the source that the environment names (KSHELL_DIRECTORY and the like)."
    ),
    needs_source=False,
)
