r"""Whether two AMDGCN texts are the same but for the physical registers: a fact, never a verdict.

Both texts are walked in lock-step over their common control-flow graph with a relation "register x of
the base holds what register y of the head holds". It begins as the identity, since both begin with the
same machine state; each instruction asks it of every register that it reads and renews it for those that
it writes; where paths meet, what holds on both remains. True means: from the same state, both execute
the same instructions on the same values. Not looked at is timing, such as bank conflicts, and whether
the compiler waited long enough before it used a register again.

Whatever is not certain is refused: an instruction that the table does not know (calls, indexed registers,
returning atomics, whole-wave mode), more than one function, lines other than instructions that differ.
An instruction that may keep a part of its result register (16 bits, DPP, SDWA, accumulating) reads it.

Lanes: vector instructions write active lanes only. `s_and_saveexec` opens a scope and an `s_or` of
`exec` with what it saved closes it; what was related inside ends with it, unless the same pair was related
before. Instructions that look at other lanes are refused inside. All lanes a wave starts with take part.
Source: the "CDNA3" Instruction Set Architecture manual; LLVM's AMDGPU operand order. Only for wave64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

MAX_VISITS = 6
"""How often a line is walked on average before the texts are refused; real loops need three."""
_REGISTERS_A_LINE = 8
"""How many registers of a state are copied and compared in the time that a line takes."""

Register = tuple[str, int]
Scope = tuple[int, ...]
"""The lines of the `s_and_saveexec` that are open."""

_REGISTER = re.compile(r"(?<![\w.:\[$])([vsa])(?:(\d{1,3})|\[(\d{1,3}):(\d{1,3})\])(?![\w.$])")
_UNNUMBERED = re.compile(r"(?<![\w.])[vsa]\[[^\]]*\]|(?<![\w.])[vsa]\d+(?:\.[lh])?")
_INERT = re.compile(r"\.[\w.]+(?: .*)?|[\w.$]+:")
_DATA = re.compile(
    r"\.(?:long|byte|short|quad|[248]byte|word|int|ascii|octa|inst|fill|space|zero|incbin|value)"
)
_METADATA = ".amdgpu_metadata"
_BRANCH = re.compile(r"s_(?:c?branch\w*) (\.L\w+)")
_PRELOAD = re.compile(r"\.amdhsa_user_sgpr_kernarg_preload_length (?!0$)")

_READS_ONLY = re.compile(
    r"(?:global|buffer|flat|scratch)_store_\w+|ds_write\w+|s_(?:cmpk?|bitcmp[01])_\w+|s_waitcnt|s_barrier|s_nop"
    r"|s_setprio|s_sleep|s_endpgm|s_branch|s_cbranch_(?:scc[01]|vccn?z|execn?z)|buffer_(?:wbl2|inv)"
)
_LOAD = re.compile(
    r"(?:global|buffer|flat|scratch)_load_\w+|s_(?:buffer_)?load_\w+|ds_read\w+|ds_b?permute_b32|ds_swizzle_b32"
)
_SCALAR = re.compile(
    r"s_(?:mov|add|addc|sub|subb|mul|mul_hi|min|max|and|or|xor|nand|nor|xnor|andn2|orn2|not|lshl|lshr|ashr|bfe|bfm"
    r"|bcnt[01]|ff[01]|flbit|sext|abs|absdiff|brev|cselect|lshl[1-4]_add|pack_(?:ll|lh|hh)|movk|addk|mulk)_[\w]+"
)
_VECTOR = re.compile(
    r"v_(?:pk_)?(?:mov|add|sub|subrev|mul|mul_lo|mul_hi|mad|fma|fmac|fmaak|fmamk|bitop3|pack|mac|max|min|max3|min3|med3|and|or|xor|not"
    r"|lshlrev|lshrrev|ashrrev|add3|lshl_add|add_lshl|lshl_or|and_or|or3|xad|bfe|bfi|bfm|bfrev|alignbit|alignbyte"
    r"|perm|cndmask|cvt|cvt_pk|cvt_pkrtz|exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos|floor|ceil|trunc|rndne|fract"
    r"|ldexp|frexp_mant|frexp_exp|ffbh|ffbl|bcnt|mbcnt_lo|mbcnt_hi|div_fmas|div_fixup|accvgpr_read|accvgpr_write"
    r"|accvgpr_mov|mfma|cmp|cmp_class|add_co|sub_co|subrev_co|addc_co|subbrev_co|subb_co|div_scale|readfirstlane)_\w+"
)
_TWO_RESULTS = re.compile(r"v_\w+_co_|v_div_scale_|v_mad_[iu]64_[iu]32")
_KEEPS_A_PART = re.compile(
    r"v_(?:pk_)?f?mac_|s_(?:addk|mulk)_|\w+_(?:dpp|sdwa)$|\w+_d16"
    r"|v_(?!pk_|pack_b32|mfma_|cmp_|cvt_f32_|cvt_pkrtz_|cvt_pk_(?!fp8|bf8|\w*scale))\w*(?:16|fp8|bf8|bf6|fp6|fp4|scale)"
)
_ACROSS_LANES = re.compile(r"v_(?:readfirstlane|mfma)|ds_b?permute|ds_swizzle|ds_read\w*_tr_|\w+_dpp$")
_SAVE = re.compile(r"s_and_saveexec_b64 s\[(\d+):\d+\], (?!-?\d)")
_RESTORE = re.compile(r"s_or_b64 exec, exec, s\[(\d+):\d+\]$")


@dataclass(frozen=True, kw_only=True)
class _Instruction:
    name: str
    writes: tuple[Register, ...]
    reads: tuple[Register, ...]


@dataclass(kw_only=True)
class _State:
    related: dict[Register, tuple[Register, Scope]]
    reverse: dict[Register, Register]
    scope: Scope
    saved: dict[int, Scope]
    """Which scope's `exec` a pair of scalar registers of the base holds, by its first."""

    def copy(self) -> _State:
        return _State(
            related=dict(self.related), reverse=dict(self.reverse), scope=self.scope, saved=dict(self.saved)
        )

    def relate(self, base: Register, head: Register) -> None:
        known = self.related.get(base)
        if known and known[0] == head:
            return  # lanes that are not written keep what was related before
        self._forget(base, head)
        self.related[base] = head, self.scope if base[0] != "s" else ()
        self.reverse[head] = base

    def _forget(self, base: Register, head: Register) -> None:
        if base in self.related:
            del self.reverse[self.related.pop(base)[0]]
        if head in self.reverse:
            del self.related[self.reverse.pop(head)]

    def close(self, scope: Scope) -> None:
        """Go back to an outer scope: what holds in lanes of an inner one only is forgotten."""
        self.scope = scope
        for base, (head, inner) in list(self.related.items()):
            if len(inner) > len(scope):
                self._forget(base, head)
        self.saved = {pair: outer for pair, outer in self.saved.items() if len(outer) <= len(scope)}


