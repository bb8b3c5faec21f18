"""Says what one PTX instruction computes, or what else it does: tables of opcodes, and how an instruction is
split into steps. Pure.

Names are kept with all their modifiers, apart from integer types that do not change what is computed. Source:
PTX ISA 9.0, "Instruction Set".
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import NamedTuple

from irdiff.ir.program import (
    COPY,
    PIECES,
    Act,
    Effect,
    Instruction,
    Operand,
    ReadError,
    Verbatim,
    instruction,
    parts,
)
from irdiff.ir.ptx.operands import PtxOperand

_INTEGER = re.compile(
    r"(add|sub|mul\.lo|mul\.hi|mad\.lo|neg|shl|shr|and|or|xor|not|mul\.wide|mad\.wide|selp|bfe)\.([subf]|pred)(\d*)$"
)
_CVT = re.compile(r"cvt\.([su])(\d+)\.([su])(\d+)$")
_CVT_FLOAT = re.compile(r"cvt\.(?:\w+\.)*([su])(\d+)\.b?f\d+$")
_SETP = re.compile(r"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.([sub])(\d+)$")
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_PURE = re.compile(
    r"(?:abs|addc?|subc?|mul|mul24|mad|mad24|madc|div|rem|neg|min|max|fma|rcp|r?sqrt|sin|cos|lg2|ex2|tanh"
    r"|set|setp|selp"
    r"|slct|and|or|xor|not|cnot|lop3|shl|shr|shf|mov|cvt|cvta|prmt|bfe|bfi|bfind|bmsk|brev|clz|popc|dp2a"
    r"|dp4a|sad|szext"
    r"|fns|copysign|testp|isspacep|mapa|getctarank|createpolicy|vabsdiff\w*|vadd\w*|vmin\w*|vmax\w*|elect"
    r")\b"
)
"""`elect`: of the same lanes it always takes the same one (PTX ISA, "elect.sync")."""
_CARRY = re.compile(r".*\.cc\b|addc|subc|madc")
_LANES = re.compile(r"(?:shfl|vote|match|redux|mma|wmma\.mma|activemask)\b")
_FLOAT = re.compile(
    r"(?:add|sub|mul|div|fma|mad|neg|abs|min|max|rcp|r?sqrt|sin|cos|lg2|ex2|tanh|copysign|redux|red|atom"
    r"|set|setp)\b"
    r".*\.(?:b?f(?:16|32|64)(?:x2)?|tf32)|cvt\b.*\.(?:b?f\d|tf32|e\dm\d|ue8m0)|(?:w?mma|wgmma\.mma_async"
    r"|tcgen05\.mma)\b|testp"
)
_COMMUTES = re.compile(r"(?!add\b.*\.f32\.b?f16$)(?:add|mul|min|max|fma|mad|mul24|and|or|xor)\b(?!.*\.cc\b)")
"""Not a sum of two formats."""
_ASSOCIATES = re.compile(r"m(?:ax|in)\.(?:ftz\.)?(?:NaN\.)?(?:b?f16(?:x2)?|f32|f64|[us](?:16(?:x2)?|32|64))$")
"""The greatest of several numbers, a NaN left out or, with `.NaN`, the result; a result that is NaN has one
form, and +0 is greater than -0 (PTX ISA 9.0, notes of "max" and "min", f32 and f16).
AMD's quiet a signaling NaN in one step and leave it out in the next, so they are none of these."""
_SYNC = re.compile(
    r"bar\b|barrier\b|fence\b|membar\b|mbarrier\b|griddepcontrol|cp\.async\.(?:bulk\.)?(?:commit_group"
    r"|wait_\w+|mbarrier\.)"
    r"|wgmma\.(?:fence|commit_group|wait_group)|tcgen05\.(?:fence|wait|commit|alloc|dealloc|relinquish)"
    r"|tensormap\.cp_fenceproxy|setmaxnreg|nanosleep"
)
_MATRIX = re.compile(r"wgmma\.mma_async|tcgen05\.(?:mma|cp|ld|st|shift)")
_COPY = re.compile(
    r"cp\.async|cp\.reduce|st\.async|red\.async|tensormap\.replace|multimem|discard|applypriority"
)
_SPACE = re.compile(r"\.(global|shared|local|param|const)\b")
_PLAIN_ACCESS = re.compile(
    r"(?:ld|st)\.(?:global|shared|local)(?:\.nc)?(?:\.v[248]\.[bufs](?:32|64)|\.[buf]64)$"
)
_WIDE = re.compile(r"(?:\.v([248])\.[bufs](32|64)|()\.[buf](64))$")
"""A plain access of several words of 32 bits."""
_SIZE = re.compile(r"\.(?:v(\d)\.)?[a-z]+(\d+)(?:x2)?$")
_MOVED = re.compile(r"mov\.[bsu](16|32|64)")
_WIDTHS = {"%rs": 16, "%r": 32, "%rd": 64}
"""Bits of a register, by how its name begins."""
_NARROW_STORE = re.compile(r"st\.(?!async)(?:\w+\.)*[bus](8|16)$")
"""It stores the lowest bits of a register, which may be wider (PTX ISA, "st")."""
_ACCESS_TYPE = re.compile(r"\.[ufb](\d+)$")
_ACCESSES = frozenset({Act.LOAD, Act.STORE, Act.ATOMIC})
_FIRST_WRITES = re.compile(
    r"wgmma\.mma_async|tcgen05\.ld|mbarrier\.(?:try_wait|test_wait|arrive|pending)|multimem\.ld|atom"
)
_ACTS = (
    (_CARRY, Act.OPAQUE), (_SYNC, Act.SYNC), (_MATRIX, Act.MATRIX), (_COPY, Act.COPY), (_LANES, Act.LANES),
    (re.compile(r"ldu?\.|ldmatrix"), Act.LOAD), (re.compile(r"st\.|stmatrix"), Act.STORE),
    (re.compile(r"atom|red\."), Act.ATOMIC),
)  # fmt: skip
"""The first that matches; what none of them does, and `_PURE` does not, is opaque."""


