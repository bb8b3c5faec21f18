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
from collections.abc import Sequence
from typing import Any

from irdiff.ir.amdgcn import wait_states, waits
from irdiff.ir.amdgcn.computed import COMPUTED, PAIR, SAME_VALUE
from irdiff.ir.amdgcn.kernel_code import pointer_to_arguments, under_modes, without_loads_of_arguments
from irdiff.ir.amdgcn.opcodes import READS_RESULT, TWO_RESULTS
from irdiff.ir.amdgcn.operand_texts import (
    BYTES,
    HALVES_OF_EXEC,
    NAMES,
    NUMBER,
    SCALAR_LOAD,
    as_register,
    change_of,
    halves_of,
    literal_of,
    parts_of,
    registers_of,
    unchanged,
    with_literals_as_read,
    word_offsets,
)
from irdiff.ir.body import JUMP, Body
from irdiff.ir.program import (
    CACHE_POLICY,
    COPY,
    Act,
    Effect,
    Function,
    Instruction,
    Line,
    Operand,
    Program,
    ReadError,
    Template,
    Verbatim,
    instruction,
)

_REGISTER = re.compile(f"({NAMES.pattern})")
_LABEL = re.compile(r"([.\w$]+):$")
_OFFSET = re.compile(r"offset:(-?\w+)")
_HINT = "nt"
"""Says which caches keep what is accessed (MI300 ISA, "Memory Scopes and Temporal Hints")."""
_ACCESS = re.compile(
    r"(global|flat|scratch|buffer|ds)_(load|store|atomic|read|write|add|sub|inc|dec|min|max|and|or|xor"
    r"|cmpst|cmpswap|wrxchg"
    r"|pk_add)(\w*)"
)
_SPACES = {"ds": "shared", "scratch": "local", "flat": "", "global": "global", "buffer": "global"}
_LANES = re.compile(r"ds_(?:b?permute|swizzle)|v_permlane|v_readlane|v_readfirstlane|\w+_dpp")
_IGNORED = re.compile(r"s_(?:setprio|inst_prefetch|clause|code_end|sethalt 0)")
_SYNC = re.compile(
    r"s_(?:barrier|sleep|sendmsg|setreg|round_mode|denorm_mode|dcache|icache|trap|setvskip|set_gpr)|buffer_(?:wbl2|inv|gl\w+)"
    r"|global_(?:wb|inv)"
)
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
_SELECTION = re.compile(r"(?:src([01])|dst)_sel:(?:(BYTE|WORD)_([0-3])|DWORD)$")
_WIDE = re.compile(r"_b64|_u64|_i64|v_(?:add|mul|fmac?|max|min)_f64|cndmask|addc|subb|saveexec")
_COMPARISON = re.compile(r"[vs]_cmp(?:k)?_(eq|lg|ne|lt|le|gt|ge)_([iu])(32|64|16)$")
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
    types = [line for line in lines if line.startswith(".type ")]
    symbols = {match.group(1) for line in types if (match := re.match(r"\.type ([\w.$]+),@function", line))}
    for number, code in enumerate(lines, 1):
        label, body.line = _LABEL.match(code), number
        if label and label.group(1) in symbols:
            name, body = label.group(1), Body()
            if f".amdhsa_kernel {name}" in lines:
                body.now.append(instruction("workitem.id.x", ("v0",)))  # Triton's blocks have one dimension
        elif not name or (code.startswith(".") and not label):
            if name and code.startswith((".section", ".size", ".amdhsa", ".amdgpu")):
                body.end("falls through", None, (), "")
                blocks = without_loads_of_arguments(body.blocks, pointer_to_arguments(lines, name))
                functions[name] = Function(under_modes(blocks), frozenset(), ())
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
    has_early = any(wait_states.early(lines))
    return Program(functions, tuple(kept), threads, tuple(unknown), wait_states.spacings(lines), has_early)


