"""Whether an operand of AMD assembly is there when it is read: what `s_waitcnt` is for. Pure.

A load counts in `vmcnt` or `lgkmcnt` until a wait lets no more than so many younger ones be unfinished. Loads
to registers and stores finish in their order, except scalar loads, for which only a count of 0 is enough. An
instruction that reads too early gets another name, so it is another value. It does not matter which waits
stand where, as long as they are enough. Source: AMD Instinct MI300 ISA, 4.4 "Manually Inserted Wait States".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from irdiff.effects.blocks import read_by
from irdiff.effects.program import Act, CodeBlock, Function, Instruction, Verbatim

WAIT = "s_waitcnt"
MARK = "‼"
"""Stands between the name of an instruction that comes too early, and why it does."""
_MOST = 64
_VECTOR = re.compile(r"(?:global|buffer|scratch|flat|tbuffer)_(?!wbl2|inv|gl|wb)")
_LOCAL = re.compile(r"ds_|flat_")
_SCALAR = re.compile(r"s_(?:load|buffer_load|sendmsg)")
_COUNT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_STORES, _SHARED = "stores", "shared memory"


@dataclass
class _Pending:
    younger: dict[tuple[str, str], int] = field(default_factory=dict)
    """By counter and register (or `stores`): how many younger operations count in it."""
    scalar: set[str] = field(default_factory=set)
    """What scalar loads have not delivered for sure."""

    def copy(self) -> _Pending:
        return _Pending(dict(self.younger), set(self.scalar))

    def merge(self, other: _Pending) -> bool:
        """Takes over what is less finished there; whether anything is."""
        less = {key: count for key, count in other.younger.items() if self.younger.get(key, _MOST) > count}
        changed = bool(less) or not other.scalar <= self.scalar
        self.younger |= less
        self.scalar |= other.scalar
        return changed

    def wait(self, text: str) -> None:
        found = [("vmcnt", "0"), ("lgkmcnt", "0")] if text.strip() == "0" else _COUNT.findall(text)
        for counter, count in found:
            for key in [
                k for k, younger in self.younger.items() if k[0] == counter and younger >= int(count)
            ]:
                del self.younger[key]
            if counter == "lgkmcnt" and count == "0":
                self.scalar.clear()

    def mark(self, each: Instruction) -> str:
        read = {*read_by(each), *each.results}  # a late load would overwrite what is written now
        early = {register for _, register in self.younger if register in read} | (self.scalar & read)
        act = each.effect.act if each.effect else None
        unfinished = [what for _, what in self.younger if what in (_STORES, _SHARED)]
        if not early and (not unfinished or act not in (Act.SYNC, Act.ATOMIC, Act.OPAQUE)):
            return ""
        return (
            f"{len(early)} register{'s' * (len(early) > 1)} not loaded yet"
            if early
            else f"{' and '.join(unfinished)} unfinished"
        )

    def issue(self, each: Instruction) -> None:
        for register in each.results:
            self.scalar.discard(register)
            for counter in ("vmcnt", "lgkmcnt"):
                self.younger.pop((counter, register), None)
        counters = [name for name, of in (("vmcnt", _VECTOR), ("lgkmcnt", _LOCAL)) if of.match(each.name)]
        for counter in counters:
            for key in [key for key in self.younger if key[0] == counter]:
                self.younger[key] = min(self.younger[key] + 1, _MOST - 1)
            self.younger.update({(counter, register): 0 for register in each.results})
            if counter == "lgkmcnt" or (each.effect and each.effect.act is not Act.LOAD):
                self.younger[counter, _SHARED if counter == "lgkmcnt" else _STORES] = 0
        if _SCALAR.match(each.name):
            self.scalar.update(each.results)


def marked(function: Function) -> Function:
    """The function without waits, and with another name for what reads too early."""
    by_label = {block.label: block for block in function.blocks}
    entering = {function.blocks[0].label: _Pending()}
    waiting = [function.blocks[0].label]
    while waiting:
        label = waiting.pop()
        block = by_label.get(label)
        if block is None:
            continue
        state = entering[label].copy()
        for _ in _through(block, state):
            pass
        for target in block.targets:
            if target not in entering:
                entering[target] = state.copy()
                waiting.append(target)
            elif entering[target].merge(state):
                waiting.append(target)
    return function._replace(
        blocks=tuple(
            block._replace(instructions=tuple(_through(block, entering.get(block.label, _Pending()))))
            for block in function.blocks
        )
    )


def _through(block: CodeBlock, state: _Pending) -> Iterator[Instruction]:
    for each in block.instructions:
        if each.name == WAIT:
            assert isinstance(each.operands[0], Verbatim)
            state.wait(each.operands[0].text)
            continue
        mark = state.mark(each) if state.younger or state.scalar else ""
        state.issue(each)
        yield each._replace(name=f"{each.name}{MARK}{mark}", compute=None) if mark else each
