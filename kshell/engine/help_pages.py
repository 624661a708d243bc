"""The help topics that are not commands, such as points in time and exit codes: one page of Markdown each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine import registry, usage
from kshell.engine.formats import FORMATS
from kshell.engine.usage import CONDITIONS
from kshell.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from kshell.engine.session import Session


class HelpTopic(NamedTuple):
    """A help topic: its summary in the list of ``help``, and a function that returns its page in Markdown."""

    summary: str
    text: Callable[[], str]


POINTS = """\
A point is a moment in the log's history. `--as-of POINT` shows the state at a moment, `as-of POINT` does so for every
later command, and `log`, `diff`, `why` and others take points.

- `1234`: after the record at that offset; `now`: the newest state.
- `2026-01-31T12:00:00Z`, `2026-01-31 12:00`, `2026-01-31`: before the first record that was written later. A time
  without a zone is UTC, unless `--tz ZONE` or `set timezone ZONE` names another. Where a controller's clock ran ahead,
  that may be earlier than you think: `log` has the time of each record, and an offset is exact.
- `12:00`, `12:00:30`: that time of today; `today`, `yesterday`: when that day began.
- `-15m`, `-2h`, `-1d`: so long before now (ms, s, m, h, d, w).
- `end-15m`: so long before the last record, for a copy that is older.
- `@NAME`: a mark, made by `mark NAME POINT`.

A date and the time of day after it (`--since 2026-01-31 12:00`) need no quotes.
"""

ENVIRONMENT = """\
A flag on the command line wins over a variable, a variable over the configuration.

- `KSHELL_DIRECTORY`, `KSHELL_BOOTSTRAP_CONTROLLERS`, `KSHELL_BOOTSTRAP_SERVERS`, `KSHELL_CONTEXT`: the source, when no
  flag names one; only one of them may be set.
- `KSHELL_CONFIG`: a Java client properties file, as `--config`.
- `KSHELL_PAGER`, `PAGER`: the program that shows long answers in the interactive shell; empty for none.
- `NO_COLOR`, `FORCE_COLOR`, `TERM`: whether answers have colours.
- `COLUMNS`: the width of answers, at a terminal or not.
- `XDG_CONFIG_HOME`, `XDG_STATE_HOME`: where kshell keeps its own files (`help files`).
- `XDG_CACHE_HOME` (`~/.cache`): where `kshell.pyz`, the version in one file, unpacks what must be a file, and
  `kshell-pipeline` puts a small script that starts Java.
- `TMPDIR`: where a snapshot larger than 16 MiB is kept while a live source is open.
"""

FILES = """\
Below `~/.config` (or `XDG_CONFIG_HOME`) and `~/.local/state` (or `XDG_STATE_HOME`). What kshell writes there only its
owner can read, and all of it may be deleted.

- `~/.config/kshell/kshellrc`: lines that the interactive shell runs when it starts, aliases for example. You write it.
- `~/.config/kshell/contexts.json`: the sources that `context add` has named.
- `~/.local/state/kshell/history`: the lines that were typed, without those that begin with a blank.
- `~/.local/state/kshell/marks.json`: the moments that `mark` has named.
- `~/.cache/kshell` (`XDG_CACHE_HOME`; without a home `kshell-UID` in `TMPDIR`): what `kshell.pyz` has unpacked, and
  the script with which `kshell-pipeline` starts Java.
"""


COOKBOOK = """\
Questions of an incident, and the lines that answer them; docs/cookbook.md shows their answers.

- What is wrong? `status`, then `health`: each finding has its next step.
- Why is a partition offline? `partitions --offline`, then `why legacy-import-0`.
- What changed in the last ten minutes? `diff end-10m now --stat` says how much, `diff end-10m now`\
 what, `log --since end-10m` in which order.
- What changed this config? `blame /image/configs/TOPIC:orders`, `log /image/configs/TOPIC:orders`.
- Who changed it? No record of the metadata log says who: the controllers' audit log does, where\
 kafka.authorizer.logger is at DEBUG (at INFO it names only what was denied).
- What happens if broker 2 dies? `what-if --kill 2`. Can it be stopped? `drain-check 2`.
- May this user read that topic? `can User:alice READ TOPIC:orders`.
- Is the cluster ready for Kafka 4.4? `features --can-upgrade 4.4`.
- Which copy of the log is the most complete? `compare-logs DIR DIR DIR`.
- How do two clusters differ? `diff DIR DIR --stat`, `diff context:prod context:staging --by content`.
- How do I get everything out? `export audit.sqlite`, `export --format parquet DIR`, `save DIR`.
- When was it so, and until when? `when partitions --where 'leader == -1'`.
- How do I alert? `partitions --under-min-isr --fail-if-any`, `health`: exit code 1 says yes.
- What is in a file, byte for byte? `verify --deep`, `explain 182`.
"""


def _formats() -> str:
    listed = "\n".join(f"- `{form.name}`: {form.about}." for form in FORMATS.values())
    return f"`-o FORMAT` chooses the format of one answer, `set output FORMAT` that of all later ones.\n\n{listed}\n"


PAGES: dict[str, HelpTopic] = {
    "cookbook": HelpTopic("questions of an incident, and the lines that answer them", lambda: COOKBOOK),
    "points": HelpTopic("moments in the log's history: offsets, times, -15m, marks", lambda: POINTS),
    "where": HelpTopic("conditions for --where", lambda: CONDITIONS.removesuffix("\n")),
    "formats": HelpTopic("what -o takes", _formats),
    "exit-codes": HelpTopic("what scripts and alerts go by", lambda: usage.exit_codes_page(registry.commands())),
    "environment": HelpTopic("variables that kshell reads", lambda: ENVIRONMENT),
    "files": HelpTopic("the files that kshell keeps for itself", lambda: FILES),
}
"""Topics by name, in the order in which `help` lists them. No topic has the name of a command."""


def unknown(name: str) -> UsageError:
    """Return the error for a word that is neither a command nor a help topic, with a hint of similar names."""
    from kshell.engine.habits import command_hint  # late: only mistakes need it

    subjects = (*registry.names(), *PAGES)
    hint = command_hint(name) or did_you_mean(name, subjects, f"`help` lists the commands; also {', '.join(PAGES)}")
    return UsageError(f"{name}: no such command", hint=hint)


def complete_subject(session: Session, typed: str) -> Iterable[str]:
    """Return the names of commands and help topics that begin with the typed text."""
    return sorted([*registry.complete_name(session, typed), *(name for name in PAGES if name.startswith(typed))])
