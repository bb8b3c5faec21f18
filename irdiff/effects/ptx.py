"""Reads canonical PTX as blocks of instructions, and inline assembly of LLVM IR for NVIDIA. Pure.

Names are kept with all their modifiers, apart from integer types that do not change what is computed. Source:
PTX ISA 9.0, "Instruction Set".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from irdiff.effects.blocks import BRANCH, JUMP
from irdiff.effects.program import (
    Act,
    CodeBlock,
    Effect,
    Function,
    Instruction,
    Operand,
    Program,
    UnreadableError,
    Verbatim,
)
from irdiff.effects.values import PIECES

_STATEMENT = re.compile(r"(?:@(!?)\s*([%$\w.]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
_PARTS = re.compile(r"[{}]|(?:[^;{}]|(?<=[\s,|(])\{[^{};]*\})+;?")
_LABEL = re.compile(r"([$%\w]+)\s*:(?!:)\s*")
_NAME = re.compile(r"(?<![\w.$%])[%$]?[A-Za-z_$][\w$]*")
_SPECIAL = re.compile(
    r"%(?:[\w]+\.[xyz]|laneid|n?warpid|gridid|n?smid|lanemask_\w+|n?cluster\w*|cluster\w*|is_ex\w+"
    r"|\w+_smem_size)$"
)
_VOLATILE = re.compile(r"%(?:clock|globaltimer|pm\d|activemask)")
_ATOM = re.compile(r"(!?)([^+|]+?)\s*(?:\+\s*(-?\w+))?$")
_INTEGER = re.compile(
    r"(add|sub|mul\.lo|mad\.lo|neg|shl|shr|and|or|xor|not|mul\.wide|mad\.wide|selp)\.([subf]|pred)(\d*)$"
)
_CVT = re.compile(r"cvt\.([su])(\d+)\.([su])(\d+)$")
_SETP = re.compile(r"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)\.([sub])(\d+)$")
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_PURE = re.compile(
    r"(?:abs|addc?|subc?|mul|mul24|mad|mad24|madc|div|rem|neg|min|max|fma|rcp|r?sqrt|sin|cos|lg2|ex2|tanh"
    r"|set|setp|selp"
    r"|slct|and|or|xor|not|cnot|lop3|shl|shr|shf|mov|cvt|cvta|prmt|bfe|bfi|bfind|bmsk|brev|clz|popc|dp2a"
    r"|dp4a|sad|szext"
    r"|fns|copysign|testp|isspacep|mapa|getctarank|createpolicy|vabsdiff\w*|vadd\w*|vmin\w*|vmax\w*"
    r")\b"
)
_CARRY = re.compile(r"\.cc\b|^(?:addc|subc|madc)")
_LANES = re.compile(r"(?:shfl|vote|match|redux|elect|mma|wmma|activemask)\b")
_FLOAT = re.compile(
    r"(?:add|sub|mul|div|fma|mad|neg|abs|min|max|rcp|r?sqrt|sin|cos|lg2|ex2|tanh|copysign|redux|red|atom"
    r"|set|setp)\b"
    r".*\.(?:b?f(?:16|32|64)(?:x2)?|tf32)|cvt\b.*\.(?:b?f\d|tf32|e\dm\d|ue8m0)|(?:w?mma|wgmma\.mma_async"
    r"|tcgen05\.mma)\b|testp"
)
_COMMUTES = re.compile(r"(?:add|mul|min|max|fma|mad|mul24|and|or|xor)\b(?!.*\.cc\b)")
_SYNC = re.compile(
    r"bar\b|barrier\b|fence\b|membar\b|mbarrier\b|griddepcontrol|cp\.async\.(?:bulk\.)?(?:commit_group"
    r"|wait_\w+|mbarrier\.)"
    r"|wgmma\.(?:fence|commit_group|wait_group)|tcgen05\.(?:fence|wait|commit|alloc|dealloc|relinquish)"
    r"|tensormap\.cp_fenceproxy|setmaxnreg|nanosleep"
)
_MATRIX = re.compile(r"wgmma\.mma_async|tcgen05\.(?:mma|cp|ld|st|shift)")
_COPY = re.compile(
    r"cp\.async|cp\.reduce|st\.async|red\.async|tensormap\.replace|multimem|prefetch|discard|applypriority"
)
_SPACE = re.compile(r"\.(global|shared|local|param|const)\b")
_SIZE = re.compile(r"\.(?:v(\d)\.)?[a-z]+(\d+)(?:x2)?$")
_ACCESS_TYPE = re.compile(r"\.[ufb](\d+)$")
_PLAIN = frozenset({Act.LOAD, Act.STORE})
_FIRST_WRITES = re.compile(
    r"wgmma\.mma_async|tcgen05\.ld|mbarrier\.(?:try_wait|test_wait|arrive|pending)|multimem\.ld"
)


class _PtxOperand(NamedTuple):
    values: tuple[Operand, ...] = ()
    """All that it names, in order."""
    offset: int = 0
    is_negated: bool = False
    address: tuple[_PtxOperand, ...] = ()
    is_vector: bool = False

    @property
    def registers(self) -> tuple[str, ...]:
        """What it names as a destination; what is thrown away has a name that nobody reads."""
        return tuple(value if isinstance(value, str) else "_" for value in self.values)


def read(lines: Sequence[str]) -> Program:
    """Raises UnreadableError."""
    functions: dict[str, Function] = {}
    declarations: list[str] = []
    unknown: list[str] = []
    name, body, depth = "", list[tuple[int, str]](), 0
    for number, code in enumerate(lines):
        if depth == 0:
            if code == "{":
                depth, body = 1, []
                continue
            found = re.search(r"\.(?:entry|func)\s+(?:\([^()]*\)\s*)?([\w$]+)", code)
            name = found.group(1) if found else name
            declarations.append(code)
            continue
        depth += code.count("{") - code.count("}")
        if depth:
            body.append((number, code))
        else:
            reader = PtxReader()
            functions[name] = reader.function(body)
            unknown += reader.unknown
            declarations += reader.declared
    if depth or not functions:
        raise UnreadableError("no function of PTX")
    return Program(functions, tuple(sorted(_declared(declarations, "\n".join(lines)))), tuple(unknown))


def _declared(declarations: Iterable[str], text: str) -> Iterator[str]:
    """Without directives that bound registers and threads, and parameters that nothing reads."""
    for code in declarations:
        is_unread = code.startswith(".param") and text.count(code.rstrip(",").split()[-1]) == 1
        if not is_unread and not code.startswith((".reqntid", ".maxntid", ".maxnreg", ".minnctapersm")):
            yield re.sub(r" \.ptr(?: \.\w+)*(?: \.align \d+)?", "", code).rstrip(",")


class PtxReader:
    """One function, or one piece of inline assembly of that scope."""

    def __init__(self, scope: str = "") -> None:
        self.unknown: list[str] = []
        self.declared: list[str] = []
        self._scope = scope
        self._scopes: list[dict[str, str]] = []
        """What the names that each scope declares mean; `` is the scope's own name."""
        self._asynchronous: set[str] = set()
        self._found: list[CodeBlock] = []
        self._label = "entry"
        self._now: list[Instruction] = []
        self._made = 0

    def function(self, body: Iterable[tuple[int, str]]) -> Function:
        for number, line in body:
            if line.count(";") == 1 and line[-1] == ";" and line[0] != "{":
                self._statement(number, line[:-1])
                continue
            for part in _PARTS.findall(line):
                self._statement(number, part.strip().rstrip(";").rstrip())
        self._end("ret", None, (), "")
        while copies := {
            register
            for block in self._found
            for each in block.instructions
            if each.compute == ("copy", 0) and self._asynchronous & {*each.operands}
            for register in each.results
            if register not in self._asynchronous
        }:
            self._asynchronous |= copies
        return Function(tuple(self._found), frozenset(self._asynchronous), ())

    def _new(self, prefix: str) -> str:
        self._made += 1
        return f"{self._scope}{prefix}{self._made}"

    def _statement(self, line: int, code: str) -> None:
        if code == "{":
            self._scopes.append({"": self._new("s")})
        elif code == "}":
            if self._scopes:
                self._scopes.pop()
        elif label := _LABEL.match(code):
            target = self._target(label.group(1))
            self._end(JUMP, None, (target,), target)
            self._statement(line, code[label.end() :])
        elif code.startswith("."):
            self._directive(code)
        elif code:
            names = {name: new for scope in self._scopes for name, new in scope.items()}
            if len(names) > 1:
                code = _NAME.sub(lambda match: names.get(match.group(), match.group()), code)
            found = _STATEMENT.match(code)
            if not found:
                raise UnreadableError(f"PTX: {code[:60]}")
            negated, guard, opcode, rest = found.groups()
            if guard and guard.lstrip("-").isdigit():
                if bool(int(guard)) == bool(negated):  # never
                    return
                guard = None
            operands = [_operand(part) for part in split(rest)]
            if opcode.partition(".")[0] in ("bra", "ret", "exit", "trap"):
                self._exit(opcode, operands, guard, is_negated=bool(negated))
            else:
                made = self._instruction(line, opcode, operands)
                self._now += (
                    [each._replace(guard=guard, negated=bool(negated)) for each in made] if guard else made
                )

    def _directive(self, code: str) -> None:
        declared = re.match(r"\.(?:reg|param)\s+(?:\.align \d+ )?\.\w+\s+(.*)", code)
        if declared and self._scopes:
            scope = self._scopes[-1]
            for name, count in re.findall(r"([%$\w]+)(?:<(\d+)>)?(?:\[\d*\])?(?:,|$)", declared.group(1)):
                for each in [f"{name}{n}" for n in range(int(count))] if count else [name]:
                    scope[each] = f"%{scope['']}.{each.lstrip('%')}"
        elif not declared and not code.startswith((".loc", ".file", ".pragma")):
            self.declared.append(code)
            if code.startswith((".branchtargets", ".callprototype", ".shared", ".local")):
                self.unknown.append(code.split(maxsplit=1)[0])

    def _target(self, name: str) -> str:
        return (
            f"{self._scopes[-1]['']}.{name}"
            if self._scopes and not name.startswith("$L")
            else self._scope + name
        )

    def _end(self, exit_: str, condition: str | None, targets: tuple[str, ...], label: str) -> None:
        """Ends the block; another begins under this label."""
        self._found.append(CodeBlock(self._label, tuple(self._now), exit_, condition, targets))
        self._now, self._label = [], label

    def _exit(self, opcode: str, operands: list[_PtxOperand], guard: str | None, *, is_negated: bool) -> None:
        after = self._new("after ")
        if not opcode.startswith("bra"):
            if guard is not None:
                ending = self._new("end ")
                targets = (after, ending) if is_negated else (ending, after)
                self._end(BRANCH, guard, targets, ending)
            self._end(opcode, None, (), after)
            return
        value = operands[0].values[0]
        target = self._target(value.text if isinstance(value, Verbatim) else str(value))
        if guard is None:
            self._end(JUMP, None, (target,), after)
        else:
            self._end(BRANCH, guard, (after, target) if is_negated else (target, after), after)

    def _instruction(self, line: int, opcode: str, operands: list[_PtxOperand]) -> list[Instruction]:
        is_parameter = opcode.startswith("ld.param") and "_param_" in str(operands[-1].address)
        act = _act(opcode)
        if _CARRY.search(opcode) or (
            opcode.startswith("mov") and _VOLATILE.match(str((*operands[-1].values, "")[0]))
        ):
            act = Act.OPAQUE
            self.unknown += [] if opcode.startswith("mov") else [opcode]
        elif is_parameter or (act is None and _PURE.match(opcode)):
            return list(_pure(line, _ACCESS_TYPE.sub(r".b\1", opcode) if is_parameter else opcode, operands))
        elif act is None:
            self.unknown.append("call" if opcode.startswith("call") else opcode)
            act = Act.OPAQUE
        made = self._effect(line, opcode, act, operands)
        if opcode.startswith(("wgmma.mma_async", "tcgen05.ld")):
            self._asynchronous.update(made.results)
        return [made]

    def _effect(self, line: int, opcode: str, act: Act, operands: list[_PtxOperand]) -> Instruction:
        is_access = act in (Act.LOAD, Act.STORE, Act.ATOMIC)
        writes = (
            act in (Act.LOAD, Act.LANES) or opcode.startswith("atom") or bool(_FIRST_WRITES.match(opcode))
        )
        space, size = _SPACE.search(opcode), _SIZE.search(opcode)
        results = operands[0].registers if writes and not operands[0].address else ()
        if act is Act.OPAQUE:
            results = tuple(dict.fromkeys(each for row in operands for each in row.registers if each != "_"))
        read = operands[1:] if results and act not in (Act.MATRIX, Act.OPAQUE) else operands
        address = [part for each in operands for part in each.address]
        beyond = [value for part in address[1:] for value in part.values] if is_access else []
        address = address[:1] if is_access else address
        if is_access and not address:
            raise UnreadableError(f"PTX: {opcode} without an address")
        size_bytes = int(size.group(1) or 1) * int(size.group(2)) // 8 if size and is_access else 0
        return Instruction(
            line,
            _ACCESS_TYPE.sub(r".b\1", opcode.replace("shared::cta", "shared")) if act in _PLAIN else opcode,
            results,
            (*(value for each in read for value in _with_offset(each)), *beyond),
            effect=Effect(
                act,
                space.group(1) if space and is_access else "",
                tuple((value, part.offset) for part in address for value in part.values),
                0 if "matrix" in opcode or "b1024" in opcode else size_bytes,
            ),
            is_float=act is not Act.SYNC and bool(_FLOAT.match(opcode)),
        )