class _RefusedError(Exception):
    pass


def same_up_to_registers(base_lines: Sequence[str], head_lines: Sequence[str]) -> bool:
    """For canonical lines; False wherever it is not certain."""
    if len(base_lines) != len(head_lines):
        return False
    try:
        return _Walk(list(base_lines), list(head_lines)).agrees()
    except _RefusedError:
        return False


class _Walk:
    def __init__(self, base: list[str], head: list[str]) -> None:
        kernels = sum(line.startswith(".amdhsa_kernel ") for line in base)
        functions = sum(line.startswith(".type ") and "@function" in line for line in base)
        if kernels != 1 or functions != 1:
            raise _RefusedError
        self._lines = base
        self._code: dict[int, tuple[_Instruction, _Instruction]] = {}
        metadata = base.index(_METADATA) if _METADATA in base else len(base)
        for index, (left, right) in enumerate(zip(base, head, strict=True)):
            if index >= metadata or _INERT.fullmatch(left):
                if left != right:
                    raise _RefusedError
            elif _skeleton(left) != _skeleton(right):
                raise _RefusedError
            else:
                self._code[index] = _parse(left), _parse(right)
        self._labels = {line[:-1]: index for index, line in enumerate(base) if line.endswith(":")}
        self._lines_left = MAX_VISITS * len(base)

    def agrees(self) -> bool:
        """Repeat until nothing that holds at the beginning of a block is lost any more."""
        starts: dict[int, _State] = {0: self._beginning()}
        waiting = [0]
        if any(map(_PRELOAD.match, self._lines)):  # such a kernel has a second entry, behind a jump
            jump = next((match for match in map(_BRANCH.match, self._lines) if match), None)
            if not jump:
                raise _RefusedError
            starts[self._target(jump)] = self._beginning()
            waiting.append(self._target(jump))
        while waiting:
            index = waiting.pop()
            for following, state in self._run(index, starts[index].copy()):
                known = starts.get(following)
                merged = _meet(known, state, following) if known else state
                if merged != known:
                    starts[following] = merged
                    waiting.append(following)
        return True

    def _beginning(self) -> _State:
        registers = {
            register
            for pair in self._code.values()
            for instruction in pair
            for register in (*instruction.writes, *instruction.reads)
        }
        return _State(
            related={register: (register, ()) for register in registers},
            reverse={register: register for register in registers},
            scope=(),
            saved={},
        )

    def _run(self, index: int, state: _State) -> list[tuple[int, _State]]:
        """To the next label or branch; where it goes on, with what holds there."""
        first = index
        self._lines_left -= len(state.related) // _REGISTERS_A_LINE
        while index < len(self._lines):
            line = self._lines[index]
            self._lines_left -= 1
            if self._lines_left < 0:
                raise _RefusedError
            if index > first and line.endswith(":") and line[:-1] in self._labels:
                return [(index, state)]
            if _DATA.match(line):
                break
            if index in self._code:
                self._step(index, state)
                if line.startswith("s_endpgm"):
                    return []
                branch = _BRANCH.fullmatch(line)
                if branch:
                    onward = [] if line.startswith("s_branch ") else [(index + 1, state.copy())]
                    return [(self._target(branch), state), *onward]
            index += 1
        raise _RefusedError  # runs into what is no code

    def _target(self, branch: re.Match[str]) -> int:
        if branch.group(1) not in self._labels:
            raise _RefusedError
        return self._labels[branch.group(1)]

    def _step(self, index: int, state: _State) -> None:
        base, head = self._code[index]
        for left, right in zip(base.reads, head.reads, strict=True):
            if state.related.get(left, (None, ()))[0] != right:
                raise _RefusedError
        if state.scope and _ACROSS_LANES.match(base.name):
            raise _RefusedError
        line = self._lines[index]
        restored = _RESTORE.match(line)
        if restored:
            scope = state.saved.get(int(restored.group(1)))
            if scope is None or state.scope[: len(scope)] != scope:
                raise _RefusedError
            state.close(scope)
        for register in base.writes:
            if register[0] == "s":
                state.saved.pop(register[1], None)
                state.saved.pop(register[1] - 1, None)
        for left, right in zip(base.writes, head.writes, strict=True):
            state.relate(left, right)
        save = _SAVE.match(line)
        if save:
            state.saved[int(save.group(1))] = state.scope
            state.scope = (*state.scope, index)


