"""States of LLVM's optimizer from the log of `LLVM_IR_ENABLE_DUMP`, in the form of `compare.passes`. Pure.

LLVM prints after each pass what it ran on: the function, or the module. Only kernels of one function are
read, so that both are the same text. Debug locations, comments and numbers of metadata and attribute
groups are taken out: passes number them anew.
"""

from __future__ import annotations

import re

from irdiff.compare.passes import END, State

_HEADING = re.compile(
    r"^; \*\*\* IR Dump After (?P<name>[\w.<>:, -]+?) on (?P<on>[^\n]*?) \*\*\*[^\n]*$", re.MULTILINE
)
_FUNCTION = re.compile(r"^define .*?^\}$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@[\w.$-]+")
_NOISE = re.compile(
    r", !dbg !\d+| !dbg !\d+|[ \t]*;[^\n\"]*$|^ *#dbg_[^\n]*\n| #\d+|, ![\w.]+ !\d+", re.MULTILINE
)


def read_log(text: str) -> list[State]:
    """One state before each pass but the first; none where the log holds several functions."""
    headings = list(_HEADING.finditer(text))
    states: list[State] = []
    known = ""
    for index, heading in enumerate(headings):
        end = headings[index + 1].start() if index + 1 < len(headings) else len(text)
        functions = _FUNCTION.findall(text, heading.end(), end)
        if len({_NAME.findall(function)[0] for function in functions}) > 1:
            return []
        known = _NOISE.sub("", functions[0]) if functions else known
        name = headings[index + 1]["name"] if index + 1 < len(headings) else END
        states.append(State.of(name, "", None, known))
    return states
