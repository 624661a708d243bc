"""What commands return. A command never prints: a renderer turns a result into text, JSON, a table, a page.

Five kinds that are rendered: :class:`Text`, :class:`Value`, :class:`Rows`, :class:`Tree`, :class:`Report`. Values in
them are plain (what JSON knows), redacted, and not yet escaped: escaping belongs to the format. A front end renders the
parts of a :class:`Many` one by one, and :class:`Nothing` not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kshell.engine.execution import Call
    from kshell.errors import KshellError

# Plain classes, not dataclasses: making those costs a one-shot command more than running it (docs/decisions/0009).

Row = Mapping[str, Any]


class Result:
    """Base of the kinds. ``exit_code`` is the command's own (a predicate's finding: 1).

    ``for_people`` is what ``text`` and ``wide`` show instead, where the exact answer does not read well (ages beside
    times, a column a node); every other format shows the result itself.
    """

    exit_code: int
    for_people: Result | None = None
    judges_data = False
    """Whether the exit code says all there is to say of the data (``verify``), whatever the session has loaded."""
    asks_state = False
    """Whether the exit code answers a question about the state: a log without a record has no answer."""

    def __init__(self, *, exit_code: int = 0) -> None:
        self.exit_code = exit_code

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Nothing(Result):
    """A command that only does something (``cd``)."""


class Toned(str):
    """A text with a tone, a name of the renderer's styles (``error``, ``warning``): for eyes only, plain elsewhere."""

    tone: str

    def __new__(cls, text: str, tone: str = "") -> Toned:
        toned = super().__new__(cls, text)
        toned.tone = tone  # pickle sets it itself
        return toned


class Difference(NamedTuple):
    """What became of one field of a value (``""``: of the value itself); only a :class:`PageLayout` has such."""

    name: str
    old: Any
    new: Any


