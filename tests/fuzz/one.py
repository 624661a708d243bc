"""One target under the fuzzer, which ends the process: ``python -m tests.fuzz.one TARGET [OPTION ...] DIR ...``."""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]


def main() -> None:
    """Instrument the package as it is imported, then fuzz for ever, or as the options say."""
    with atheris.instrument_imports(include=["kshell"]):
        from tests.fuzz import targets

    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, lambda data: targets.run(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
