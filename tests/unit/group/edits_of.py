"""Edits written down line by line: `edit("ttgir", "+ tt.load", "->> tt.store", ["1 warp", "2 warps"])`."""

from irdiff.compare.edits import Edit, EditLine


def _line(sign, text, partner=None, depth=0, ahead=""):
    return EditLine(sign=sign, text=text, number=0, depth=depth, partner=partner, ahead=ahead)


def edit(stage, *written):
    """`+ text`, `->> text` inside of two loops, `+ text @ operation ahead`; a list of two is one line that says
    something else on the other side.
    """
    found = []
    for row in written:
        if isinstance(row, str):
            sign, _, text = row.partition(" ")
            text, _, ahead = text.partition(" @ ")
            found.append(_line(sign[0], text, depth=len(sign) - 1, ahead=ahead))
        else:
            text, other = row[0].lstrip(">"), row[1]
            depth = len(row[0]) - len(text)
            found += [_line("-", text, other, depth), _line("+", other, text, depth)]
    return Edit(stage=stage, lines=tuple(found))
