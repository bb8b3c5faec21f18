"""Reads canonical AMD assembly as blocks of instructions of 32-bit registers. Pure.

A vector instruction writes in the lanes whose bits are set in `exec`. `s_waitcnt` is no effect: `waits` says
for each operand whether it has arrived when it is read. A text with calls is not read, because it is not
known what they do. Suffixes that name only an encoding (`_e32`, `_e64`) are dropped. Source: AMD Instinct
MI300 ISA.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from irdiff.ir.amdgcn import wait_states, waits
from irdiff.ir.amdgcn.opcodes import READS_RESULT, TWO_RESULTS
from irdiff.ir.body import JUMP, Body
from irdiff.ir.program import (
    CACHE_POLICY,
    COPY,
    Act,
    CodeBlock,
    Effect,
    Function,
    Instruction,
    Line,
    Operand,
    Operation,
    Program,
    ReadError,
    Slot,
    Template,
    Verbatim,
    instruction,
)
from irdiff.ir.ptx.operands import split

_REGISTER = re.compile(r"\b([vsa](?:\d+\b|\[\d+:\d+\]))")
_LABEL = re.compile(r"([.\w$]+):$")
_RANGE = re.compile(r"([vsa]|ttmp)\[(\d+):(\d+)\]$")
_SINGLE = re.compile(r"(?:[vsa]\d+|vcc|vcc_lo|vcc_hi|exec|exec_lo|exec_hi|m0|scc|ttmp\d+|flat_scratch\w*)$")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)$")
_MODIFIER = re.compile(
    r"[a-z_0-9]+:\[[^\]]*\]|[a-z_0-9]+:\S+|[a-z]\w*\([^)]*\)|(?:sc[01]|nt|glc|slc|dlc|lds|clamp|offen|idxen"
    r"|gds|tfe"
    r"|bound_ctrl|high|off)\b"
)
_OFFSET = re.compile(r"offset:(-?\w+)")
_HINT = "nt"
"""Says which caches keep what is accessed (MI300 ISA, "Memory Scopes and Temporal Hints")."""
_BYTES = {
    name: size
    for size, names in (
        (1, "ubyte sbyte byte u8 i8 b8"), (2, "ushort sshort short u16 i16 b16"), (4, "dword b32"),
        (8, "dwordx2 b64"), (12, "dwordx3 b96"), (16, "dwordx4 b128"),
    )
    for name in names.split()
}  # fmt: skip
_ACCESS = re.compile(
    r"(global|flat|scratch|buffer|ds)_(load|store|atomic|read|write|add|sub|inc|dec|min|max|and|or|xor"
    r"|cmpst|cmpswap|wrxchg"
    r"|pk_add)(\w*)"
)
_TWO = re.compile(r"ds_(?:read|write)2(st64)?_b(32|64)$")
_SEVERAL = re.compile(r"(?:global|buffer|scratch|ds)_(?:load|store|read|write)_(dwordx[234]|b64|b96|b128)$")
_SPACES = {"ds": "shared", "scratch": "local", "flat": "", "global": "global", "buffer": "global"}
_SCALAR_LOAD = re.compile(r"s_(buffer_)?load_(?:dword(?:x(\d+))?|b(\d+)|([ui]\d+))$")
_LANES = re.compile(r"ds_(?:b?permute|swizzle)|v_permlane|v_readlane|v_readfirstlane|\w+_dpp")
_IGNORED = re.compile(r"s_(?:setprio|inst_prefetch|clause|code_end|sethalt 0)")
_SYNC = re.compile(
    r"s_(?:barrier|sleep|sendmsg|setreg|round_mode|denorm_mode|dcache|icache|trap|setvskip|set_gpr)|buffer_(?:wbl2|inv|gl\w+)"
    r"|global_(?:wb|inv)"
)
_MODES = re.compile(r"s_(?:setreg|round_mode|denorm_mode)")
_UNSAFE = re.compile(
    r"s_(?:store|atomic|buffer_(?:store|atomic)|mem(?:real)?time|getreg|wait|scratch)|s_\w+_wrexec|v_(?:interp|movrel)"
)
_READS_SCC = re.compile(r"s_(?:addc|subb|cmov)")
_WRITES_SCC = re.compile(
    r"s_(?:add[ck]?|subb?|and|or|xor|andn2|orn2|nand|nor|xnor|not|lshl\d?|lshr|ashr|bfe|abs|min|max|bcnt\w?"
    r"|quadmask|wqm|absdiff"
    r"|cmp\w*|bitcmp\w*)_"
)
_FLOAT = re.compile(
    r"v_.*(?:_(?:pk_|legacy_)?(?:bf?16|f16|f32|f64|f8|bf8|fp8)|mfma|dot|xf32)|(?:\w+_atomic|ds)_.*_b?f\d"
)
_COMMUTES = re.compile(
    r"v_(?:pk_)?(?:add|mul|fma|max|min)_f|v_(?:mul_hi|mul_u32|mul_i32|max_[ui]|min_[ui]|mad_u64)|s_mul_hi"
    r"|s_m(?:in|ax)_"
)
_SINGLES = re.compile(r"v_(pk_)?(add|sub|subrev|mul|fma|fmac|fma[am]k)_f32$")
_ONES = Verbatim("1.0"), Verbatim("-1.0")
_TAKEN = re.compile(r"(-?)(sext|abs|neg)\((\S+)\)$")
_NAMES_REGISTER = re.compile(r"(?<![\w.$@])[vsa](?:\d+|\[\d+:\d+\])(?!\w)")
_PACKED = re.compile(r"(op_sel|op_sel_hi|neg_lo|neg_hi):\[([01,]+)\]$")
_SELECTION = re.compile(r"(?:src([01])|dst)_sel:(?:(BYTE|WORD)_([0-3])|DWORD)$")
_WIDE = re.compile(r"_b64|_u64|_i64|v_(?:add|mul|fmac?|max|min)_f64|cndmask|addc|subb|saveexec")
_COMPARISON = re.compile(r"[vs]_cmp(?:k)?_(eq|lg|ne|lt|le|gt|ge)_([iu])(32|64|16)$")
_SHORT_LITERAL = re.compile(r"s_movk_i32$|s_cmpk_\w+_i32$")
"""Instructions whose literals have 16 bits and a sign (MI300 ISA, "SOPK Instructions")."""
_LEAST_INLINE = -16
"""Smaller numbers are written without a sign."""
_STEPS = """
v_add_u32 s_add_i32 s_add_u32: add 32 0 1; v_sub_u32 s_sub_i32 s_sub_u32: sub 32 0 1
v_subrev_u32: sub 32 1 0; v_mul_lo_u32 s_mul_i32: mul 32 0 1
v_lshlrev_b32: shl 32 1 0; s_lshl_b32: shl 32 0 1; v_lshrrev_b32: shr 32 1 0; s_lshr_b32: shr 32 0 1
v_ashrrev_i32: sar 32 1 0; s_ashr_i32: sar 32 0 1; v_lshlrev_b64: shl 64 1 0; s_lshl_b64: shl 64 0 1
v_and_b32 s_and_b32: and 32 0 1; v_or_b32 s_or_b32: or 32 0 1; v_xor_b32 s_xor_b32: xor 32 0 1
s_and_b64: and 64 0 1; s_or_b64: or 64 0 1; s_xor_b64: xor 64 0 1
v_not_b32 s_not_b32: not 32 0; s_not_b64: not 64 0
s_andn2_b32: not 32 1, and 32 0 -1; s_andn2_b64: not 64 1, and 64 0 -1
v_mov_b32 s_mov_b32 s_movk_i32 v_accvgpr_write_b32 v_accvgpr_read_b32 v_accvgpr_mov_b32: copy 0 0
s_mov_b64 v_mov_b64: copy 0 0; v_add3_u32: add 32 0 1, add 32 -1 2; v_or3_b32: or 32 0 1, or 32 -1 2
v_lshl_add_u32: shl 32 0 1, add 32 -1 2; v_lshl_add_u64: shl 64 0 1, add 64 -1 2
v_lshl_or_b32: shl 32 0 1, or 32 -1 2; v_and_or_b32: and 32 0 1, or 32 -1 2
v_bfe_u32 s_bfe_u32: field 32 0 1 2; v_xad_u32: xor 32 0 1, add 32 -1 2
v_add_lshl_u32: add 32 0 1, shl 32 -1 2
"""
"""The functions of `Values` that an instruction computes, one after another: name, width, numbers of the
sources. -1 is the last result.
"""
_COMPUTED = {
    name: [(step.split()[0], *map(int, step.split()[1:])) for step in steps.split(",")]
    for rule in re.split(r"[;\n]", _STEPS.strip())
    for names, _, steps in [rule.partition(":")]
    for name in names.split()
}
_PAIR = "pack", 0
_FIELD = re.compile(r"0x[0-9a-f]+$|\d+$")
_SAME_VALUE = {"v_rcp_iflag_f32": "v_rcp_f32"}
"""Instructions that return the same value. They differ only in the exceptions that they raise, and no kernel
of Triton enables these. Source: AMD Instinct MI300 ISA, V_RCP_IFLAG_F32.
"""
_THREADS = ".max_flat_workgroup_size:"
_COUNTS = re.compile(
    r"\.?(?:amdhsa_next_free|amdhsa_accum_offset|amdhsa_reserve|set |size |\w+_count:|[sva]gpr)"
    r"|(?:- )?\.[sva]gpr\w*:|\.p2align|\.uniform_work_group_size:"
)
"""Declarations that are not compared: numbers of registers, which depend on their assignment; and that a
launch has only whole blocks, as each launch of Triton has (LLVM, "User Guide for AMDGPU Backend",
"uniform_work_group_size").
"""


def read(lines: Sequence[str]) -> Program:
    """Leaves out each `s_nop` whose purpose `wait_states` knows. Raises ReadError."""
    functions: dict[str, Function] = {}
    declarations: list[str] = []
    explained = wait_states.explained(lines)
    unknown: list[str] = []
    name, body = "", Body()
    symbols = {match.group(1) for line in lines if (match := re.match(r"\.type ([\w.$]+),@function", line))}
    for number, code in enumerate(lines, 1):
        label, body.line = _LABEL.match(code), number
        if label and label.group(1) in symbols:
            name, body = label.group(1), Body()
            if f".amdhsa_kernel {name}" in lines:
                body.now.append(instruction("workitem.id.x", ("v0",)))  # Triton's blocks have one dimension
        elif not name or (code.startswith(".") and not label):
            if name and code.startswith((".section", ".size", ".amdhsa", ".amdgpu")):
                body.end("falls through", None, (), "")
                blocks = _without_loads_of_arguments(body.blocks, _pointer_to_arguments(lines, name))
                functions[name] = Function(_under_modes(blocks), frozenset(), ())
                name = ""
            declarations.append(code)
        elif label:
            body.end(JUMP, None, (label.group(1),), label.group(1))
        elif code and number not in explained:
            read_line = _line(code)
            unknown += read_line.unknown
            body.add(read_line.instructions)
            declarations += [CACHE_POLICY + hint for hint in read_line.hints]
            if read_line.exit:
                body.leave(*read_line.exit)
    if name or not functions:
        raise ReadError("no function of AMD assembly that ends")
    kept = sorted(code for code in declarations if code and not _COUNTS.match(code))
    threads = max((int(code.split()[-1]) for code in kept if code.startswith(_THREADS)), default=0)
    return Program(functions, tuple(kept), threads, tuple(unknown), wait_states.closest(lines))


def _pointer_to_arguments(lines: Sequence[str], kernel: str) -> tuple[str, ...]:
    """Returns the registers that hold the address of a kernel's arguments when it begins; empty if none do.

    Source: LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
    """
    begin = next((n for n, line in enumerate(lines) if line == f".amdhsa_kernel {kernel}"), len(lines))
    own = itertools.takewhile(lambda line: line != ".end_amdhsa_kernel", lines[begin:])
    settings = dict(each.split()[:2] for each in own if each.startswith(".amdhsa_user_sgpr_"))
    first = sum(
        count
        for name, count in (("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2))
        if settings.get(f".amdhsa_user_sgpr_{name}", "0") != "0"
    )
    has_pointer = settings.get(".amdhsa_user_sgpr_kernarg_segment_ptr") == "1"
    return (f"s{first}", f"s{first + 1}") if has_pointer else ()


def _without_loads_of_arguments(blocks: Sequence[CodeBlock], pointer: tuple[str, ...]) -> Sequence[CodeBlock]:
    """Turns loads of the kernel's arguments into values: while the kernel runs, nothing writes its arguments.

    Leaves a load as it is if one of the two registers of the pointer may have been written before it.
    """
    if not pointer:
        return blocks
    by_label = {block.label: block for block in blocks}
    waiting = [target for block in blocks if _writes(block.instructions, pointer) for target in block.targets]
    overwritten = set[str]()
    while waiting:
        label = waiting.pop()
        if label not in overwritten:
            overwritten.add(label)
            waiting += by_label[label].targets if label in by_label else ()
    return [
        block
        if block.label in overwritten
        else block._replace(instructions=tuple(_with_arguments(block.instructions, pointer)))
        for block in blocks
    ]


def _writes(instructions: Sequence[Instruction], registers: tuple[str, ...]) -> bool:
    return any(not set(registers).isdisjoint(each.results) for each in instructions)


def _with_arguments(instructions: Sequence[Instruction], pointer: tuple[str, ...]) -> Iterator[Instruction]:
    is_there, copies = True, set[str]()
    for each in instructions:
        operation, effect = each.operation, each.operation.effect
        is_copy = operation.compute in (_PAIR, COPY) and (
            (is_there and each.reads == pointer) or (each.reads[:1] != () and each.reads[0] in copies)
        )
        if effect and _SCALAR_LOAD.match(operation.name) and each.reads and each.reads[0] in copies:
            places = [part for part, _ in effect.address if not isinstance(part, str)]
            operation = replace(operation, effect=None, operands=(*places, effect.address[-1][1]))
        yield each._replace(operation=operation)
        is_there = is_there and not _writes([each], pointer)
        copies = copies | {*each.results} if is_copy else copies - {*each.results}


def _under_modes(blocks: Sequence[CodeBlock]) -> tuple[CodeBlock, ...]:
    """If a text sets modes, makes floating-point operations read them: they decide how these round."""
    if not any(_MODES.match(each.operation.name) for block in blocks for each in block.instructions):
        return tuple(blocks)
    changed: dict[Operation, Operation] = {}

    def under(each: Instruction) -> tuple[Instruction, ...]:
        operation = each.operation
        if _MODES.match(operation.name):
            return each, instruction(f"mode of {operation.name}", ("mode",), ("mode", *each.reads))
        if not operation.is_float or operation.effect or operation.compute:
            return (each,)
        operands = *operation.operands, Slot(len(each.reads))
        changed[operation] = changed.get(operation) or replace(operation, operands=operands)
        return (Instruction(changed[operation], each.results, (*each.reads, "mode"), each.line),)

    return tuple(
        block._replace(
            instructions=tuple(instruction for each in block.instructions for instruction in under(each))
        )
        for block in blocks
    )


@functools.lru_cache(maxsize=1 << 15)
def _line(code: str) -> Line:
    parts = _REGISTER.split(code)
    texts, registers_of_parts = parts[::2], [_registers(part) for part in parts[1::2]]
    template = _template(
        tuple(texts), tuple([(registers[0][0], len(registers)) for registers in registers_of_parts])
    )
    return template.named(itertools.chain.from_iterable(registers_of_parts))


@functools.lru_cache(maxsize=1 << 14)
def _template(texts: tuple[str, ...], registers: tuple[tuple[str, int], ...]) -> Template:
    """Reads a line whose registers are numbered from 0. registers: (kind, how many registers) of each
    operand.
    """
    code, names = texts[0], list[str]()
    for (kind, count), text in zip(registers, texts[1:], strict=True):
        first, last = len(names), len(names) + count - 1
        code += f"{kind}{first}{text}" if first == last else f"{kind}[{first}:{last}]{text}"
        names += [f"{kind}{number}" for number in range(first, last + 1)]
    read_line = _Reader(code)
    instructions, unknown = tuple(read_line.instructions), tuple(read_line.unknown)
    return Template(Line(instructions, unknown, read_line.exit, tuple(read_line.hints)), names)


class _Reader:
    """Reads the instructions of one line. The next line uses the same names for its intermediate results."""

    def __init__(self, code: str) -> None:
        self.unknown: list[str] = []
        self.instructions: list[Instruction] = []
        self.hints: list[str] = []
        self.exit: tuple[str, str | None, str, bool] | None = None
        """The arguments of `Body.leave`."""
        self._names = 0
        self._selected: dict[str, str] = {}
        """The values of operands that are a byte or a half of a register."""
        self._read(code)

    def _new(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def _add(
        self, name: str, results: tuple[str, ...], operands: Sequence[Operand],
        compute: tuple[str, int] | None = None, *, masked: bool = False, effect: Effect | None = None,
        commutes: bool = False,
    ) -> None:  # fmt: skip
        """Writes registers. If the result is one value of 64 bits, writes its two halves."""
        is_float, is_pair = bool(_FLOAT.match(name)), compute is not None and len(results) == 2
        whole = (self._new(),) if is_pair else results
        self.instructions.append(
            instruction(name, whole, operands, compute, effect=effect, commutes=commutes,
                        masked=masked and not is_pair, is_float=is_float)
        )  # fmt: skip
        for place, register in enumerate(results if is_pair else ()):
            self.instructions.append(instruction("half", (register,), whole, ("half", place), masked=masked))

    def _source(self, text: str) -> Operand:
        """Returns one operand; a pair of registers is one value of 64 bits."""
        if text in self._selected:
            return self._selected[text]
        registers = _registers(text)
        if len(registers) == 2:
            whole = self._new()
            self.instructions.append(instruction("pair", (whole,), registers, _PAIR))
            return whole
        if len(registers) > 2:
            raise ReadError(f"AMDGCN: {text} as one operand")
        return registers[0] if registers else _literal(text)

    def _values(self, parts: Sequence[str]) -> list[Operand]:
        """Returns all registers and literals; a pair of registers is one value."""
        operands: list[Operand] = []
        for part in parts:
            registers = _registers(part)
            operands += registers if len(registers) > 2 else [self._source(part)] if part != "off" else []
        return operands

    def _read(self, code: str) -> None:
        opcode, _, rest = code.partition(" ")
        name = re.sub(r"_e(?:32|64)$", "", opcode)
        name = _SAME_VALUE.get(name, name)
        if wait := waits.name_of(opcode, rest):
            self._add(wait, (), ())
        elif opcode == "s_nop":
            self._add(code, (), (), effect=Effect(Act.STATES))
        elif opcode.startswith(("s_branch", "s_cbranch", "s_endpgm")):
            self._jump(opcode, rest.strip())
        elif opcode.startswith(("s_swappc", "s_call", "s_rfe")):
            raise ReadError("AMDGCN: a call")
        elif opcode.startswith("s_setpc"):  # a return, or a branch to a label that is far away
            raise ReadError("AMDGCN: a jump to an address that is computed")
        elif not _IGNORED.match(code):
            modifiers, parts = _parsed(rest)
            if _SYNC.match(opcode):
                words = " ".join([opcode, *modifiers, *(part for part in parts if not _registers(part))])
                read = self._values([part for part in parts if _registers(part)])
                read += ["m0"] * opcode.startswith("s_sendmsg")
                self._add(words, (), read, effect=Effect(Act.SYNC))
            elif _ACCESS.match(opcode) and not _LANES.match(opcode):
                self._access(opcode, parts, modifiers)
            elif name.endswith("_sdwa"):
                self._of_parts(name, parts, modifiers)
            elif scalar := _SCALAR_LOAD.match(opcode):
                self._scalar_load(scalar, parts, modifiers)
            else:
                self._compute(name, parts, modifiers)

    def _compute(self, name: str, parts: list[str], modifiers: tuple[str, ...]) -> None:
        parts = _with_literals_as_read(name, parts)
        changes = [_change(part) for part in parts]
        is_plain = not modifiers and not any(changes)
        comparison = _COMPARISON.match(name) if is_plain else None
        if name in _COMPUTED and is_plain and (name != "s_bfe_u32" or len(parts) > 3):
            self._steps(name, parts, _COMPUTED[name])
        elif comparison and len(parts) == 2 + name.startswith("v_"):
            order, sign, width = comparison.groups()
            order = "ne" if order == "lg" else order
            kind = order if order in ("eq", "ne") else f"{'s' if sign == 'i' else 'u'}{order}"
            operands = [self._source(part) for part in parts[-2:]]
            if name.startswith("s_"):
                self._add(name, ("scc",), operands, (kind, int(width)))
            else:  # a lane that is off has 0
                truth = self._new()
                self._add(name, (truth,), operands, (kind, int(width)))
                self._add("lanes of", _registers(parts[0]), (truth, "exec"), ("mask", 0))
        elif name.startswith("s_cselect") and is_plain:
            one, other = (self._source(part) for part in parts[1:])
            self._add(name, _registers(parts[0]), ("scc", one, other), ("select", 0))
        elif name == "v_cndmask_b32" and is_plain:
            mask = self._source(parts[3])
            one, other = (self._source(part) for part in parts[1:3])
            self._add(name, _registers(parts[0]), (mask, other, one), ("select", 0), masked=True)
        elif (single := _SINGLES.match(name)) and not (single[1] or modifiers):
            self._single(single[2], _registers(parts[0])[0], parts[1:], masked=True)
        elif single and single[1] and (halves := _halves(parts[1:], modifiers)):
            results = [self._new() for _ in halves]
            for result, half in zip(results, halves, strict=True):
                self._single(single[2], result, half, masked=False)
            for register, result in zip(_registers(parts[0]), results, strict=True):
                self._add("mov", (register,), (result,), COPY, masked=True)
        else:
            self._plain(name, parts, modifiers, changes)

    def _of_parts(self, name: str, parts: list[str], modifiers: tuple[str, ...]) -> None:
        """Reads an instruction on bytes and halves of registers as a plain one on fields, extended with zeros
        (MI300 ISA, "SDWA"), if it works on integers and writes zeros around its result.
        """
        plain = name.removesuffix("_sdwa")
        matches = [_SELECTION.match(each) for each in modifiers if each != "dst_unused:UNUSED_PAD"]
        selections = [match.groups() for match in matches if match]
        steps = list(_COMPUTED.get(plain, ()))
        places = {n: max(len(parts) - 2, 1) + int(n) for n, unit, _ in selections if unit and n}
        is_whole = all(len(_registers(parts[place])) == 1 for place in places.values())
        is_known = is_whole and not any(map(_change, parts)) and bool(steps or _COMPARISON.match(plain))
        if len(selections) < len(matches) or not is_known:
            self._compute(name, parts, modifiers)
            return
        selected = list(parts)
        for source, unit, which in selections:
            if not unit:
                continue
            width = 8 if unit == "BYTE" else 16
            if not source:
                count = len(parts) - 1
                selected += ["0", str(width), str(width * int(which))]
                steps += [("field", 32, -1, count, count + 1), ("shl", 32, -1, count + 2)]
                continue
            place = places[source]
            selected[place] += f" {unit}_{which}"
            self._selected[selected[place]] = field = self._new()
            self._add("field", (field,), (parts[place], width * int(which), width), ("field", 32))
        if steps:
            self._steps(plain, selected, steps)
        else:
            self._compute(plain, selected, ())

    def _single(self, word: str, result: str, texts: Sequence[str], *, masked: bool) -> None:
        """Reads a sum or product of 32-bit floats. Signs of operands become part of the name: a sum with one
        negative operand is `v_sub_f32`.
        """
        first, second, *added = map(self._signed, texts)
        added += [(result, False)] * (word == "fmac")
        if added:
            for one, other in ((first, second), (second, first)):
                if one[0] in _ONES:  # the product is exact, so it is a sum
                    sign = (other[1] != one[1]) != (one[0] == _ONES[1])
                    self._sum((other[0], sign), added[0], result, masked=masked)
                    return
        if word in ("add", "sub", "subrev"):
            first = first[0], first[1] != (word == "subrev")
            second = second[0], second[1] != (word == "sub")
            self._sum(first, second, result, masked=masked)
            return
        signs = [first[1] != second[1], *(sign for _, sign in added)]  # the product's, and what is added
        name = " ".join([f"v_{word[:3]}_f32", *itertools.compress(("1-", "3-"), signs)])
        operands = [first[0], second[0], *(value for value, _ in added)]
        self._add(name, (result,), operands, masked=masked, commutes=True)

    def _sum(
        self, one: tuple[Operand, bool], other: tuple[Operand, bool], result: str, *, masked: bool
    ) -> None:
        if one[1] and not other[1]:
            one, other = other, one
        word = "sub" if one[1] != other[1] else "add"
        name = f"v_{word}_f32{' 1-' * (one[1] and other[1])}"
        self._add(name, (result,), [one[0], other[0]], masked=masked, commutes=word != "sub")

    def _signed(self, text: str) -> tuple[Operand, bool]:
        """Returns a floating-point operand, and whether it is negated."""
        sign = text[0] == "-" and not _NUMBER.match(text)
        value = self._source(text[sign:].strip("|"))
        if "|" in text:  # the size of a float is what it is without the highest bit
            self._add("size", (size := self._new(),), (value, 0x7FFFFFFF), ("and", 32))
            value = size
        return value, sign

    def _steps(self, name: str, parts: Sequence[str], steps: Sequence[tuple[Any, ...]]) -> None:
        sources = [self._source(part) for part in parts[1:]]
        last: Operand = ""
        for number, (function, width, *which) in enumerate(steps):
            operands = [last if place < 0 else sources[place] for place in which]
            if number < len(steps) - 1:
                last = self._new()
                self._add(name, (last,), operands, (function, width))
            else:
                is_vector = name.startswith("v_")
                self._add(name, _registers(parts[0]), operands, (function, width), masked=is_vector)
        if _WRITES_SCC.match(name):
            if "_add_" in name or "_sub_" in name:
                self._add(f"carry of {name}", ("scc",), sources)
            else:
                self._compare("ne", "scc", self._source(parts[0]), 64 if name.endswith("64") else 32)

    def _compare(self, order: str, result: str, operand: Operand, width: int) -> None:
        """Compares with zero."""
        name = "not zero" if order == "ne" else "is zero"
        self._add(name, (result,), (operand, 0), (order, width))

    def _plain(self, name: str, parts: list[str], modifiers: tuple[str, ...], changes: list[str]) -> None:
        """Reads an instruction without rules of its own: the registers that it writes come first."""
        if not re.match(r"[vs]_[a-z]|ds_(?:b?permute|swizzle)", name) or _UNSAFE.match(name):
            self.unknown.append(name)
            self._add(" ".join([name, *modifiers]), (), self._values(parts), effect=Effect(Act.OPAQUE))
            return
        if saved := re.match(r"s_(\w+?)_saveexec_b64", name):
            mask, before = self._source(parts[1]), self._new()
            self._add("mov", (before,), ("exec",), ("copy", 0))
            compute = (saved.group(1), 64) if saved.group(1) in ("and", "or", "xor") else None
            self._add(name, ("exec",), (mask, before), compute)
            self._add("mov", _registers(parts[0]), (before,), ("copy", 0))
            self._compare("ne", "scc", "exec", 64)
            return
        count = 0 if name.startswith(("s_cmp", "s_bitcmp")) else 2 if TWO_RESULTS.match(name) else 1
        written, read_parts = parts[:count], list(parts if "_swap" in name else parts[count:])
        is_partial = any(each.startswith(("op_sel:", "dst_unused")) for each in modifiers)
        read_parts += written if is_partial or READS_RESULT.search(name) else []
        operands: list[Operand] = []
        for part in (_unchanged(part) if _change(part) else part for part in read_parts):
            registers = _registers(part)
            is_pair = len(registers) == 2 and (bool(_WIDE.search(name)) or registers[0][0] == "s")
            is_upper_half = "_f64" in name and part.startswith("0x")  # of a double, whose lower half is 0
            if is_upper_half:
                operands.append(Verbatim(part))
            else:
                operands += [self._source(part)] if is_pair or len(registers) < 2 else registers
        fused = re.sub(r"v_fma(?:c|[am]k)_(?=f\d+$)", "v_fma_", name)
        operands += [self._source("vcc")] if "div_fmas" in name else []
        operands += ["exec"] if _LANES.match(name) or re.search("v_cmp|mbcnt", name) else []
        operands += ["scc"] if _READS_SCC.match(name) else []
        full = " ".join([fused, *(f"{n}{each}" for n, each in enumerate(changes) if each), *modifiers])
        is_of_exec = name.startswith("v_cmpx")
        results = ("exec",) if is_of_exec else tuple(r for part in written for r in _registers(part))
        is_whole = len(operands) == len(read_parts) > 1  # halves of one operand do not change places
        commutes = not modifiers and not any(changes) and is_whole and bool(_COMMUTES.match(fused))
        masked = bool(re.match(r"ds_|v_(?!cmp|readlane|readfirst|writelane)", name))
        self._add(full, results, operands, masked=masked, commutes=commutes)
        if is_of_exec and len(own := _registers(written[0])) == 2:  # gfx9: it writes its result, too
            self._add("mov", own, ("exec",), COPY)
        if _WRITES_SCC.match(name):
            self._add(f"scc of {full}", ("scc",), operands)

    def _access(self, opcode: str, parts: list[str], modifiers: tuple[str, ...]) -> None:
        offset = next((int(match.group(1), 0) for each in modifiers if (match := _OFFSET.fullmatch(each))), 0)
        kept = [each for each in modifiers if not _OFFSET.fullmatch(each) and each not in ("off", _HINT)]
        self.hints += [_HINT] * (_HINT in modifiers)
        name, opcode_match = " ".join([opcode, *kept]), _ACCESS.match(opcode)
        assert opcode_match is not None
        if "lds" in kept or "lds" in opcode:  # to shared memory, at m0
            self._add(name, (), [*self._values(parts), "m0", offset], effect=Effect(Act.COPY), masked=True)
            return
        kind, verb = opcode_match.group(1), opcode_match.group(2)
        is_load = verb in ("load", "read")
        act = Act.LOAD if is_load else Act.STORE if verb in ("store", "write") else Act.ATOMIC
        returns = is_load or (act is Act.ATOMIC and bool({"sc0", "glc"} & {*kept} or "_rtn" in opcode))
        first, rest = (_registers(parts[0]), parts[1:]) if returns else ((), parts)
        if is_load or (kind == "buffer" and returns):
            data, places = parts[:1] if not is_load or "d16" in opcode else [], rest
        elif kind == "buffer":
            data, places = rest[:1], rest[1:]
        else:  # the address, what is written, and the base
            data, places = (rest[1:], rest[:1]) if kind == "ds" else (rest[1:2], [rest[0], *rest[2:]])
        address = self._values([*places[1:], *places[:1]]) or [0]  # the lane's own part last
        written = [each for part in data for each in _registers(part) or (_literal(part),)]
        if kind != "flat" and act is not Act.ATOMIC and (offsets := _words(opcode, kept, offset)):
            self._in_pieces(act, kind, kept, (first, written), (address, offsets))
            return
        size = re.sub(r"_(?:d16(?:_hi)?|tr_b\d+)$|_rtn$", "", opcode).rpartition("_")[2]
        several = bool(re.search(r"2st64|read2|write2", opcode)) or act is Act.ATOMIC
        self._add(
            name, first, written, masked=True,
            effect=Effect(
                act, _SPACES[kind], (*((each, 0) for each in address[:-1]), (address[-1], offset)),
                0 if several else _BYTES.get(size, 0),
            ),
        )  # fmt: skip

    def _scalar_load(self, opcode: re.Match[str], parts: list[str], modifiers: tuple[str, ...]) -> None:
        """Reads a scalar load as loads of 32 bits each."""
        buffer, several, bits, narrow = opcode.groups()
        registers = _registers(parts[0])
        if len(registers) != (int(several or 1) if not bits else int(bits) // 32):
            raise ReadError(f"AMDGCN: {opcode[0]} to {parts[0]}")
        offset = next((int(match[1], 0) for each in modifiers if (match := _OFFSET.fullmatch(each))), 0)
        places = [_literal(part) for part in parts[2:] if _NUMBER.match(part)]
        offset += sum(place for place in places if isinstance(place, int))
        address = self._values([part for part in parts[1:] if not _NUMBER.match(part)])
        if len(parts) < 3 or len(places) == len(parts) - 2:
            address.append(0)  # what a vector access adds for each lane
        before = [self._new() for _ in address]
        for new, each in zip(before, address, strict=True):  # the first piece may overwrite the address
            self._add("mov", (new,), (each,), COPY)
        kept = [each for each in modifiers if not _OFFSET.fullmatch(each)]
        name = " ".join([f"s_{buffer or ''}load_{narrow or 'dword'}", *kept])
        size = int(narrow[1:]) // 8 if narrow else 4
        for place, register in enumerate(registers):
            whole = (*((each, 0) for each in before[:-1]), (before[-1], offset + 4 * place))
            self._add(name, (register,), (), effect=Effect(Act.LOAD, "global", whole, size))

    def _in_pieces(
        self, act: Act, kind: str, kept: Sequence[str],
        registers: tuple[tuple[str, ...], Sequence[Operand]], place: tuple[Sequence[Operand], Sequence[int]],
    ) -> None:  # fmt: skip
        """Splits an access into accesses of 32 bits, so that it does not matter how many one instruction
        makes.
        """
        (first, written), (address, offsets) = registers, place
        if act is Act.LOAD:  # the first of several loads may overwrite the address
            before = [self._new() for _ in address]
            for new, each in zip(before, address, strict=True):
                self._add("mov", (new,), (each,), COPY)
            address = before
        verb = {"ds": {Act.LOAD: "read_b32", Act.STORE: "write_b32"}}.get(kind, {}).get(act, f"{act}_dword")
        name = " ".join(
            [f"{kind}_{verb}", *(each for each in kept if not each.startswith(("offset0", "offset1")))]
        )
        for n, offset in enumerate(offsets):
            parts = (*((each, 0) for each in address[:-1]), (address[-1], offset))
            effect = Effect(act, _SPACES[kind], parts, 4, 4 * len(offsets) if not n and kind == "ds" else 0)
            self._add(name, first[n : n + 1], written[n : n + 1], masked=True, effect=effect)

    def _jump(self, opcode: str, target: str) -> None:
        kind = opcode.removeprefix("s_cbranch_")
        condition = None if opcode == kind else "scc"
        if kind.startswith(("vcc", "exec")):
            condition = self._new()
            self._compare("eq", condition, self._source(re.sub("n?z$", "", kind)), 64)
        elif condition and not kind.startswith("scc"):
            raise ReadError(f"AMDGCN: {opcode}")
        is_jump = condition is not None or opcode == "s_branch"
        self.exit = (JUMP if is_jump else opcode, condition, target, kind not in ("scc1", "vccz", "execz"))


# words of one line


def _words(opcode: str, modifiers: Sequence[str], offset: int) -> list[int]:
    """Returns the offset of each 32 bits of a wider access; empty for any other instruction."""
    if match := _TWO.match(opcode):
        width = int(match[2]) // 8
        unit = width * (64 if match[1] else 1)
        places = dict(re.findall(r"offset([01]):(\d+)", " ".join(modifiers)))
        begins = [int(places.get(each, 0)) * unit for each in "01"]
        return [begin + word for begin in begins for word in range(0, width, 4)]
    match = _SEVERAL.match(opcode)
    return [offset + word for word in range(0, _BYTES[match[1]], 4)] if match else []


def _with_literals_as_read(name: str, parts: list[str]) -> list[str]:
    """Returns the operands, with a literal replaced by the numbers that the instruction reads from it.

    For example, one literal holds the first bit of a field and the number of its bits (MI300 ISA,
    "S_BFE_U32").
    """
    literal = parts[-1] if parts and _NUMBER.match(parts[-1]) else ""
    if _SHORT_LITERAL.match(name) and literal and int(literal, 0) >> 15 == 1:  # 0xff80 is -128
        value = int(literal, 0) - (1 << 16)
        return [*parts[:-1], str(value if value >= _LEAST_INLINE else value + (1 << 32))]
    if name == "s_bfe_u32" and _FIELD.match(parts[2]):
        field = int(parts[2], 0)
        return [*parts[:2], str(field & 31), str(field >> 16 & 127)]
    return parts


def _halves(sources: Sequence[str], modifiers: tuple[str, ...]) -> list[list[str]]:
    """Returns the operands of the two instructions that a packed one consists of (MI300 ISA, "VOP3P"); empty
    if they are not known.
    """
    matches = [_PACKED.match(each) for each in modifiers]
    chosen, halves = (
        {modifier[1]: modifier[2].split(",") for modifier in matches if modifier},
        list[list[str]](),
    )
    for place, names in enumerate((("op_sel", "neg_lo"), ("op_sel_hi", "neg_hi"))):
        which, signs = (
            chosen.get(name, [str(n)] * len(sources)) for name, n in zip(names, (place, 0), strict=True)
        )
        pairs = [_registers(text) or (text,) for text in sources]
        if not all(matches) or any(int(at) >= len(pair) for pair, at in zip(pairs, which, strict=True)):
            return []  # the upper half of a constant
        if any(text[0] == "-" and int(sign) for text, sign in zip(sources, signs, strict=True)):
            return []
        halves.append(
            ["-" * int(sign) + pair[int(at)] for pair, at, sign in zip(pairs, which, signs, strict=True)]
        )
    return halves


@functools.lru_cache(maxsize=1 << 14)
def _parsed(rest: str) -> tuple[tuple[str, ...], list[str]]:
    """Returns (the modifiers behind the operands, the operands)."""
    last = (split(rest) or [""])[-1]
    first, _, behind = last.partition(" ")
    if _MODIFIER.fullmatch(first) and first != "off" and not _NAMES_REGISTER.search(first):
        behind = last
    words = re.findall(r"[a-z_0-9]+:\[[^\]]*\]|\w+\([^)]*\)|\S+", behind)
    if any(map(_NAMES_REGISTER.search, words)):
        raise ReadError(f"AMDGCN: the modifiers {behind}")
    rest = rest[: len(rest) - len(behind)].rstrip() if behind else rest
    return tuple(words), [part for part in split(rest.rstrip(", ")) if part]


def _change(text: str) -> str:
    """Returns how an operand is negated, extended or made positive; empty for a register or a number as it
    is.
    """
    if match := _TAKEN.match(text):
        return match[1] + match[2]
    if text[0] not in "-|" or _NUMBER.match(text):
        return ""
    return "-" * (text[0] == "-") + "|" * ("|" in text)


def _unchanged(text: str) -> str:
    """Returns the operand without what `_change` returns."""
    return match[3] if (match := _TAKEN.match(text)) else text.strip("-|")


@functools.lru_cache(maxsize=1 << 12)
def _registers(text: str) -> tuple[str, ...]:
    if match := _RANGE.match(text):
        return tuple(f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1))
    if text in ("exec_lo", "exec_hi"):
        raise ReadError(f"AMDGCN: {text}")
    return ("vcc_lo", "vcc_hi") if text == "vcc" else (text,) if _SINGLE.match(text) else ()


def _literal(text: str) -> Operand:
    if _NAMES_REGISTER.search(text):
        raise ReadError(f"AMDGCN: the operand {text}")
    return int(text, 0) if _NUMBER.match(text) else Verbatim(text)
