"""Put HTML fragments into a complete page, for light and dark screens and for paper. It has no script and fetches
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kshell.escape import html

_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Anchor(NamedTuple):
    """A section in the list of links at the top of the page: its HTML id and its title."""

    name: str
    title: str


def document(
    title: str,
    facts: Iterable[str],
    notes: Iterable[str],
    anchors: Sequence[Anchor],
    body: Iterable[str],
    footer: str,
) -> Iterator[str]:
    """Yield the lines of a page. ``body`` is HTML, and an anchor has an id; all else is text, which is escaped here."""
    name = html(title)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{name}</h1>"
    yield f'<p class="facts">{" · ".join(map(html, facts))}</p>'
    yield from (f'<p class="note">{html(note)}</p>' for note in notes)
    yield '</header>\n<nav aria-label="Sections"><ul>'
    yield from (f'<li><a href="#{anchor.name}">{html(anchor.title)}</a></li>' for anchor in anchors)
    yield "</ul></nav>\n<main>"
    yield from body
    yield f"</main>\n<footer>{html(footer)}</footer>\n</body>\n</html>"


_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; --box: #f6f8fa;
  --link: #0a58ca; --critical: #b02020; --error: #d1242f; --warning: #bc6c00; --info: #0969da; }
@media (prefers-color-scheme: dark) { :root { --page: #111111; --ink: #e6e6e6; --dim: #a0a7af; --line: #343a41;
  --box: #1b1e22; --link: #79b8ff; --critical: #ff6b6b; --error: #ff7b72; --warning: #e3a13a; --info: #79b8ff; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 1800px; padding: 2.5rem 2rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
a { color: var(--link); text-underline-offset: 0.15em; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 0.3rem; }
code { font: 0.92em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.facts, .about, .note, footer { color: var(--dim); font-size: 0.9rem; margin: 0.2rem 0; overflow-wrap: anywhere; }
nav { margin: 1.4rem 0 0; padding: 0.7rem 0; border: solid var(--line); border-width: 1px 0; font-size: 0.92rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; list-style: none; margin: 0; padding: 0; }
section { margin-top: 3rem; }
pre { font: 0.85em/1.35 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-x: auto; }
h1, p, .attention, nav ul, footer { max-width: 66rem; }
.lead { font-size: 1.05rem; margin: 0.3rem 0 0.5rem; overflow-wrap: anywhere; }
.attention { list-style: none; margin: 0.8rem 0 0; padding: 0; display: grid; gap: 0.6rem; }
.attention li { display: grid; grid-template-columns: 7rem 1fr; gap: 0 1rem; align-items: baseline;
  background: var(--box); border: 1px solid var(--line); border-left: 5px solid var(--tone); border-radius: 6px;
  padding: 0.6rem 0.9rem; }
.attention .figure { grid-row: span 2; font-size: 1.4rem; font-weight: 650; line-height: 1.2; text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
.attention .level { color: var(--tone); font-size: 0.78rem; font-weight: 650; letter-spacing: 0.04em;
  text-transform: uppercase; margin-right: 0.6rem; }
.attention .where { color: var(--dim); font-size: 0.9rem; overflow-wrap: anywhere; }
.critical { --tone: var(--critical); } .error { --tone: var(--error); }
.warning { --tone: var(--warning); } .info { --tone: var(--info); }
figure { margin: 1.1rem 0 0; }
figcaption { color: var(--dim); font-size: 0.88rem; }
.scroll { overflow-x: auto; }
img { display: block; max-width: 100%; height: auto; }
table { border-collapse: collapse; margin: 1.2rem 0 0; font-size: 0.88rem; line-height: 1.4; min-width: 30rem;
  max-width: 100%; }
caption { text-align: left; font-weight: 650; padding: 0 0 0.4rem; caption-side: top; }
th, td { text-align: left; vertical-align: top; padding: 0.32rem 0.9rem 0.32rem 0;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--dim); font-weight: 600; vertical-align: bottom; border-bottom-width: 2px; }
tbody th { font-weight: 400; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
td, tbody th { white-space: nowrap; }
td.t { font-variant-numeric: tabular-nums; }
td.w, tbody th.w { white-space: normal; min-width: 14em; max-width: 70em; overflow-wrap: anywhere; }
footer { margin-top: 4rem; border-top: 1px solid var(--line); padding-top: 0.8rem; }
@media (max-width: 700px) { body { padding: 1.2rem 1rem 3rem; } table { min-width: 0; }
  img { max-width: none; width: 680px; }
  .attention li { grid-template-columns: 1fr; } .attention .figure { grid-row: auto; text-align: left; } }
@media print { nav { display: none; } body { padding: 0; font-size: 11pt; } section { margin-top: 1.6rem; }
  h2, .lead, summary, caption, thead { break-after: avoid; } tr, figure { break-inside: avoid; }
  /* Nobody scrolls paper; !important overrides the fragments' own styles. What the reader has folded stays folded. */
  div, .scroll, pre { overflow: visible !important; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  table { min-width: 0 !important; font-size: 8pt; }
  th, td, td.w, tbody th.w { min-width: 3em !important; padding: 0.2rem 0.3rem 0.2rem 0 !important;
    white-space: normal !important; overflow-wrap: anywhere; } }
"""
