"""States of LLVM's optimizer from the log of `LLVM_IR_ENABLE_DUMP`, in the form of `attribute.passes`.

LLVM prints after each pass what it ran on: the function, or the module. Only kernels of one function are
read, so that both are the same text. Debug locations, comments and numbers of metadata and attribute
groups are taken out: passes number them anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from irdiff.attribute.passes import END, State, sections

_BEGINNING = b"; *** IR Dump After "
_HEADING = re.compile(r"^; \*\*\* IR Dump After (?P<name>[\w.<>:, -]+?) on (?P<on>[^\n]*?) \*\*\*[^\n]*$")
_FUNCTION = re.compile(r"^define .*?^\}$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@[\w.$-]+")
_NOISE = re.compile(
    r", !dbg !\d+| !dbg !\d+|[ \t]*;[^\n\"]*$|^ *#dbg_[^\n]*\n| #\d+|, ![\w.]+ !\d+", re.MULTILINE
)


def read_log(log: Iterable[bytes]) -> list[State]:
    """One state before each pass but the first; none where the log holds several functions."""
    states: list[State] = []
    known = ""
    for heading, content in sections(log, _BEGINNING, _HEADING):
        if states:
            states[-1] = replace(states[-1], name=heading["name"])
        functions = _FUNCTION.findall(content.decode(errors="replace"))
        if len({_NAME.findall(function)[0] for function in functions}) > 1:
            return []
        known = _NOISE.sub("", functions[0]) if functions else known
        make = states[-1].followed_by if states else State.of
        states.append(make(END, "", None, known.encode()))
    return states
