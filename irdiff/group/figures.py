"""The figures of machine code that moved, over the cases of a group: `registers +2 … +6`. Pure.

A figure is shown where it moved in at least half of the cases whose machine code changed. Where all cases
have the same values, both are shown; else by how much they moved, as a range that holds for every case, also
for those where the figure did not move.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from irdiff.model import Case, Fact, Sides, Verdict

Facts = Sides[Mapping[str, Fact]]

_BEFORE_ACCESS = (
    ("ttgir.convert_layout", "`ttg.convert_layout` in TTGIR", ""),
    ("spill_store_bytes", "spills", " B"),
    ("vgpr_spills", "spilled VGPRs", ""),
    ("sgpr_spills", "spilled SGPRs", ""),
    ("scratch_bytes", "scratch memory", " B"),
    ("blocks_per_multiprocessor", "blocks a multiprocessor", ""),
    ("waves_per_simd", "waves a SIMD", ""),
    ("shared_bytes", "shared memory", " B"),
    ("tmem_columns", "TMEM columns", ""),
    ("registers", "registers", ""),
    ("vgprs", "VGPRs", ""),
    ("agprs", "AGPRs", ""),
)
_AFTER_ACCESS = (
    ("ptx.barrier", "PTX `bar` and `mbarrier`", ""),
    ("ptx.fence", "PTX `fence`", ""),
    ("amdgcn.barrier", "`s_barrier`", ""),
    ("amdgcn.wait", "`s_waitcnt`", ""),
    ("ptx.total", "PTX instructions", ""),
    ("amdgcn.total", "instructions", ""),
)
_ACCESS = re.compile(r"(ptx|amdgcn)\.(load|store)_(global|shared)_(\d+)")
_BARRIER = re.compile(r"(?<!sched\.)(?<!sched\.group\.)barrier")
_SYNCHRONIZATION = (
    (_BARRIER, "ptx.barrier", "as many `bar` and `mbarrier` in PTX"),
    (_BARRIER, "amdgcn.barrier", "as many `s_barrier` in the assembly"),
    (re.compile(r"fence"), "ptx.fence", "as many `fence` in PTX"),
)


def moved(cases: Sequence[Case], said: str) -> Iterator[str]:
    """The figures that moved, the gravest first, without those that the words `said` already tell."""
    known = [case for case in cases if case.facts.base or case.facts.head]
    rows = [case.facts for case in known]
    telling = [case.facts for case in known if case.verdict is not Verdict.ABSORBED] or rows
    yield from _all(_BEFORE_ACCESS, rows, telling, said)
    yield from _widths(telling)
    yield from _all(_AFTER_ACCESS, rows, telling, said)


def kept(cases: Sequence[Case], subjects: Sequence[str]) -> Iterator[str]:
    """What to say of synchronization that assembly has as often as before: another pass may have made it."""
    rows = [case.facts for case in cases]
    for pattern, name, words in _SYNCHRONIZATION:
        values = [(base.get(name), head.get(name)) for base, head in rows]
        same = all(before is not None and before == after for before, after in values)
        if rows and same and any(pattern.search(subject) for subject in subjects):
            yield words


def _all(
    table: Sequence[tuple[str, str, str]], rows: Sequence[Facts], telling: Sequence[Facts], said: str
) -> Iterator[str]:
    for name, words, unit in table:
        if name.startswith("ttgir.") and name.removeprefix("ttgir.") in said:
            continue
        moving = sum(base.get(name, 0) != head.get(name, 0) for base, head in telling)
        if moving and 2 * moving >= len(telling):
            yield f"{words} {_range([(base.get(name, 0), head.get(name, 0)) for base, head in rows])}{unit}"


def _range(values: Sequence[tuple[Fact, Fact]]) -> str:
    """`26 → 20` where all cases have the same values, `+2` where all moved as much, else `+2 … +6`."""
    if len(set(values)) == 1:
        return f"{_text(values[0][0])} → {_text(values[0][1])}"
    steps = [_number(after) - _number(before) for before, after in values]
    least, most = min(steps), max(steps)
    return _signed(least) if least == most else f"{_signed(least)} … {_signed(most)}"


def _signed(step: float) -> str:
    return f"{step:+g}" if step else "0"


def _number(value: Fact | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _text(value: Fact) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# the width of accesses to memory


def _widths(rows: Sequence[Facts]) -> Iterator[str]:
    """`global loads 128 → 64 bit`, where accesses of one width became fewer, and of another more."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        for what, words in _movements(row):
            found.setdefault(what, Counter())[words] += 1
    for what, counts in sorted(found.items()):
        if 2 * sum(counts.values()) >= len(rows):
            yield f"{what} {next(iter(counts)) if len(counts) == 1 else 'of other widths'}"


def _movements(row: Facts) -> Iterator[tuple[str, str]]:
    base, head = row
    steps: dict[str, dict[int, float]] = {}
    for name in {*base, *head}:
        access = _ACCESS.fullmatch(name)
        step = _number(head.get(name)) - _number(base.get(name))
        if access and step:
            width = int(access.group(4))
            steps.setdefault(f"{access.group(3)} {access.group(2)}s", {})[width] = step * width
    for what, by_width in steps.items():
        least = min(by_width, key=lambda width: (by_width[width], width))
        most = max(by_width, key=lambda width: (by_width[width], -width))
        if by_width[least] < 0 < by_width[most]:
            yield what, f"{least} → {most} bit"
