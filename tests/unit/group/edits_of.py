"""Edits written down line by line: `edit("ttgir", added("tt.load"), removed("tt.store", partner="…"))`."""

from irdiff.compare.edits import Edit, EditLine


def removed(text, *, partner=None, depth=0, ahead=""):
    return EditLine(sign="-", text=text, number=0, depth=depth, partner=partner, ahead=ahead)


def added(text, *, partner=None, depth=0, ahead=""):
    return EditLine(sign="+", text=text, number=0, depth=depth, partner=partner, ahead=ahead)


def replaced(before, after, *, depth=0):
    """One line that says something else on the other side."""
    return removed(before, partner=after, depth=depth), added(after, partner=before, depth=depth)


def edit(stage, *lines):
    return Edit(stage=stage, lines=lines)


def line(written):
    """`+ text`, `->> text` inside of two loops, `+ text @ operation ahead`."""
    sign, _, text = written.partition(" ")
    text, _, ahead = text.partition(" @ ")
    return (added if sign[0] == "+" else removed)(text, depth=len(sign) - 1, ahead=ahead)


def lines(written):
    """A list of two is one line that says something else on the other side."""
    found = []
    for row in written:
        if isinstance(row, str):
            found.append(line(row))
        else:
            text = row[0].lstrip(">")
            found += replaced(text, row[1], depth=len(row[0]) - len(text))
    return found
