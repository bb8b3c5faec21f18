"""Which of the same planted faults the tests catch: `python -m tests.programs.catch run`.

Mutants (`tests/data/catch/mutants.tsv`, chosen at random) and fifty defects of this repository's own
history (`tests/data/catch/defects.toml`, each put back by the edit that its fix undid). A fault is known by the
text that it changes and by the function that holds it, so that it is found again after code has moved; one whose
text is nowhere any more is reported as gone.
"""