class Text(Result):
    """Words for people: help, man, pwd. ``json`` gives one string; ``man`` and ``help`` are Markdown."""

    def __init__(self, text: str, markdown: bool = False, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.text = text
        self.markdown = markdown


class Drawing(Text):
    """A plot in characters, for people alone (``for_people``): ``draw`` makes it when a width (columns) is known.

    It gives lines of parts; those that are :class:`Toned` have a colour.
    """

    def __init__(self, draw: Callable[[int], list[list[str]]], *, exit_code: int = 0) -> None:
        super().__init__("", exit_code=exit_code)
        self.draw = draw


class Value(Result):
    """One leaf: its path, its type (``partition``, ``config``, …) and its plain value."""

    def __init__(self, path: str, type: str, value: Any, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.path = path
        self.type = type
        self.value = value


class Timestamp(str):
    """The column type ``string``, of times (ISO-8601 in UTC), which are real timestamps in data frames.

    Wherever types are compared it is a ``string``: rows, JSON, conditions and SQL have text.
    """


TIMESTAMP = Timestamp("string")


class Column(NamedTuple):
    """A column: its key in the rows, in Kafka's lowerCamelCase; shown in ``wide`` only where ``wide`` is set.

    ``type`` is one of :mod:`kshell.tables.declaration`; ``None`` where only the values can tell (``sql``).

    Where a terminal has no room for all columns, those with the highest ``spare`` are left out first, of equal ones the
    last; what a row is about, with -1, is neither left out nor cut while anything else can be. ``prose`` is a sentence:
    where there is no room it stands below its row, broken between words. ``tone`` gives a value's tone (``error``,
    ``warning``; ``""`` for none), as colours show it; a function of a module, so that columns can be pickled.
    ``usual`` is what most rows have in a column without which the others would mislead: where it is left out, their
    values stand below their rows.
    """

    name: str
    wide: bool = False
    type: Any = None
    spare: int = 0
    prose: bool = False
    tone: Callable[[Any], str] | None = None
    usual: str | None = None


def typed(declarations: str, wide: str = "") -> tuple[Column, ...]:
    """Columns out of words ``name:type`` (``[type]`` for a list of it, ``timestamp`` for :data:`TIMESTAMP`); the
    ``wide`` ones come last.
    """
    columns = []
    for declaration in (*declarations.split(), *wide.split()):
        name, _, kind = declaration.partition(":")
        type = TIMESTAMP if kind == "timestamp" else [kind[1:-1]] if kind.startswith("[") else kind
        columns.append(Column(name, declaration in wide.split(), type))
    return tuple(columns)


class PageLayout(NamedTuple):
    """How a page (``html``) shows rows that read badly as a table of their columns: by other ``columns``.

    ``row`` makes a row of those out of a row; a value may be a list of :class:`Difference`. Rows that a ``double`` is
    true of say again what others say: they are left out, and counted. ``fold`` are columns whose changes start a new
    block, which folds. Functions are those of a module, so that rows can be pickled.
    """

    columns: tuple[Column, ...]
    row: Callable[[Row], Row] | None = None
    double: Callable[[Row], bool] | None = None
    fold: tuple[str, ...] = ()


class TextRows(Iterable[Row]):
    """Rows that can be had as text without being made. Either is read once."""

    def json_lines(self) -> Iterator[str]:
        """The rows as ``jsonl`` prints them, escaped; perhaps several lines at once."""
        raise NotImplementedError


class Rows(Result):
    """Rows of one shape, perhaps made while they are read (``dump`` of a long log).

    ``style`` only matters to ``text``: ``table`` is a table; ``names`` prints the column ``name`` alone, in columns as
    ``ls`` does (``one_per_line``: one a line); ``lines`` prints each row's column ``line_column``, or what ``line``
    makes of the row, as a line (``find``, ``dump``); ``prose`` does so with sentences, which are broken between words
    where the terminal is narrow (``health``); ``values`` prints each row's ``path`` as a heading and its
    ``value`` as a :class:`Value` is printed (``cat`` of several).

    ``hanging`` is for lines that may be broken at a terminal: the columns by which the rest of one is indented. Without
    it a line stays one, whatever it holds: a command to paste, for example.

    ``group`` is a column whose changes start a new block with a heading (``ls`` of several directories). With ``json``
    and ``jsonl``, the column ``bare`` stands for the whole row (``ls``: names). Rows may hold more keys than there are
    columns; only columns are shown, in their order. ``live`` rows come as things happen, perhaps for ever: each is
    printed at once, and no pager stands between.

    Three are for pages: ``tone`` gives a row's tone (``critical`` to ``info``, ``added``, ``removed``, ``changed``;
    ``""`` for none), and is a function of a module, as those of ``page`` are; ``order`` are the fields that the line
    sorted by, with whether they fall, and ``None`` where it could not choose rows.
    """

    def __init__(
        self,
        columns: tuple[Column, ...],
        rows: Iterable[Row],
        style: str = "table",
        line_column: str = "",
        line: Callable[[Row], str] | None = None,
        one_per_line: bool = False,
        group: str | None = None,
        bare: str | None = None,
        *,
        live: bool = False,
        tone: Callable[[Row], str] | None = None,
        page: PageLayout | None = None,
        order: tuple[tuple[str, bool], ...] | None = None,
        hanging: int | None = None,
        exit_code: int = 0,
    ) -> None:
        super().__init__(exit_code=exit_code)
        self.live = live
        self.hanging = hanging
        self.tone = tone
        self.page = page
        self.order = order
        self.columns = columns
        self.rows = rows
        self.style = style
        self.line_column = line_column
        self.line = line
        self.one_per_line = one_per_line
        self.group = group
        self.bare = bare

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


class Branch(NamedTuple):
    """A node of a :class:`Tree`: its name, and either a leaf's value or children."""

    name: str
    value: Any = None
    children: list[Branch] | None = None
    left_out: int = 0
    """Children that a limit cut off."""


class Tree(Result):
    """A part of the tree. ``json`` gives nested objects: name -> value, or name -> object.

    A root without a name is no node: it only holds several trees, each named by its path. ``values``: whether ``text``
    shows leaves' values (``cat DIR``) or only names (``tree``).
    """

    def __init__(self, root: Branch, values: bool = False, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.root = root
        self.values = values


class Section(NamedTuple):
    """A titled part of a :class:`Report`: an object (``item`` -> value) or rows."""

    key: str
    title: str
    body: Mapping[str, Any] | Rows


class Report(Result):
    """A page about one thing (``info``, ``stat``). ``json`` gives one object: section key -> body.

    A report with a single section of key ``""`` is that section's object.
    """

    def __init__(self, sections: list[Section], *, exit_code: int = 0, is_answer_first: bool = False) -> None:
        """``is_answer_first``: the first section says what matters, the others how it came to be."""
        super().__init__(exit_code=exit_code)
        self.sections = sections
        self.is_answer_first = is_answer_first


class LineResult(NamedTuple):
    """One line of several: what it called and what that gave, or why it failed. The answer's shape is the call's."""

    call: Call | None
    result: Result | None
    error: KshellError | None = None


class Many(Result):
    """What the lines of a file gave (``source``), each run when its part is asked for.

    Without ``keep_going`` the first line that fails ends the parts with its error raised; a front end ends there too
    when rendering a part fails. With it, such a line is a part with an ``error``, and the highest exit code counts.
    """

    def __init__(self, parts: Iterable[LineResult], keep_going: bool = False, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.parts = parts
        self.keep_going = keep_going


class Frames(Many):
    """What one command gives whenever it is run again (``watch``): a part for each run, made when it is due.

    At a terminal the newest stands in the place of the one before, below a header with ``title`` (the command) and how
    often it runs; anywhere else those that differ from the one before are printed. ``exit_code`` counts at the end.
    """

    def __init__(self, parts: Iterable[LineResult], title: str, every: float, *, exit_code: int = 0) -> None:
        super().__init__(parts, keep_going=True, exit_code=exit_code)
        self.title = title
        self.every = every


class Exit(Exception):
    """The command ``exit`` ran: the front end ends with this code."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code