class Facts(NamedTuple):
    opcode: str
    name: str
    """Without types that do not count."""
    act: Act | None
    """None for what only computes."""
    unknown: tuple[str, ...]
    """Itself, where no rule names it."""
    space: str
    size: int
    """Bytes of an access; 0 if unknown."""
    writes: bool
    """The access writes its first operand."""
    commutes: bool
    is_float: bool


@functools.lru_cache(maxsize=1 << 12)
def facts_of(opcode: str) -> Facts:
    rest = None if _PURE.match(opcode) else Act.OPAQUE
    act = next((act for pattern, act in _ACTS if pattern.match(opcode)), rest)
    unknown = (opcode if not opcode.startswith("call") else "call",) if act is Act.OPAQUE else ()
    is_plain = act in (Act.LOAD, Act.STORE) or opcode.startswith("ld.param")
    is_access = act in _ACCESSES
    name = _ACCESS_TYPE.sub(r".b\1", opcode) if is_plain else opcode
    space, size = _SPACE.search(opcode), _SIZE.search(opcode)
    has_size = is_access and "matrix" not in opcode and "b1024" not in opcode
    return Facts(
        opcode, name, act, unknown, space.group(1) if space and is_access else "",
        int(size.group(1) or 1) * int(size.group(2)) // 8 if size and has_size else 0,
        act in (Act.LOAD, Act.LANES) or bool(_FIRST_WRITES.match(opcode)),
        bool(_COMMUTES.match(opcode)), act is not Act.SYNC and bool(_FLOAT.match(opcode)),
    )  # fmt: skip


def effect_of(facts: Facts, act: Act, operands: list[PtxOperand]) -> list[Instruction]:
    if act in (Act.LOAD, Act.STORE) and _PLAIN_ACCESS.match(facts.opcode):
        wide = _WIDE.search(facts.opcode)
        assert wide
        return _in_pieces(facts, act, operands, int(wide[1] or 1), int(wide[2] or wide[4]))
    is_access = act in _ACCESSES
    results = operands[0].registers if facts.writes and not operands[0].address else ()
    if act is Act.OPAQUE:
        results = tuple(
            dict.fromkeys(each for operand in operands for each in operand.registers if each != "_")
        )
    layouts: list[Instruction] = []
    if facts.opcode.startswith("wgmma.mma_async.sync"):
        operands, layouts = _without_leading_stride(facts.opcode, operands)
    is_read = act is Act.OPAQUE or (act is Act.MATRIX and not facts.opcode.startswith("tcgen05.ld"))
    read = operands[1:] if results and not is_read else operands
    address = [part for each in operands for part in each.address]
    beyond = [value for part in address[1:] for value in part.values] if is_access else []
    address = address[:1] if is_access else address
    if is_access and not address:
        raise ReadError(f"PTX: {facts.opcode} without an address")
    effect = Effect(
        act, facts.space, tuple((value, part.offset) for part in address for value in part.values), facts.size
    )
    values = (*(value for each in read for value in _with_offset(each)), *beyond)
    if act is Act.STORE and (narrow := _NARROW_STORE.match(facts.opcode)) and not read[-1].is_vector:
        layouts.append(instruction("low", ("_low",), values[-1:], ("low", int(narrow[1]))))
        values = (*values[:-1], "_low")
    return [*layouts, instruction(facts.name, results, values, effect=effect, is_float=facts.is_float)]


