"""How the magics are used, for ``%kafka --help``."""

from __future__ import annotations

USAGE = """\
### %kafka

| line | what it does |
| --- | --- |
| `%kafka connect -d DIR` | opens a directory; or `-q` controllers, `-b` brokers, `--context NAME`, `--demo` |
| `%kafka COMMAND …` | runs a command; `%kafka help` lists them |
| `x = %kafka COMMAND …` | keeps the result: `x.df`, `x.rows`, `x.plot()`, `x.diff(y)`, `x.to_json()` |
| `%kafka COMMAND … --into x` | the same, and shows nothing |
| `%%kafka` | runs the lines below it, one command a line |
| `%kafka -l` | lists the open sessions; `--context NAME` runs a line on one, `--close [NAME]` closes it |

`{{expr}}` stands for the value of a Python expression, as one argument; `--no-interp` switches that off. Everything
else is the shell's own grammar: quotes, globs, `> FILE`, `| PROGRAM`, `# comments`. A `;` at the end shows nothing.
"""