@functools.lru_cache(maxsize=1 << 12)
def _act(opcode: str) -> Act | None:
    """None for what only computes, and for what no rule names."""
    for pattern, act in ((_SYNC, Act.SYNC), (_MATRIX, Act.MATRIX), (_COPY, Act.COPY), (_LANES, Act.LANES)):
        if pattern.match(opcode):
            return act
    if opcode.startswith(("ld.", "ldu.", "ldmatrix")):
        return Act.LOAD
    if opcode.startswith(("st.", "stmatrix")):
        return Act.STORE
    return Act.ATOMIC if opcode.startswith(("atom", "red.")) else None


def _with_offset(operand: _PtxOperand) -> Iterator[Operand]:
    yield from operand.values
    if operand.offset or operand.is_negated:
        yield Verbatim(f"{operand.offset}{operand.is_negated}")


def _pure(line: int, opcode: str, operands: list[_PtxOperand]) -> Iterator[Instruction]:
    values = tuple(value for each in operands[1:] for value in _with_offset(each))
    values += tuple(value for each in operands[1:] for part in each.address for value in _with_offset(part))
    results = operands[0].registers
    if opcode.startswith("mov") and operands[0].is_vector:
        for place, register in enumerate(results):
            yield Instruction(line, opcode, (register,), values, ("piece", place * PIECES + len(results)))
        return
    compute, name = _computed(opcode, is_vector=operands[1].is_vector)
    is_plain = not any(each.is_negated or each.offset for each in operands)
    if compute and is_plain and len(results) == 1:
        values = (values[2], *values[:2]) if compute[0] == "select" else values
        yield Instruction(line, name, results, values, compute)
    else:
        commutes = bool(_COMMUTES.match(opcode)) and len(values) > 1 and is_plain
        yield Instruction(line, opcode, results, values, None, commutes, is_float=bool(_FLOAT.match(opcode)))


