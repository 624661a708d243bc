"""The results that commands return. A command never prints: a renderer turns its result into text, JSON or HTML.

Five kinds are rendered: :class:`Text`, :class:`Value`, :class:`Rows`, :class:`Tree`, :class:`Report`. Their values are
plain (the types of JSON), redacted, and not yet escaped: escaping belongs to the format. A front end renders the parts
of a :class:`Many` one by one, and :class:`Nothing` not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kshell.engine.execution import Call
    from kshell.errors import KshellError

# Plain classes, not dataclasses: making those costs a one-shot command more than running it (docs/decisions/0009).

Row = Mapping[str, Any]
"""A row, for reading: name of a column -> plain value. Where one is made, it is a ``JsonObject``, a dictionary."""


class Result:
    """Base class of all kinds of result. ``exit_code`` is the command's own: 1 if a predicate says no.

    ``readable`` is another result, which ``text`` and ``wide`` show in place of this one because it reads better
    (ages next to times, one column per node). Every other format shows this result.
    """

    exit_code: int
    readable: Result | None = None
    overrides_exit_code = False
    """Whether this exit code counts alone, without the damage that the session found while it loaded (``verify``)."""
    needs_records = False
    """Whether the exit code answers a question about the state of the cluster, which an empty log cannot answer."""

    def __init__(self, *, exit_code: int = 0) -> None:
        self.exit_code = exit_code

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Nothing(Result):
    """The result of a command that has no answer, only an effect (``cd``)."""


class StyledText(str):
    """A text with a tone (``error``, ``warning``), which renderers with colours show; elsewhere a plain string."""

    tone: str

    def __new__(cls, text: str, tone: str = "") -> StyledText:
        toned = super().__new__(cls, text)
        toned.tone = tone  # unpickling restores this attribute by itself
        return toned


class Difference(NamedTuple):
    """The old and new value of a field, or of the whole value if the name is ``""``; for a :class:`PageLayout` only."""

    name: str
    old: object
    new: object


class Text(Result):
    """Text for the user, such as help or a path; one string in JSON. ``markdown``: whether it is Markdown (``man``)."""

    def __init__(self, text: str, markdown: bool = False, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.text = text
        self.markdown = markdown


class Drawing(Text):
    """A plot drawn with characters, used as ``readable`` of an exact result.

    ``draw`` takes the width in columns and returns lines, each a list of texts; a :class:`StyledText` has a colour.
    """

    def __init__(self, draw: Callable[[int], list[list[str]]], *, exit_code: int = 0) -> None:
        super().__init__("", exit_code=exit_code)
        self.draw = draw


class Value(Result):
    """One leaf: its path, its type (``partition``, ``config``, …) and its plain value."""

    def __init__(self, path: str, type: str, value: object, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.path = path
        self.type = type
        self.value = value


class Timestamp(str):
    """The type of a column of times: ISO 8601 text in UTC, which becomes real timestamps in data frames.

    It equals the type ``string``, because times are text in rows, JSON, conditions and SQL.
    """


TIMESTAMP = Timestamp("string")


class Column(NamedTuple):
    """A column of rows; ``name`` is its key, in Kafka's lowerCamelCase. A ``wide`` one is not shown by ``text``.

    ``type`` is one of :mod:`kshell.tables.declaration`; ``None`` where only the values show it (``sql``). A narrow
    terminal leaves out the columns with the highest ``spare`` first, of equal ones the last; -1 is for what identifies
    the row, which is kept as long as possible. ``prose``: values are sentences, which a narrow terminal shows below
    their row. ``tone`` returns the tone of a value (``error``, ``warning``, ``""``) for its colour; a function of a
    module, so that columns can be pickled. ``usual`` is the value of most rows: where the column is left out, rows with
    another one show it below them.
    """

    name: str
    wide: bool = False
    type: Any = None
    spare: int = 0
    prose: bool = False
    tone: Callable[[object], str] | None = None
    usual: str | None = None


def typed(declarations: str, wide: str = "") -> tuple[Column, ...]:
    """Make columns of words ``name:type``: ``[type]`` is a list, ``timestamp`` is :data:`TIMESTAMP`.

    The ``wide`` ones are shown in ``wide`` only, and come last.
    """
    columns = []
    for declaration in (*declarations.split(), *wide.split()):
        name, _, kind = declaration.partition(":")
        type = TIMESTAMP if kind == "timestamp" else [kind[1:-1]] if kind.startswith("[") else kind
        columns.append(Column(name, declaration in wide.split(), type))
    return tuple(columns)


class PageLayout(NamedTuple):
    """How an HTML page shows rows whose own columns would read badly there: with other ``columns``.

    ``row`` makes a row of the page out of a row; a value may be a list of :class:`Difference`. Rows for which
    ``repeats`` is true only repeat others: they are counted, not shown. The values of ``fold`` columns group adjacent
    rows into blocks that can be folded. Functions must be those of a module, so that rows can be pickled.
    """

    columns: tuple[Column, ...]
    row: Callable[[Row], Row] | None = None
    repeats: Callable[[Row], bool] | None = None
    fold: tuple[str, ...] = ()


class TextRows(Iterable[Row]):
    """Rows that are also available as JSON text, without making row objects. Read either the rows or the text, once."""

    def json_lines(self) -> Iterator[str]:
        """Yield the rows as ``jsonl`` prints them, escaped; a chunk may hold several lines."""
        raise NotImplementedError


class Rows(Result):
    """Rows with the same columns; the rows may be made while they are read (``dump`` of a long log).

    Attributes:
        columns: what is shown, in this order; rows may hold more keys.
        style: how ``text`` prints the rows. ``table``: as a table. ``names``: only the column ``name``, side by side as
            ``ls`` does. ``lines``: each row as one line (``find``, ``dump``). ``prose``: each row as a sentence, broken
            between words on a narrow terminal (``health``). ``values``: each row's ``path`` as a heading, and below it
            its ``value`` (``cat`` of several paths).
        line_column: for ``lines`` and ``prose``, the column that is printed.
        line: for ``lines``, makes the line out of the row in place of ``line_column``.
        one_per_line: for ``names``, one name per line.
        group: a column whose changes start a new block with a heading (``ls`` of several directories).
        bare: the column whose value stands for the whole row in ``json`` and ``jsonl`` (``ls``: names).
        live: whether rows come as things happen, perhaps without end: each is printed immediately, without a pager.
        tone: for pages, returns a row's tone (``critical`` to ``info``, ``added``, ``removed``, ``changed``; ``""`` for
            none). A function of a module, so that rows can be pickled.
        page: another layout for pages.
        order: for pages, the (field, whether descending) pairs by which the line sorted; ``None`` if the command has no
            options that choose rows.
        hanging: for ``lines``, the columns by which the rest of a broken line is indented; ``None``: lines are never
            broken, because a user may paste them.
        multiline: for ``lines``, whether newlines and tabs in a line are printed as such, and the line is never broken.
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
        multiline: bool = False,
        exit_code: int = 0,
    ) -> None:
        super().__init__(exit_code=exit_code)
        self.live = live
        self.hanging = hanging
        self.multiline = multiline
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
    value: object = None
    children: list[Branch] | None = None
    left_out: int = 0
    """The number of children that a limit cut off."""


