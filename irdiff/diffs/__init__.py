"""Shows what differs in one case, line by line: in the texts of a stage, and in the launch.

Reports, `diff` and `explain` use it.
"""