@functools.lru_cache(maxsize=1 << 12)
def _computed(opcode: str, *, is_vector: bool) -> tuple[tuple[str, int] | None, str]:
    """The function of `Values` that an instruction is, and its name without types that do not count."""
    if opcode.startswith("mov"):
        return ("pack" if is_vector else "copy", 0), "mov"
    if found := _INTEGER.match(opcode):
        name, kind, digits = found.groups()
        width = 1 if kind == "pred" else int(digits or 0)
        if name == "selp":
            return ("select", width), opcode
        if kind == "f" or not width:
            return None, opcode
        if name.endswith("wide"):
            sign = "s" if kind == "s" else "z"
            return (f"wide {sign}", 2 * width), opcode
        name = {"mul.lo": "mul", "mad.lo": "mad", "shr": "sar" if kind == "s" else "shr"}.get(name, name)
        return (name, width), opcode
    if found := _CVT.match(opcode):
        width, sign, source = int(found.group(2)), found.group(3), int(found.group(4))
        if width > source:
            return ("sext" if sign == "s" else "zext", source * 1000 + width), opcode
        return ("trunc" if width < source else "copy", width if width < source else 0), opcode
    if found := _SETP.match(opcode):
        order = _UNSIGNED.get(found.group(1), found.group(1))
        sign = "" if order in ("eq", "ne") else "s" if found.group(2) == "s" else "u"
        return (f"{sign}{order}", int(found.group(3))), opcode
    return None, opcode