@functools.lru_cache(maxsize=1 << 15)
def _line(code: str) -> Line:
    parts = _REGISTER.split(code)
    texts, registers_of_parts = parts[::2], [registers_of(part) for part in parts[1::2]]
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
        if text in HALVES_OF_EXEC:
            half = self._new()
            self._add("half", (half,), ("exec",), ("half", HALVES_OF_EXEC.index(text)))
            return half
        registers = registers_of(text)
        if len(registers) == 2:
            whole = self._new()
            self.instructions.append(instruction("pair", (whole,), registers, PAIR))
            return whole
        if len(registers) > 2:
            raise ReadError(f"AMDGCN: {text} as one operand")
        return registers[0] if registers else literal_of(text)

    def _values(self, parts: Sequence[str]) -> list[Operand]:
        """Returns all registers and literals; a pair of registers is one value."""
        operands: list[Operand] = []
        for part in parts:
            registers = registers_of(part)
            operands += registers if len(registers) > 2 else [self._source(part)] if part != "off" else []
        return operands

    def _read(self, code: str) -> None:
        opcode, _, rest = code.partition(" ")
        name = re.sub(r"_e(?:32|64)$", "", opcode)
        name = SAME_VALUE.get(name, name)
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
            modifiers, parts = parts_of(rest)
            if _SYNC.match(opcode):
                words = " ".join([opcode, *modifiers, *(part for part in parts if not registers_of(part))])
                read = self._values([part for part in parts if registers_of(part)])
                read += ["m0"] * opcode.startswith("s_sendmsg")
                self._add(words, (), read, effect=Effect(Act.SYNC))
            elif _ACCESS.match(opcode) and not _LANES.match(opcode):
                self._access(opcode, parts, modifiers)
            elif name.endswith("_sdwa"):
                self._of_parts(name, parts, modifiers)
            elif scalar := SCALAR_LOAD.match(opcode):
                self._scalar_load(scalar, parts, modifiers)
            else:
                self._compute(name, parts, modifiers)

    def _compute(self, name: str, parts: list[str], modifiers: tuple[str, ...]) -> None:
        parts = with_literals_as_read(name, parts)
        changes = [change_of(part) for part in parts]
        is_plain = not modifiers and not any(changes)
        comparison = _COMPARISON.match(name) if is_plain else None
        if name in COMPUTED and is_plain and (name != "s_bfe_u32" or len(parts) > 3):
            self._steps(name, parts, COMPUTED[name])
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
                self._add("lanes of", registers_of(parts[0]), (truth, "exec"), ("mask", 0))
        elif name.startswith("s_cselect") and is_plain:
            one, other = (self._source(part) for part in parts[1:])
            self._add(
                name, registers_of(parts[0]), ("scc", one, other), ("select", 32 * name.endswith("b32"))
            )
        elif name == "v_cndmask_b32" and is_plain:
            mask = self._source(parts[3])
            one, other = (self._source(part) for part in parts[1:3])
            self._add(name, registers_of(parts[0]), (mask, other, one), ("select", 32), masked=True)
        elif name in ("v_mad_u64_u32", "v_mad_i64_i32") and is_plain:
            self._wide_product(name, parts)
        elif (single := _SINGLES.match(name)) and not (single[1] or modifiers):
            self._single(single[2], registers_of(parts[0])[0], parts[1:], masked=True)
        elif single and single[1] and (halves := halves_of(parts[1:], modifiers)):
            results = [self._new() for _ in halves]
            for result, half in zip(results, halves, strict=True):
                self._single(single[2], result, half, masked=False)
            for register, result in zip(registers_of(parts[0]), results, strict=True):
                self._add("mov", (register,), (result,), COPY, masked=True)
        else:
            self._plain(name, parts, modifiers, changes)

    def _wide_product(self, name: str, parts: list[str]) -> None:
        """Reads the lower half of a sum of 64 bits as a sum of 32."""
        operands = [self._source(part) for part in parts[2:4]]
        added = registers_of(parts[4]) or (literal_of(parts[4]),)
        halves = self._new(), self._new()
        self._add(name, halves[:1], [*operands, added[0]], ("mad", 32))
        self._add(f"high half of {name}", halves[1:], [*operands, *added], commutes=True)
        self._add(f"carry of {name}", registers_of(parts[1]), [*operands, *added], masked=True, commutes=True)
        for register, half in zip(registers_of(parts[0]), halves, strict=True):
            self._add("mov", (register,), (half,), COPY, masked=True)

    def _of_parts(self, name: str, parts: list[str], modifiers: tuple[str, ...]) -> None:
        """Reads an instruction on bytes and halves of registers as a plain one on fields, extended with zeros
        (MI300 ISA, "SDWA"), if it works on integers and writes zeros around its result.
        """
        plain = name.removesuffix("_sdwa")
        matches = [_SELECTION.match(each) for each in modifiers if each != "dst_unused:UNUSED_PAD"]
        selections = [match.groups() for match in matches if match]
        steps = list(COMPUTED.get(plain, ()))
        places = {n: max(len(parts) - 2, 1) + int(n) for n, unit, _ in selections if unit and n}
        is_whole = all(len(registers_of(parts[place])) == 1 for place in places.values())
        is_known = is_whole and not any(map(change_of, parts)) and bool(steps or _COMPARISON.match(plain))
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
        sign = text[0] == "-" and not NUMBER.match(text)
        value = self._source(text[sign:].strip("|"))
        if "|" in text:  # the size of a float is what it is without the highest bit
            self._add("size", (size := self._new(),), (value, 0x7FFFFFFF), ("and", 32))
            value = size
        return value, sign

    def _steps(self, name: str, parts: Sequence[str], steps: Sequence[tuple[Any, ...]]) -> None:
        sources = [self._source(part) for part in parts[1:]]
        last: Operand = ""
        if is_extreme := name.startswith(("s_min_", "s_max_")):  # before it writes what it reads
            self._add(f"scc of {name}", ("scc",), sources)
        for number, (function, width, *which) in enumerate(steps):
            operands = [last if place < 0 else sources[place] for place in which]
            if (function, width) == COPY and name.endswith("32") and isinstance(operands[0], int):
                operands = [as_register(operands[0])]
            if number < len(steps) - 1:
                last = self._new()
                self._add(name, (last,), operands, (function, width))
            else:
                is_vector = name.startswith("v_")
                self._add(name, registers_of(parts[0]), operands, (function, width), masked=is_vector)
        if _WRITES_SCC.match(name) and not is_extreme:
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
            self._add("mov", registers_of(parts[0]), (before,), ("copy", 0))
            self._compare("ne", "scc", "exec", 64)
            return
        count = 0 if name.startswith(("s_cmp", "s_bitcmp")) else 2 if TWO_RESULTS.match(name) else 1
        written, read_parts = parts[:count], list(parts if "_swap" in name else parts[count:])
        is_partial = any(each.startswith(("op_sel:", "dst_unused")) for each in modifiers)
        read_parts += written if is_partial or READS_RESULT.search(name) else []
        operands: list[Operand] = []
        for part in (unchanged(part) if change_of(part) else part for part in read_parts):
            registers = registers_of(part) if part not in HALVES_OF_EXEC else ()
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
        results = ("exec",) if is_of_exec else tuple(r for part in written for r in registers_of(part))
        is_whole = len(operands) == len(read_parts) > 1  # halves of one operand do not change places
        commutes = not modifiers and not any(changes) and is_whole and bool(_COMMUTES.match(fused))
        masked = bool(re.match(r"ds_|v_(?!cmp|readlane|readfirst|writelane)", name))
        self._add(full, results, operands, masked=masked, commutes=commutes)
        if is_of_exec and len(own := registers_of(written[0])) == 2:  # gfx9: it writes its result, too
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
        first, rest = (registers_of(parts[0]), parts[1:]) if returns else ((), parts)
        if is_load or (kind == "buffer" and returns):
            data, places = parts[:1] if not is_load or "d16" in opcode else [], rest
        elif kind == "buffer":
            data, places = rest[:1], rest[1:]
        else:  # the address, what is written, and the base
            data, places = (rest[1:], rest[:1]) if kind == "ds" else (rest[1:2], [rest[0], *rest[2:]])
        address = self._values([*places[1:], *places[:1]]) or [0]  # the lane's own part last
        written = [each for part in data for each in registers_of(part) or (literal_of(part),)]
        if kind != "flat" and act is not Act.ATOMIC and (offsets := word_offsets(opcode, kept, offset)):
            self._in_pieces(act, kind, kept, (first, written), (address, offsets))
            return
        size = re.sub(r"_(?:d16(?:_hi)?|tr_b\d+)$|_rtn$", "", opcode).rpartition("_")[2]
        if act is Act.STORE and BYTES.get(size, 4) < 4 and not opcode.endswith("_hi"):
            low = [self._new() for _ in written]
            for new, each in zip(low, written, strict=True):
                self._add("low", (new,), (each,), ("low", 8 * BYTES[size]))
            written = list[Operand](low)
        several = bool(re.search(r"2st64|read2|write2", opcode)) or act is Act.ATOMIC
        self._add(
            name, first, written, masked=True,
            effect=Effect(
                act, _SPACES[kind], (*((each, 0) for each in address[:-1]), (address[-1], offset)),
                0 if several else BYTES.get(size, 0),
            ),
        )  # fmt: skip

    def _scalar_load(self, opcode: re.Match[str], parts: list[str], modifiers: tuple[str, ...]) -> None:
        """Reads a scalar load as loads of 32 bits each."""
        buffer, several, bits, narrow = opcode.groups()
        registers = registers_of(parts[0])
        if len(registers) != (int(several or 1) if not bits else int(bits) // 32):
            raise ReadError(f"AMDGCN: {opcode[0]} to {parts[0]}")
        offset = next((int(match[1], 0) for each in modifiers if (match := _OFFSET.fullmatch(each))), 0)
        places = [literal_of(part) for part in parts[2:] if NUMBER.match(part)]
        offset += sum(place for place in places if isinstance(place, int))
        address = self._values([part for part in parts[1:] if not NUMBER.match(part)])
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
