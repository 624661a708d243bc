"""``kshell-pipeline help [VERB]``: explains a verb, or lists all."""

from __future__ import annotations

from kshell.engine import usage
from kshell.engine.declaration import Arg, Arguments, Example
from kshell.engine.result import Text
from kshell.spark import verbs
from kshell.spark.session import NAME


class HelpVerbArguments(Arguments):
    """Arguments and options of ``help``."""

    verb: str | None


def run(args: HelpVerbArguments) -> Text:
    """Return help on one verb, or the list of all. Raises UsageError for an unknown verb."""
    return Text(overview() if args.verb is None else about(verbs.get(args.verb)), markdown=True)


def about(verb: verbs.Verb) -> str:
    """Return help on a verb as Markdown: how it is used, what it does, its options, examples."""
    command = verb.declared()
    summary = f"{verb.summary[:1].upper()}{verb.summary[1:]}."
    parts = [
        f"`{NAME} {usage.synopsis(command)}`",
        f"{summary} {verb.description}".strip(),
        usage.arguments(command),
        usage.options((*verb.flags, *verbs.ANSWER_FLAGS)),
        usage.examples(command) if verb.examples else "",
    ]
    return "\n\n".join(part for part in parts if part)


def overview() -> str:
    """Return the list of all verbs and the exit codes, as Markdown."""
    lines = [f"- `{name}`: {verbs.get(name).summary}" for name in verbs.names()]
    return "\n".join(
        [
            f"`{NAME} VERB [ARG …]`: metadata logs of many clusters into tables, on Apache Spark.",
            "",
            *lines,
            "",
            f"`{NAME} help VERB` explains one; `{NAME} --version` prints the version.",
            "",
            f"Exit codes (1 only of `doctor`, when something is missing or does not work):\n\n{usage.exit_codes()}",
        ]
    )


VERB = verbs.Verb(
    name="help",
    summary="what the pipeline can do, or how one verb is used",
    run=run,
    arguments=HelpVerbArguments,
    args=(Arg("verb", "the verb to explain", arity="?", complete=lambda session, typed: verbs.names()),),
    examples=(Example(f"{NAME} help doctor", "what `doctor` looks at"),),
)