@functools.lru_cache(maxsize=1 << 15)
def _operand(text: str) -> _PtxOperand:
    if text[0] == "[":
        return _PtxOperand(address=tuple(_operand(part) for part in split(text[1:-1])))
    if text[0] in "{(" or "|" in text:
        parts = text.split("|") if "|" in text else split(text[1:-1])
        found = [_operand(part.strip()) for part in parts]
        return _PtxOperand(tuple(value for each in found for value in each.values), is_vector=text[0] == "{")
    atom = _ATOM.match(text)
    if not atom:
        raise UnreadableError(f"PTX: the operand {text[:40]}")
    offset = atom.group(3)
    if offset is not None and not re.fullmatch(r"-?(?:0x[0-9a-fA-F]+|\d+)", offset):
        return _PtxOperand((Verbatim(text),))
    return _PtxOperand((_value(atom.group(2)),), int(offset or "0", 0), bool(atom.group(1)))


def _value(text: str) -> Operand:
    if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?", text):
        return int(text.rstrip("U"), 0)
    return Verbatim(text) if text[0] != "%" or _SPECIAL.match(text) else text


def split(text: str) -> list[str]:
    """Parts between the commas outside of brackets."""
    if not any(each in text for each in '[{(<"'):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    parts, now, depth, is_quoted = [], "", 0, False
    for each in _TOKEN.split(text):
        is_quoted ^= each == '"'
        if each == "," and not depth and not is_quoted:
            parts.append(now.strip())
            now = ""
            continue
        if not is_quoted:
            depth += (each in ("[", "{", "(", "<")) - (each in ("]", "}", ")", ">"))
        now += each
    return [*parts, now.strip()] if now.strip() else parts


_TOKEN = re.compile(r'([,\[\]{}()<>"])')