def _in_pieces(
    facts: Facts, act: Act, operands: list[PtxOperand], count: int, width: int
) -> list[Instruction]:
    """A plain access as one of each 32 bits, so that it is the same however many an instruction makes."""
    place = 1 if act is Act.LOAD else 0
    (start,) = operands[place].address
    moved, (address,), halves = list(operands[1 - place].values), start.values, width // 32
    instructions, own = list[Instruction](), list[tuple[Operand, ...]]()
    if act is Act.LOAD:  # the first of several loads may overwrite the address
        instructions, address = [instruction("mov", ("_start",), (address,), COPY)], "_start"
    for n, value in enumerate(moved):
        names = tuple(f"_piece{n}.{half}" for half in range(halves))
        own.append(names if halves > 1 else (value,))
        if halves > 1:  # of a load, what stays where it does not load
            places = [half * PIECES + halves for half in range(halves)]
            instructions += [
                instruction("mov", (part,), (value,), ("piece", at))
                for part, at in zip(names, places, strict=True)
            ]
    name = f"{_WIDE.sub('', facts.opcode)}.b32"
    for n, part in enumerate(itertools.chain(*own)):
        whole = count * width // 8 if not n else 0
        effect = Effect(act, facts.space, ((address, start.offset + 4 * n),), 4, whole)
        result = (part if isinstance(part, str) else "_",)
        is_load = act is Act.LOAD
        instructions.append(
            instruction(name, result if is_load else (), () if is_load else (part,), effect=effect)
        )
    if halves > 1 and act is Act.LOAD:
        instructions += [
            instruction("mov", (value,), parts, ("pack", 64))
            for value, parts in zip(moved, own, strict=True)
            if isinstance(value, str)
        ]
    return instructions


def _packed(facts: Facts, operands: list[PtxOperand]) -> list[Instruction]:
    """Two operations of 32 bits that one of 64 bits is (PTX ISA, "add.f32x2")."""
    name, instructions, results = (
        facts.opcode.replace(".f32x2", ".f32"),
        list[Instruction](),
        ("_low", "_high"),
    )
    for half, result in enumerate(results):
        parts = []
        for n, operand in enumerate(operands[1:]):
            parts.append(f"_part{n}.{half}")
            instructions.append(
                instruction("mov", (parts[-1],), operand.values, ("piece", half * PIECES + 2))
            )
        instructions += computed(
            facts_of(name), [PtxOperand((result,)), *(PtxOperand((part,)) for part in parts)]
        )
    return [*instructions, instruction("mov", operands[0].registers, results, ("pack", 64))]


def _without_leading_stride(
    opcode: str, operands: list[PtxOperand]
) -> tuple[list[PtxOperand], list[Instruction]]:
    """The operands of `wgmma` are D, A, B, scale and signs, and for 16 bits whether A (in memory) and B are
    not K-major.
    """
    kept, added = list(operands), []
    matrices = [place for place in (1, 2) if not operands[place].is_vector]
    majors = [each.values for each in operands[6:]] or [(0,)] * len(matrices)
    if len(majors) == len(matrices):
        for place, (major,) in zip(matrices, majors, strict=True):
            rows = int(re.findall(r"\.m(\d+)n(\d+)k", opcode)[0][place - 1])
            kept[place] = PtxOperand((f"_descriptor{place}",))
            compute = "descriptor", 2 * rows if major else 0
            added.append(instruction("descriptor", kept[place].registers, operands[place].values, compute))
    return kept, added


