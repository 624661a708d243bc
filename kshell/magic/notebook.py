"""The notebook as a front end: run the lines of cells on sessions, and return each answer as a :class:`Result`.

:class:`KafkaMagics` is what IPython calls; :class:`Notebook` does the work.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand
from traitlets import Bool

from kshell.engine.execution import Call, line_of_fault, logical_lines, prepare_line, time_limit
from kshell.engine.result import Exit, Frames, Many, Nothing, Rows, Text, Value
from kshell.engine.result import Result as Answer
from kshell.engine.session import Session
from kshell.errors import EXIT_INTERRUPTED, EXIT_OK, CommandError, Interrupted, KshellError, UsageError
from kshell.magic import live
from kshell.magic.display import short, show, show_error
from kshell.magic.interpolate import without_expressions
from kshell.magic.lines import CellLine, Split, check_name, parse_cell_line, take_option, typed_line
from kshell.magic.sessions import Sessions
from kshell.render.output import emit
from kshell.result import Result
from kshell.tree.image import epoch_ms, iso

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


USAGE = """\
### %kafka

| line | what it does |
| --- | --- |
| `%kafka connect -d DIR` | opens a directory; or `-q` controllers, `-b` brokers, `--context NAME`, `--demo` |
| `%kafka COMMAND …` | runs a command; `%kafka help` lists them |
| `x = %kafka COMMAND …` | keeps the result: `x.df`, `x.rows`, `x.plot()`, `x.diff(y)`, `x.to_json()` |
| `%kafka COMMAND … --into x` | the same, and shows nothing |
| `%kafka COMMAND … --widget` | a table that sorts, filters, searches, pages and copies |
| `%%kafka` | runs the lines below it, one command a line |
| `%kafka -l` | lists the open sessions; `--context NAME` runs a line on one, `--close [NAME]` closes it |

