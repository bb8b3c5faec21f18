"""What irdiff said of six real comparisons before its redesign, and whether it still says that.

    python -m tests.programs.oracle record|check [NAME …]

A *view* is one thing that irdiff writes: the run, a report, the answer of the gate. Each is normalized (times
and folders differ from run to run) and kept in `tests/data/oracle`. `check` makes all of them anew with the
real compilers and prints how they differ from what was recorded.
"""
