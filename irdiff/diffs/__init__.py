"""What differs in one case, line by line: texts of a stage, what is launched.

Reports, `diff` and `explain` show it.
"""
