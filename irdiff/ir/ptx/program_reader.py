"""Reads canonical PTX as blocks of instructions, and inline assembly of LLVM IR for NVIDIA. Pure."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from irdiff.ir.body import JUMP, Body
from irdiff.ir.program import (
    CACHE_POLICY,
    COPY,
    Act,
    CodeBlock,
    Function,
    Instruction,
    Line,
    Program,
    ReadError,
    Template,
)
from irdiff.ir.ptx.opcodes import OPCODE
from irdiff.ir.ptx.operands import operand_of, split
from irdiff.ir.ptx.semantics import computed, effect_of, facts_of

_REGISTER = re.compile(r"(%(?:p|r[dqs]?|fd?))(\d+)(?![\w.])")
_STATEMENT = re.compile(rf"(?:@(!?)\s*([%$\w.]+)\s+)?({OPCODE})\s*(.*)", re.S)
_PARTS = re.compile(r"[{}]|(?:[^;{}]|(?<=[\s,|(])\{[^{};]*\})+;?")
_LABEL = re.compile(r"([$%\w]+)\s*:(?!:)\s*")
_NAME = re.compile(r"(?<![\w.$%])[%$]?[A-Za-z_$][\w$]*")
_VOLATILE = re.compile(r"%(?:clock|globaltimer|pm\d|activemask)")
_BOUNDS = re.compile(r"\.(?:reqntid|maxntid) \d+(?:, 1)*$|\.(?:maxnreg|minnctapersm)\b")
"""Directives that bound registers and blocks. The shape of blocks with several dimensions counts."""
_MADE = "made "
"""Begins a cache policy by itself: how often it is made does not count."""
_CACHE_HINT = re.compile(r"\.(L[12]::\w+)")
_CACHE_OPERATOR = re.compile(r"((?:ld|st)(?:\.(?!param)\w+)*?|cp\.async)\.(c[asg]|lu|w[bt])\b")
"""Which caches keep what is accessed. `.cv` asks memory again, and is none (PTX ISA, "Cache Operators")."""
_ONLY_HINTS = frozenset({"prefetch", "prefetchu"})
"""Bring lines into a cache, and do no more (PTX ISA, "prefetch"). On an H200 each form ran with five
addresses of no allocation, and none faulted; `prefetch.tensormap` did."""
_CLUSTER = re.compile(r"mapa|%cluster|ctapercluster|explicitcluster|getctarank|multicast")
_OF_CLUSTER = re.compile(r"^((?:@\S+ )?cp\.async\.bulk\.[\w.]*?)shared::cluster(?=\.global)")
"""A block that is alone has no other shared memory of its cluster than its own (PTX ISA, "State Spaces")."""
_IN_BACKGROUND = re.compile(r"wgmma\.mma_async")
"""Their results are there after a wait."""
_REDUCES = re.compile(r"atom\.(?!.*(?:acq|\.cas|\.exch))")
"""Atomics that `red`, which has no result, performs as well (PTX ISA, "red")."""


def read(lines: Sequence[str]) -> Program:
    """Raises ReadError."""
    functions: dict[str, Function] = {}
    declarations: list[str] = []
    unknown: list[str] = []
    name, body, depth, begin = "", list[str](), 0, 0
    is_alone = not any(map(_CLUSTER.search, lines))
    for number, line in enumerate(lines, 1):
        code = _OF_CLUSTER.sub(r"\1shared::cta", line) if is_alone else line
        if depth == 0:
            if code == "{":
                depth, body, begin = 1, [], number
                continue
            header = re.search(r"\.(?:entry|func)\s+(?:\([^()]*\)\s*)?([\w$]+)", code)
            name = header.group(1) if header else name
            declarations.append(code)
            continue
        depth += code.count("{") - code.count("}")
        if depth:
            body.append(code)
        else:
            reader = PtxReader()
            functions[name] = reader.function(body, begin)
            unknown += reader.unknown
            declarations += reader.declared
    if depth or not functions:
        raise ReadError("no function of PTX")
    bounds = (code for code in declarations if code.startswith((".reqntid", ".maxntid")))
    threads = max((math.prod(map(int, re.findall("[0-9]+", code))) for code in bounds), default=0)
    return Program(
        functions, tuple(sorted(_declared(declarations, "\n".join(lines)))), threads, tuple(unknown)
    )


def _declared(declarations: Iterable[str], text: str) -> Iterator[str]:
    """Without directives that bound registers and blocks, and parameters that nothing reads.

    A launch passes parameters by their place.
    """
    place = 0
    for code in declarations:
        is_parameter = code.startswith(".param")
        place = place + 1 if is_parameter else 0
        is_unread = is_parameter and text.count(code.rstrip(",").split()[-1]) == 1
        if not is_unread and not _BOUNDS.match(code):
            plain = re.sub(r" \.ptr(?: \.\w+)*(?: \.align \d+)?", "", code).rstrip(",")
            yield f"{plain} (parameter {place})" if is_parameter else plain


class PtxReader:
    """One function, or one piece of inline assembly of that scope."""

    def __init__(self, scope: str = "") -> None:
        self.unknown: list[str] = []
        self.declared: list[str] = []
        self._scope = scope
        self._scopes: list[dict[str, str]] = []
        """For each open scope, the registers that its names stand for; `` is the scope's own name."""
        self._made = 0
        self._body = Body(scope)

    def function(self, lines: Iterable[str], begin: int = 0) -> Function:
        """`begin`: the number of the line before."""
        for self._body.line, line in enumerate(lines, begin + 1):
            is_one = line.count(";") == 1 and line[-1] == ";" and line[0] != "{"
            for part in [line] if is_one else _PARTS.findall(line):
                self._statement(part.strip().rstrip(";").rstrip())
        self._body.end("ret", None, (), "")
        instructions = [each for block in self._body.blocks for each in block.instructions]
        asynchronous = {
            name
            for each in instructions
            if _IN_BACKGROUND.match(each.operation.name)
            for name in each.results
        }
        copies = [each for each in instructions if each.operation.compute == COPY] if asynchronous else []
        while more := {
            each.results[0] for each in copies if not asynchronous.isdisjoint(each.reads)
        } - asynchronous:  # fmt: skip
            asynchronous |= more
        loaded_late = {
            name
            for each in instructions
            if each.operation.name.startswith("tcgen05.ld.")
            for name in each.results
        }
        blocks = _without_unread(self._body.blocks, instructions)
        return Function(blocks, frozenset(asynchronous), (), frozenset(loaded_late))

    def _statement(self, code: str) -> None:
        if code == "{":
            self._made += 1
            self._scopes.append({"": f"{self._scope}s{self._made}"})
        elif code == "}":
            if self._scopes:
                self._scopes.pop()
        elif label := ":" in code and _LABEL.match(code):
            target = self._target(label.group(1))
            self._body.end(JUMP, None, (target,), target)
            self._statement(code[label.end() :])
        elif code.startswith("."):
            self._directive(code)
        elif code:
            if self._scopes:
                names = {name: new for scope in self._scopes for name, new in scope.items()}
                code = _NAME.sub(lambda match: names.get(match.group(), match.group()), code)
            statement = _parsed(code)
            self.unknown += statement.unknown
            hints = [CACHE_POLICY + hint for hint in statement.hints]
            self.declared += [each for each in hints if _MADE not in each or each not in self.declared]
            self._body.add(statement.instructions)
            if statement.exit:
                kind, guard, target, is_negated = statement.exit
                self._body.leave(kind, guard, self._target(target), is_negated)

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
        scope = f"{self._scopes[-1]['']}." if self._scopes and not name.startswith("$L") else self._scope
        return scope + name


