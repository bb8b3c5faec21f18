"""Every kernel over every version: what comparisons and timings found, kept in one file and shown as lines.

Read `database` for the tables, `lines` for what a line is, `steps` for what a step is.
"""
