"""What ``help`` and ``man`` explain besides commands: a page a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kshell.engine import registry, usage
from kshell.engine.usage import CONDITIONS
from kshell.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from kshell.engine.session import Session


def _exit_codes() -> str:
    return usage.exit_codes_page(registry.commands())


PAGES: dict[str, Callable[[], str]] = {
    "exit-codes": _exit_codes,
    "where": lambda: CONDITIONS.removesuffix("\n"),
}
"""Name -> what makes its page, as Markdown. No command has such a name."""


def unknown(word: str) -> UsageError:
    """The error for a word that is neither a command nor a subject; it proposes some of both."""
    hint = did_you_mean(word, (*registry.names(), *PAGES), f"`help` lists the commands; also {', '.join(PAGES)}")
    return UsageError(f"{word}: no such command", hint=hint)


def complete_subject(session: Session, typed: str) -> Iterable[str]:
    """The commands and the subjects that begin like what was typed."""
    return sorted([*registry.complete_name(session, typed), *(name for name in PAGES if name.startswith(typed))])
