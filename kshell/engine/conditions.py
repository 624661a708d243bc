"""What people are told of conditions: the grammar of ``--where`` and of ``watch --until``, in Markdown."""

from __future__ import annotations

CONDITIONS = """\
A condition compares fields by their names in `-o json`, whichever columns are shown. It is one word: quote it.

- `partitions > 3`, `state == offline`, `rack != null`: `==` (or `=`), `!=`, `<`, `<=`, `>`, `>=`. Numbers are compared\
 with numbers, text with text; a word that is no field is text.
- `release == '4.3'`, `value == "2"`: text that looks like a number, or has blanks or marks in it, stands in quotes.
- `name ~ '^orders'`, `name !~ 'test|tmp'`: Python's regular expressions, found anywhere in the text. One that needs\
 more than a second for one text is given up.
- `3 in isr`, `state in [offline, under-min-isr]`, `'retention.ms' in configs`, `'etc' in value`: an element of a list,\
 a key of an object, a part of a text.
- `len(isr) < len(replicas)`: how long a list, an object or a text is.
- `any(listeners, port == 9093)`, `all(isr, it in replicas)`: some element, every element; `it` is the element itself.
- `not fenced`, `a == 1 and (b == 2 or c == 3)`: `not` before `and` before `or`.
- `configs.cleanup.policy == compact`, `nodes.3000.max >= 17`, `isr.0 == 1`, `nodes["10.0.0.1:9093"] != null`: dots and\
 brackets lead into objects and lists.

null is a value: `rack == null` is true where there is none, and so is `rack != a`. All else that is asked of null is\
 false: `rack < b`, `rack ~ ''`, `1 in elr`; so `not rack ~ b` is true. any and all are false of null; of an empty list\
 all is true. What lies below null is null.
"""
