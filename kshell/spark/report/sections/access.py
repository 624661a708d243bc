"""The section on changes of ACLs, quotas, users, tokens and configs, and on ACLs that are wide open."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.plots.theme import counted
from kshell.spark.report.queries import by_day, daily, top_rows, top_table, total_of
from kshell.spark.report.section import Answers, Attention, ReportSection, Scope, SectionContent, TableColumn

_BOTH = """(
    SELECT clusterId, offset, ms, day, kind, change, said, oldValue, newValue FROM {access_audit}
    UNION ALL
    SELECT clusterId, offset, ms, day, 'config', change,
        concat(name, ' of ', resourceType, ' ', if(resourceName = '', '(all brokers)', resourceName)),
        oldValue, newValue
    FROM {config_changes}
)"""
"""SQL: the rows of ``access_audit`` and ``config_changes``, in the columns that they have in common."""


def queries(scope: Scope) -> Mapping[str, str]:
    """Ask for changes per day, ACLs that are wide open now, and the last changes."""
    return {
        "days": daily(_BOTH, scope.by("kind"), "1", "changes", "change <> 'found'"),
        "open": top_rows(
            "clusterId, said, ms, change", "FROM {access_audit} WHERE isWideOpen AND isCurrent", "clusterId, said", 12
        ),
        "last": top_rows(
            "clusterId, ms, kind, change, said, oldValue, newValue",
            f"FROM {_BOTH} WHERE change <> 'found'",
            "ms DESC, clusterId, offset DESC, said",
            15,
        ),
    }


def describe(scope: Scope, answers: Answers) -> SectionContent:
    """List ACLs that are wide open, which need attention, and the last changes."""
    wide, last = answers["open"], answers["last"]
    lead = f"{counted(total_of(last), 'change')} in the log." if last else "Nothing was changed."
    lead += (
        f" {counted(total_of(wide), 'ACL')} that {'is' if total_of(wide) == 1 else 'are'} wide open." if wide else ""
    )
    tables, attention = [], []
    if wide:
        columns = TableColumn("said", "ACL"), TableColumn("ms", "since (UTC)", "time")
        tables.append(top_table(scope, "ACLs that are wide open now", wide, *columns))
        message = "ACL is wide open" if total_of(wide) == 1 else "ACLs are wide open"
        attention.append(
            Attention.of("wideOpenAcl", f"{total_of(wide):,}", f"{message}: everybody may", wide[0]["said"])
        )
    if last:
        table = top_table(
            scope,
            "The last changes",
            last,
            TableColumn("ms", "at (UTC)", "time"),
            TableColumn("kind", "kind"),
            TableColumn("change", "change"),
            TableColumn("said", "what"),
            TableColumn("oldValue", "before"),
            TableColumn("newValue", "after"),
        )
        tables.append(table)
    return SectionContent(lead, by_day(answers["days"], scope.by("kind")), tuple(tables), tuple(attention))


SECTION = ReportSection(
    "access",
    "Access and configs: audit",
    100,
    "ACLs, quotas, users, tokens and configs that were added, changed or removed. Wide open: everybody (User:*) may do"
    " more than describe, on everything of a type. Values of secret configs are never shown.",
    ("access_audit", "config_changes"),
    queries,
    describe,
)
