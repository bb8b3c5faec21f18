"""Keeps facts and timings of every kernel in every version in one file, and shows them as lines. Read
`database` for the tables, `lines` for what a line is, `steps` for what a step is.
"""
