"""Classes of opcodes: what each is counted as in the facts, and what an edit calls it.

Each IR has its table. In each column of one the first row that matches and is not empty counts. Loads and
stores are counted by width and space, which their opcodes spell.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from irdiff.ir.lexing import without_comments


class OpcodeClass(NamedTuple):
    opcodes: str
    """A regular expression that matches their beginning."""
    counted: str
    """The name of the fact; empty where the row counts nothing."""
    klass: str
    """The class in an edit; empty where the row has none: an edit then has the opcode itself."""


class CountedSynchronization(NamedTuple):
    counted: str
    """The name of the fact."""
    name: str
    """The instructions that it counts: "`s_barrier`"."""
    kept: str
    """The words of a title if there are as many as before."""


Table = tuple[OpcodeClass, ...]

BY_NAME = re.compile(
    r"fence|barrier|bar\.|mbarrier|wait|atom|red\.|cmpxchg|mma|mfma|wgmma|tcgen05|cp\.async|tma|ldmatrix"
    r"|stmatrix|nanosleep|membar|depbar|s_sched|s_setprio|lds_|ds_read|ds_write|griddep|elect|cluster"
)
"""Opcodes that a reader of an edit must see by name, whatever their class: synchronization, atomics, matrix
units, copies in the background."""
INTEGER = "integer arithmetic"
OTHERS = "other instructions"
# fmt: off
UNTELLING = frozenset({
    INTEGER, "addresses and casts", "vector shuffles", "control flow", "declarations",
    "directives", "moves", "scalar loads",
})
# fmt: on
"""Classes that every change of lowering or optimization touches."""
_LOCAL = ("load_local", "store_local", "load_scratch", "store_scratch")


@functools.lru_cache(maxsize=1 << 13)
def counted(table: Table, opcode: str) -> str:
    """The name of the fact that an opcode is counted in; empty where it is in none."""
    entries = (entry for entry in table if entry.counted)
    return next((entry.counted for entry in entries if re.match(entry.opcodes, opcode)), "")


@functools.lru_cache(maxsize=1 << 13)
def klass(table: Table, opcode: str) -> str | None:
    """The class of an opcode in an edit; None where an edit has the opcode itself."""
    entries = (entry for entry in table if entry.klass)
    return next((entry.klass for entry in entries if re.match(entry.opcodes, opcode)), None)


@functools.lru_cache(maxsize=1 << 12)
def assembly_class(table: Table, opcode: str) -> str:
    """The class of an opcode of an assembly, or the opcode itself where a reader must see it."""
    if BY_NAME.search(opcode):
        return re.sub(r"\d+(?=x|$)", "N", opcode)
    return klass(table, opcode) or opcode


def counts(
    text: str, *, comments: re.Pattern[str], opcode: re.Pattern[str], class_of: Callable[[str], str]
) -> dict[str, int]:
    """The instructions of a raw text of an assembly by class, `total` for all of them.

    Each counts once, however often a loop runs it.

    """
    by_name: Counter[str] = Counter()
    for name, count in Counter(opcode.findall(without_comments(comments, text))).items():
        by_name["total"] += count
        if kind := class_of(name):
            by_name[kind] += count
            if kind.startswith(_LOCAL):
                by_name["local_memory"] += count
    return dict(sorted(by_name.items()))