class Tree(Result):
    """A part of the metadata tree; nested objects in JSON: name -> value, or name -> object.

    A root with an empty name is not a node: it only holds several trees, each named by its path. ``values``: whether
    ``text`` shows the values of leaves (``cat DIR``) or only names (``tree``).
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
    """Several titled sections about one thing (``info``, ``stat``); one object in JSON: section key -> body.

    The items of a section with key ``""`` become part of that object itself.
    """

    def __init__(self, sections: list[Section], *, exit_code: int = 0, is_answer_first: bool = False) -> None:
        """``is_answer_first``: the first section is the answer, the others explain it; a terminal may reverse them."""
        super().__init__(exit_code=exit_code)
        self.sections = sections
        self.is_answer_first = is_answer_first


class LineResult(NamedTuple):
    """The outcome of one line of several: its call and result, or its error. ``call.shape`` says how to show it."""

    call: Call | None
    result: Result | None
    error: KshellError | None = None


class Many(Result):
    """The results of the lines of a file (``source``). A line runs when the iteration over ``parts`` reaches it.

    Without ``keep_going``, the iteration raises the error of the first line that fails, and a front end stops if
    rendering a part fails. With it, a failed line is a part with an ``error``, and the highest exit code counts.
    """

    def __init__(self, parts: Iterable[LineResult], keep_going: bool = False, *, exit_code: int = 0) -> None:
        super().__init__(exit_code=exit_code)
        self.parts = parts
        self.keep_going = keep_going


class Frames(Many):
    """The results of one command that runs again and again (``watch``): one part per run, when the run is due.

    A terminal shows the newest part in place of the previous one, below a header with ``title`` (the command) and
    ``every`` (seconds between runs). Other outputs get a part only if it differs from the previous one. ``has_end``:
    the runs end by themselves.
    """

    def __init__(
        self, parts: Iterable[LineResult], title: str, every: float, *, has_end: bool = False, exit_code: int = 0
    ) -> None:
        super().__init__(parts, keep_going=True, exit_code=exit_code)
        self.title = title
        self.every = every
        self.has_end = has_end


class Exit(Exception):
    """The command ``exit`` ran: the front end ends with this code."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code
