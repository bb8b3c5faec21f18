"""Every IR that irdiff reads: one folder or module for each, which owns all reading of its text.

Each states the rules of its canonical form, each with its reason and source. See README.md.
"""