def _without_unread(
    blocks: Sequence[CodeBlock], instructions: Sequence[Instruction]
) -> tuple[CodeBlock, ...]:
    """An atomic operation whose result nobody reads is a `red`."""
    if not any(_REDUCES.match(each.operation.name) for each in instructions):
        return tuple(blocks)
    read = {*(name for each in instructions for name in each.reads), *(block.condition for block in blocks)}

    def reduced(each: Instruction) -> Instruction:
        name = each.operation.name
        if not _REDUCES.match(name) or not read.isdisjoint(each.results):
            return each
        return each._replace(operation=replace(each.operation, name=f"red{name[4:]}"), results=())

    return tuple(block._replace(instructions=tuple(map(reduced, block.instructions))) for block in blocks)


@functools.lru_cache(maxsize=1 << 15)
def _parsed(code: str) -> Line:
    parts = _REGISTER.split(code)
    kinds = parts[1::3]
    return _template(tuple(parts[::3]), tuple(kinds)).named(map(operator.add, kinds, parts[2::3]))


@functools.lru_cache(maxsize=1 << 14)
def _template(texts: tuple[str, ...], kinds: tuple[str, ...]) -> Template:
    """With registers that have the numbers of their places."""
    names = [f"{kind}{place}" for place, kind in enumerate(kinds)]
    return Template(_statement("".join(itertools.chain(*zip(texts, [*names, ""], strict=True)))), names)


def _statement(code: str) -> Line:
    match = _STATEMENT.match(code)
    if not match:
        raise ReadError(f"PTX: {code[:60]}")
    negated, guard, opcode, rest = match.groups()
    if guard and guard.lstrip("-").isdigit():
        if bool(int(guard)) == bool(negated):  # never
            return Line()
        guard = None
    word = opcode.partition(".")[0]
    if word in _ONLY_HINTS and not opcode.endswith(".tensormap"):
        return Line(hints=(opcode,))
    if word in ("bra", "ret", "exit", "trap"):
        return Line(exit=(JUMP if word == "bra" else opcode, guard, rest, bool(negated)))
    parts, hints = split(rest), tuple(_CACHE_HINT.findall(opcode))
    if word == "createpolicy":
        hints = (f"{_MADE}{rest.partition(',')[2]} {' '.join(hints)}",)
    if "L2::cache_hint" in hints:
        parts.pop()  # the policy
    opcode = _CACHE_HINT.sub("", opcode)
    if kept := _CACHE_OPERATOR.match(opcode):
        opcode = f"{kept[1]}{'.ca' * kept[1].startswith('cp')}{opcode[kept.end() :]}"
        hints = (*hints, kept[2])
    if not opcode.startswith("fence"):
        opcode = opcode.replace("shared::cta", "shared")  # PTX ISA: `.shared` alone is `.shared::cta`
    operands, facts = [operand_of(part) for part in parts], facts_of(opcode)
    act = facts.act
    if opcode.startswith("ld.param") and "_param_" in str(operands[-1].address):
        act = None
    elif opcode.startswith("mov") and _VOLATILE.match(str((*operands[-1].values, "")[0])):
        act = Act.OPAQUE
    instructions = computed(facts, operands) if act is None else effect_of(facts, act, operands)
    if guard:
        instructions = [
            each if _is_between(each) else each.guarded(guard, negated=bool(negated)) for each in instructions
        ]
    return Line(tuple(instructions), facts.unknown, hints=hints)


def _is_between(each: Instruction) -> bool:
    """True if only other instructions of the same line read its result, so that it needs no predicate."""
    return not each.operation.effect and all(name.startswith("_") for name in each.results)