def _with_offset(operand: PtxOperand) -> tuple[Operand, ...]:
    is_plain = not operand.offset and not operand.is_negated
    return (
        operand.values if is_plain else (*operand.values, Verbatim(f"{operand.offset}{operand.is_negated}"))
    )


def computed(facts: Facts, operands: list[PtxOperand]) -> list[Instruction]:
    opcode, results = facts.opcode, operands[0].registers
    if opcode.endswith(".f32x2") and all(len(each.values) == 1 and not each.is_negated for each in operands):
        return _packed(facts, operands)
    if opcode in ("ld.param.s32", "ld.param.u32") and results[0].startswith("%rd"):  # into 64 bits
        narrow, kind = PtxOperand(("_narrow",)), "sext" if "s32" in opcode else "zext"
        instructions = computed(facts_of("ld.param.u32"), [narrow, *operands[1:]])
        return [*instructions, instruction(opcode, results, narrow.values, (kind, 32_064))]
    values = tuple(value for each in operands[1:] for value in _with_offset(each))
    values += tuple(value for each in operands[1:] for part in each.address for value in _with_offset(part))
    if opcode.startswith("mov") and operands[0].is_vector:
        bits = int(re.findall(r"\d+", opcode)[-1]) // len(results)
        places = [place * PIECES + parts(len(results), bits) for place in range(len(results))]
        return [
            instruction(opcode, (name,), values, ("piece", place))
            for name, place in zip(results, places, strict=True)
        ]
    compute, name = _compute_of(opcode, is_vector=operands[1].is_vector)
    short = _CVT.match(opcode) or _CVT_FLOAT.match(opcode)
    wide = _WIDTHS.get(results[0].rstrip("0123456789"), 0)
    if short and len(results) == 1 and int(short[2]) < wide:  # a destination that is wider is extended
        instructions = computed(facts, [PtxOperand(("_narrow",)), *operands[1:]])
        extend = ("sext" if short[1] == "s" else "zext"), int(short[2]) * 1000 + wide
        return [*instructions, instruction(opcode, results, ("_narrow",), extend)]
    if compute == COPY and isinstance(values[0], int) and (width := _MOVED.fullmatch(opcode)):
        compute = "trunc", int(width[1])  # -1 and 0xffffffff are the same 32 bits
    is_plain = not any(each.is_negated or each.offset for each in operands)
    if compute and is_plain and len(results) == 1:
        values = (values[2], *values[:2]) if compute[0] == "select" else values
        return [instruction(name, results, values, compute)]
    commutes = facts.commutes and len(values) > 1 and is_plain
    return [
        instruction(
            facts.name, results, values, commutes=commutes,
            associates=commutes and bool(_ASSOCIATES.match(opcode)), is_float=facts.is_float,
        )
    ]  # fmt: skip


@functools.lru_cache(maxsize=1 << 12)
def _compute_of(opcode: str, *, is_vector: bool) -> tuple[tuple[str, int] | None, str]:
    """The function of `Values` that an instruction is, and its name without types that do not count."""
    if opcode.startswith("mov"):
        return ("pack", int(re.findall(r"\d+", opcode)[-1])) if is_vector else COPY, "mov"
    if match := _INTEGER.match(opcode):
        name, kind, digits = match.groups()
        width = 1 if kind == "pred" else int(digits or 0)
        if name == "selp":
            return ("select", width), opcode
        if kind == "f" or not width:
            return None, opcode
        if name.endswith("wide"):
            sign = "s" if kind == "s" else "z"
            return (f"wide {sign}", 2 * width), opcode
        name = {
            "mul.hi": "high s" if kind == "s" else "high u",
            "bfe": "sfield" if kind == "s" else "field",
            "mul.lo": "mul",
            "mad.lo": "mad",
            "shr": "sar" if kind == "s" else "shr",
        }.get(name, name)
        return (name, width), opcode
    if match := _CVT.match(opcode):
        width, sign, source = int(match.group(2)), match.group(3), int(match.group(4))
        if width > source:
            return ("sext" if sign == "s" else "zext", source * 1000 + width), opcode
        return ("trunc" if width < source else "copy", width if width < source else 0), opcode
    if match := _SETP.match(opcode):
        order = _UNSIGNED.get(match.group(1), match.group(1))
        sign = "" if order in ("eq", "ne") else "s" if match.group(2) == "s" else "u"
        return (f"{sign}{order}", int(match.group(3))), opcode
    return None, opcode