`{{expr}}` stands for the value of a Python expression, as one argument; `--no-interp` switches that off. Everything
else is the shell's own grammar: quotes, globs, `> FILE`, `| PROGRAM`, `# comments`. A `;` at the end shows nothing.
"""


Names = dict[str, Any]


class Notebook:
    """The state of the magics: open sessions, and what was shown. IPython calls :meth:`begin` before each cell,
    :meth:`line` and :meth:`cell` for the magics, and :meth:`show` for the value of a cell.
    """

    def __init__(self, ip: InteractiveShell, sessions: Sessions | None = None) -> None:
        self._ip = ip
        self.sessions = Sessions() if sessions is None else sessions
        self.matcher: Callable[..., Any] | None = None
        self._shown_notes: set[tuple[str, str]] = set()
        self.as_widgets = False
        """Whether tables are shown as widgets also without ``--widget``."""
        self._silent: list[Result] = []
        """Results of this cell that IPython must not show: shown already, written elsewhere, or ended with ``;``."""

    def begin(self, *_: object) -> None:
        """Forget, before a cell, which results earlier cells did not show."""
        self._silent.clear()

    def silence(self, result: Result) -> Result:
        """Prevent the current cell from showing the result; return it."""
        self._silent.append(result)
        return result

    def show(self, result: Result) -> None:
        """Show a result, unless it was silenced in this cell."""
        if not any(result is silenced for silenced in self._silent):
            show(result, in_terminal=not hasattr(self._ip, "kernel"))

    # --- lines -------------------------------------------------------------------------------------------------------

    def line(self, text: str, local: Names | None = None) -> Result:
        """Run the line of ``%kafka``; ``local`` are variables for ``{{…}}``. Raises KshellError without a traceback."""
        try:
            return self._run(self._parse(text, local))
        except (Exception, KeyboardInterrupt) as error:
            raise short(error, typed_line(text)) from None

    def cell(self, header: str, body: str, local: Names | None = None) -> Result:
        """Run the lines of ``%%kafka``, show each answer as it comes, and return all of them. Raises KshellError."""
        try:
            options = self._options(header, local)
        except (Exception, KeyboardInterrupt) as error:
            raise short(error, typed_line(header)) from None
        results: list[Result] = []
        try:
            results.extend(self._lines(body, options, local))
        finally:
            combined = results[0] if len(results) == 1 else Result(Many(()), parts=results)
            if options.own.into and results:
                self._keep(options.own.into, combined)
        return self.silence(combined)

    def _options(self, header: str, local: Names | None) -> Split:
        """Parse the options in the line of ``%%kafka`` itself. Raises UsageError."""
        split = self._parse(header, local).split
        own = split.own
        if split.command or own.list or own.close or own.help:
            raise UsageError("%%kafka takes options only", hint="the commands go below it, one per line")
        if own.into:
            check_name(own.into)
        return split

    def _lines(self, body: str, options: Split, local: Names | None) -> Iterator[Result]:
        failed = 0
        cell_lines: list[str] = re.split(r"\r\n?|\n", body)  # where the lines of a file end
        for number, text in logical_lines(cell_lines, str if options.own.no_interp else without_expressions):
            try:
                result = self._cell_line(text, options, local)
            except (Exception, KeyboardInterrupt) as error:
                typed = typed_line(text)
                place = number if typed is None else line_of_fault(number, typed, error)
                complaint = short(error, typed, f"line {place}")
                if not options.own.keep_going or isinstance(complaint, Interrupted):
                    raise complaint from None
                show_error(complaint)
                failed += 1
                continue
            if result is not None:
                yield result
                if result.exit_code == EXIT_INTERRUPTED:
                    return
        if failed:
            lines = "1 line of the cell" if failed == 1 else f"{failed} lines of the cell"
            raise short(CommandError(f"{lines} failed", hint="each error is shown above"))

    def _cell_line(self, text: str, options: Split, local: Names | None) -> Result | None:
        """Run one line of a cell and show its result; return ``None`` for an empty line. Raises any error."""
        parsed = self._parse(text, local, interp=not options.own.no_interp)
        own = parsed.split.own
        if not parsed.line.words:
            return None
        own.context = own.context or options.own.context
        own.widget = own.widget or options.own.widget
        point, leading = take_option(options.shaping, "--as-of")
        result = self._run(parsed._replace(split=parsed.split._replace(shaping=leading + parsed.split.shaping)), point)
        if options.own.into:
            self.silence(result)
        self.show(result)
        return result

    def _parse(self, text: str, local: Names | None, *, interp: bool = True) -> CellLine:
        return parse_cell_line(text, (lambda expression: self._evaluate(expression, local)) if interp else None)

    def _evaluate(self, expression: str, local: Names | None) -> Any:
        return eval(expression, self._ip.user_global_ns, {**self._ip.user_ns, **(local or {})})

    # --- a single line -----------------------------------------------------------------------------------------------

    def _run(self, parsed: CellLine, point: str | None = None) -> Result:
        """Run a line. ``point`` is the point in time to show, unless the line names one itself."""
        own, tokens = parsed.split.own, parsed.split.command
        if own.into:
            check_name(own.into)
        result = self._own(parsed)
        if result is None:
            name, session = self.sessions.get(own.context)
            session.refresh()
            command = [*tokens[:1], *parsed.split.shaping, *tokens[1:]]
            call = prepare_line(session, parsed.line._replace(words=command), point=point)
            result = self._answered(name, call, quiet=parsed.quiet or bool(own.into), as_widget=bool(own.widget))
        if own.into:
            self._keep(own.into, result)
        return self.silence(result) if parsed.quiet or own.into else result

    def _own(self, parsed: CellLine) -> Result | None:
        """Do what the magic does itself (``-l``, ``connect``); return ``None`` for a command. Raises KshellError."""
        own, tokens = parsed.split.own, parsed.split.command
        if own.list:
            return Result(self.sessions.rows())
        if own.close:
            self.sessions.close(tokens[0].text if tokens else None)
            return Result(Nothing())
        if own.help or (not tokens and not parsed.is_comment):
            return Result(Text(USAGE, markdown=True))
        if not tokens:
            return Result(Nothing())
        if tokens[0].text != "connect" or tokens[0].quoted:
            return None
        session, output = self.sessions.connect([*tokens[1:], *parsed.split.shaping])
        self._shown_notes = {(name, note) for name, note in self._shown_notes if name != self.sessions.current}
        notes = [*session.problems(), *session.notes()]
        self._reported_before(str(self.sessions.current), session)
        return Result(_connected(session), notes=notes, output=output, exit_code=session.exit_code())

    def _answered(self, name: str, call: Call, *, quiet: bool, as_widget: bool) -> Result:
        """Run a command within its deadline, and write its answer if it is redirected, or show it if it has no end."""
        try:
            with time_limit(call):
                result = self._result(name, call, call.run(), quiet=quiet, as_widget=as_widget)
        except Exit:
            raise UsageError("exit: a cell ends by itself", hint="%kafka --close closes the session") from None
        finally:
            clear = getattr(call.session.progress, "clear", None)
            if clear is not None:
                clear()
        return result

    def _result(self, name: str, call: Call, answer: Answer, *, quiet: bool, as_widget: bool) -> Result:
        session = call.session
        if isinstance(answer, Frames | Rows) and (isinstance(answer, Frames) or answer.live):
            if call.line.target is None and call.line.program is None:
                return self.silence(live.show_live(self._ip, call, answer))
            raise UsageError(f"{call.command.name}: a cell shows it while it comes; it cannot be redirected or piped")
        if isinstance(answer, Many):
            return self._parts(name, answer, quiet=quiet, as_widget=as_widget)
        if call.line.program is not None and session.redaction.show_secrets:
            raise UsageError(
                "secrets do not go through a program into a cell, which is saved", hint="> FILE takes them"
            )
        result = Result.of(call, answer)
        result.reported_before = self._reported_before(name, session)
        result.as_widget = as_widget or self.as_widgets
        line = call.line
        if line.target is not None or line.program is not None:
            # A program cannot write to the kernel's standard output, whose file descriptor does not lead to the cell.
            output = io.StringIO()
            try:
                written = emit(
                    result.answer,
                    call.shape.output or "text",
                    stdout=output,
                    target=line.target,
                    append=line.append,
                    program=line.program,
                    forbidden=session.protected,
                    header=not call.shape.no_header,
                )
            finally:
                sys.stdout.write(output.getvalue())
            if written != EXIT_OK:
                raise CommandError(f"the program failed: {line.program}")
            self.silence(result)
        return result

    def _parts(self, name: str, many: Many, *, quiet: bool, as_widget: bool) -> Result:
        """Collect the results of the lines of a file (``source``); show each as it comes, unless ``quiet``."""
        results = []
        for part in many.parts:
            error = part.error
            if part.call is not None and part.result is not None:
                try:
                    results.append(self._result(name, part.call, part.result, quiet=quiet, as_widget=as_widget))
                    if not quiet:
                        self.show(results[-1])
                except KshellError as failure:
                    if not many.keep_going:
                        raise
                    error = failure
            if error is not None:
                show_error(short(error))
                results.append(Result(Nothing(), exit_code=error.exit_code))
        return self.silence(Result(many, parts=results))

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _keep(self, name: str, result: Result) -> None:
        self._ip.user_ns[name] = result

    def _reported_before(self, name: str, session: Session) -> frozenset[str]:
        """Return the notes on the source (its age, a torn tail) that were shown for this session; remember all of them.

        Notes on one answer or its point in time are not among them: they are shown with each answer that needs them.
        """
        lasting = {(name, note) for note in session.notes(answer=False)}
        repeated = frozenset(note for _, note in lasting & self._shown_notes)
        self._shown_notes |= lasting
        return repeated


def _connected(session: Session) -> Answer:
    """Return the answer of ``connect``: the source, and the offset and time of the state that is shown."""
    provenance = session.image.provenance
    return Value(
        "",
        "session",
        {
            "source": session.source.name,
            "kind": session.source.kind,
            "offset": provenance.offset,
            "time": iso(provenance.timestamp),
            "timeMs": epoch_ms(provenance.timestamp),
        },
    )


@magics_class
class KafkaMagics(Magics):
    """The magics ``%kafka`` and ``%%kafka``, as IPython registers them."""

    widget = Bool(False, help="Show tables as widgets that sort, filter, search, page and copy.").tag(config=True)

    def __init__(self, ip: InteractiveShell, notebook: Notebook) -> None:
        super().__init__(ip)
        self._notebook = notebook

    # IPython would replace $name and {name} by itself; here only {{expr}} is Python's.
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def kafka(self, line: str, cell: str | None = None, local_ns: Names | None = None) -> Result:
        """Kafka's metadata: ``%kafka --help`` says how it is used, ``%kafka help`` what there is."""
        self._notebook.as_widgets = self.widget
        if cell is None:
            return self._notebook.line(line, local_ns)
        return self._notebook.cell(line, cell, local_ns)
