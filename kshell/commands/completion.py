"""``completion``: a script with which bash, zsh or fish complete kshell's commands, options, paths and values."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from kshell.engine.arguments import SHAPING, parse_options
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.language import quote, scan
from kshell.engine.local_files import complete_file
from kshell.engine.result import Result, Rows, Text, typed
from kshell.engine.session import Session as EngineSession
from kshell.engine.source_flags import NAMING, RUNNING, given_sources
from kshell.errors import KshellError, UsageError
from kshell.sources.choose import choose, open_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kshell.engine.session import Session

_BASH = """\
# kshell completion bash >> ~/.bashrc
_kshell() {
    local IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT} last=-1 cut='' piece='' i word words=()
    # Bash splits words at : and =, kshell does not: what has no blank before it belongs to the word before.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $last -lt 0 || $line == [[:space:]]* ]]; then
            last=$((last + 1)) words[last]=$word cut=''
        else
            words[last]+=$word cut+=$piece
        fi
        piece=$word line=${line#"${line%%[![:space:]]*}"} line=${line#"$word"}
    done
    [[ -n $cut && $piece == [:=] ]] && cut+=$piece
    COMPREPLY=($(kshell completion --words -- "${words[@]:1}" 2>/dev/null))
    # Bash replaces what stands behind the last place where it has split.
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$cut"}; done
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
    return 0
}
complete -o filenames -o nosort -F _kshell kshell 2>/dev/null || complete -o filenames -F _kshell kshell
"""
_ZSH = """\
#compdef kshell
# kshell completion zsh > "${fpath[1]}/_kshell"
_kshell() {
    local -a found
    found=("${(@f)$(kshell completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    compadd -S '' -- ${(M)found:#*/}
    compadd -- ${found:#*/}
}
# The first Tab loads a file in fpath and runs it; one that is sourced only defines what is above.
if [[ $funcstack[1] == _kshell ]]; then _kshell "$@"; else compdef _kshell kshell; fi
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
_OPTIONS = (*NAMING, *RUNNING, *SHAPING)
"""All of kshell's own options."""


class CompletionArguments(Arguments):
    """Arguments and options of ``completion``."""

    shell: list[str]
    words: bool


def run(session: Session, args: CompletionArguments) -> Result:
    """Return the script for a shell, or with ``--words`` the candidates for the last of the given words.

    Raises:
        UsageError: there is no such shell.
    """
    if args.words:
        return Rows(_WORDS, [{"word": word} for word in _candidates(session, args.shell)], "lines", line_column="word")
    if len(args.shell) != 1 or args.shell[0] not in _SCRIPTS:
        raise UsageError("completion: which shell?", hint=f"one of {', '.join(_SCRIPTS)}")
    return Text(_SCRIPTS[args.shell[0]])


def _candidates(session: Session, words: list[str]) -> Iterable[str]:
    """Candidates for the last word; the words are as the user typed them in bash, zsh or fish, with quotes.

    The candidates have no quotes: those shells quote what they insert.
    """
    from kshell.engine.completion import complete

    *before, last = map(_unquoted, words or [""])
    names, options, command, flag = _split(before)
    if flag is not None:
        files = complete_file(session, last) if flag.metavar in ("DIR", "FILE") else flag.choices
        return [text for text in files if text.startswith(last)]
    if not command and last.startswith("-"):
        return [name for name in names if name.startswith(last)]
    if command and not last.startswith("-"):
        session = _with_source(session, options)
    head, typed_word = " ".join([*map(quote, command), ""]), _QUOTED.sub(r"\\\g<0>", last)
    completions = complete(session, head + typed_word)
    begin = (head + typed_word)[len(head) : completions.start]
    return [scan(begin + candidate.text)[0].text for candidate in completions.candidates]


_QUOTED = re.compile(r"[\s'\"\\|>#]")
"""Characters that kshell's command language would not take as part of a word; globs are left as they are."""


def _unquoted(word: str) -> str:
    """Remove a shell's quotes from a word; the closing quote may be missing while it is being typed."""
    plain, mark, at = "", "", 0
    while at < len(word):
        char, following = word[at], word[at + 1 : at + 2]
        if char == "\\" and following and (not mark or (mark == '"' and following in '"\\$`')):
            plain, at = plain + following, at + 2
            continue
        if char == mark or (not mark and char in "'\""):
            mark = "" if mark else char
        else:
            plain += char
        at += 1
    return plain


def _with_source(session: Session, options: list[str]) -> Session:
    """A loaded session if options or environment name a directory, else the given one: Tab must not wait for a node."""
    with contextlib.suppress(KshellError):
        parsed, _ = parse_options("kshell", _OPTIONS, [*options, "pwd"])
        choice = choose(given_sources(parsed), os.environ, parsed.config, parsed.X or ())
        if choice.kind in ("directory", "demo"):
            session = EngineSession(open_source(choice))
            session.image  # noqa: B018  # a property that loads: completion itself never waits for data
    return session


def _split(words: list[str]) -> tuple[list[str], list[str], list[str], Flag | None]:
    """Split the words before the one that is typed.

    Returns:
        All names of kshell's own options; the words before the command; the command and the words after it; the option
        whose value comes next, if the words end with one.
    """
    flags = {name: flag for flag in _OPTIONS for name in flag.names}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        flag = flags.get(words[at])
        at += 2 if flag is not None and flag.metavar is not None else 1
    is_value_next = at > len(words)
    return sorted(flags), words[:at], words[at:], flags[words[-1]] if is_value_next else None


def _complete_shell(session: Session, typed_word: str) -> Iterable[str]:
    return [name for name in _SCRIPTS if name.startswith(typed_word)]


COMMAND = Command(
    name="completion",
    task=Task.SHELL,
    summary="a script that lets bash, zsh or fish complete commands, options and paths",
    run=run,
    arguments=CompletionArguments,
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
