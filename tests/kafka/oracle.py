"""Kafka's own reading of a metadata directory, by the latest release's classes."""

from __future__ import annotations

from pathlib import Path

from tests.kafka import jars


def expected_image(directory: Path, at: int | None = None, *, log_only: bool = False) -> str:
    """Return every leaf of the image in a ``__cluster_metadata-0`` directory as lines of path TAB text.

    That is the newest snapshot and the log after it, or (``log_only``) the log alone; ``at`` stops at an offset, in the
    middle of a batch too. The last line is ``#lastOffset``. ``tests.kafka.text`` reads these lines.
    """
    args = [str(directory), "log" if log_only else "at"] + ([] if at is None else [str(at)])
    return jars.run(jars.classes(jars.LATEST, "Oracle"), "Oracle", *args)


def images_at_each(directory: Path, step: int, out: Path) -> dict[int, str]:
    """Return the image after every ``step``-th offset of a log that starts at 0, from one run; files go to ``out``."""
    jars.run(jars.classes(jars.LATEST, "Oracle"), "Oracle", str(directory), "each", str(step), str(out))
    return {int(file.stem): file.read_text("utf-8") for file in out.glob("*.tsv")}


if __name__ == "__main__":
    import sys

    sys.stdout.write(expected_image(Path(sys.argv[1])))
