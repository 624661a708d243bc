"""Coverage-guided fuzzing of everything that reads bytes or text of others: ``./dev fuzz``.

:mod:`tests.fuzz.targets` has the functions, ``corpus/`` what was found to lead somewhere new, by target;
``test_corpus.py`` runs all of that in the ordinary tests. The fuzzer itself (atheris) is for Linux and CPython.
"""
