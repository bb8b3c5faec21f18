"""What the tests of evidence share: repositories of tiny kernels, and comparisons of their commits.

Nothing here imports irdiff: everything goes through the command line of the interpreter that runs the tests,
so that the same tests judge any checkout of it.
"""