def _skeleton(line: str) -> str:
    def shape(match: re.Match[str]) -> str:
        kind, _, first, last = match.groups()
        return f"{kind}#{int(last) - int(first) + 1}" if first else f"{kind}#"

    return _REGISTER.sub(shape, line)


def _parse(line: str) -> _Instruction:
    name, _, rest = line.partition(" ")
    operands = [_registers(operand) for operand in rest.split(", ")] if rest else []
    results = _results(name, rest, line)
    writes = tuple(chain.from_iterable(operands[:results]))
    if len(set(writes)) != len(writes):
        raise _RefusedError
    reads = list(chain.from_iterable(operands[results:]))
    if _KEEPS_A_PART.match(name):
        reads += writes
    return _Instruction(name=name, writes=writes, reads=tuple(reads))


def _results(name: str, rest: str, line: str) -> int:
    """How many of the first operands an instruction writes."""
    if _READS_ONLY.fullmatch(name):
        return 0
    if rest.startswith("exec") or "saveexec" in name:
        if _RESTORE.match(line) or _SAVE.match(line):
            return 1
        raise _RefusedError
    if _LOAD.fullmatch(name) and not re.search(r"\btfe\b", rest):
        return 0 if re.search(r"(?:\b|_)lds(?:\b|_)", line) else 1
    if _VECTOR.fullmatch(name) and "cmpx" not in name:
        return 2 if _TWO_RESULTS.match(name) else 1
    if _SCALAR.fullmatch(name):
        return 1
    raise _RefusedError


def _registers(operand: str) -> list[Register]:
    found: list[Register] = []
    for kind, single, first, last in _REGISTER.findall(operand):
        numbers = range(int(single), int(single) + 1) if single else range(int(first), int(last) + 1)
        if len(numbers) > 64:
            raise _RefusedError
        found += [(kind, number) for number in numbers]
    if len(_UNNUMBERED.findall(operand)) != len(_REGISTER.findall(operand)):
        raise _RefusedError
    return found


def _meet(one: _State, other: _State, index: int) -> _State:
    """What holds on both of two ways that meet at a line.

    Where they come from different scopes, what is active now is a part of the scope they share: an inner
    scope of its own, named by the line.
    """
    shared = scope = one.scope
    if scope != other.scope:
        shared = tuple(
            mine
            for mine, _ in takewhile(lambda pair: pair[0] == pair[1], zip(scope, other.scope, strict=False))
        )
        scope = (*shared, -1 - index)
    related: dict[Register, tuple[Register, Scope]] = {}
    for base, (head, inner) in one.related.items():
        found = other.related.get(base)
        if found and found[0] == head:
            deeper = max(inner, found[1], key=len)
            related[base] = head, deeper if len(deeper) <= len(shared) else scope
    return _State(
        related=related,
        reverse={head: base for base, (head, _) in related.items()},
        scope=scope,
        saved={
            pair: outer
            for pair, outer in one.saved.items()
            if other.saved.get(pair) == outer and len(outer) <= len(shared)
        },
    )
