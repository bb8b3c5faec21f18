"""Reads canonical LLVM IR as blocks of instructions. Pure.

Inline assembly for NVIDIA is read as PTX, with the operands of the call for `$0`, `$1`, … Source: LLVM
LangRef; llvm/IR/IntrinsicsNVVM.td and IntrinsicsAMDGPU.td for what intrinsics do.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from irdiff.ir.body import BRANCH, JUMP, Body, Phis, with_copies
from irdiff.ir.program import (
    COPY,
    Act,
    Effect,
    Function,
    Operand,
    Program,
    ReadError,
    Verbatim,
    instruction,
)
from irdiff.ir.ptx.operands import split
from irdiff.ir.ptx.program_reader import PtxReader

_DEFINE = re.compile(r"define .*?(\S+ @[\w.$\"]+)\((.*)\)")
_LABEL = re.compile(r"%?([-\w.$]+):$")
_ASSIGNED = re.compile(r"(?:(%[-\w.$]+) = )?(?:(?:tail|musttail|notail) )?(\w+) ?(.*)", re.S)
_SPACES = {"1": "global", "3": "shared", "4": "constant", "5": "local", "7": "global", "8": "global"}
_FLAGS = re.compile(r"\b(?:nnan|ninf|nuw|nsw|exact|nneg|samesign|inbounds|nusw|inrange)\b ?")
_FAST = re.compile(r"\b(?:fast|nsz|arcp|contract|afn|reassoc)\b ?")
_METADATA = re.compile(r", !(\w[\w.]*) (?:!\w+|!\{[^}]*\})|,? #[0-9a-f]+$|, align \d+(?=$|, !)")
_PROMISES = frozenset(
    {
        "nontemporal",
        "tbaa",
        "noalias",
        "alias.scope",
        "range",
        "noundef",
        "srcloc",
        "prof",
        "align",
        "invariant.load",
    }
)
_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "shl": "shl", "and": "and",
    "or": "or", "xor": "xor", "lshr": "shr", "ashr": "sar",
}  # fmt: skip
_CASTS = frozenset({"zext", "sext", "trunc"})
_PURE = re.compile(
    r"[us](?:div|rem)|(?:ptrtoint|inttoptr|addrspacecast|fp\w+|[us]itofp|bitcast)$|f(?:add|sub|mul|div|rem"
    r"|neg)"
)
_FLOAT = re.compile(r"f(?:add|sub|mul|div|rem|neg|cmp|p\w+)$|[us]itofp$")
_SYNC = re.compile(
    r"barrier|bar\.warp|fence|membar|\.wait|commit|mbarrier|s\.waitcnt|asyncmark|sched|setprio|s\.sleep"
    r"|griddep|setmaxnreg"
    r"|iglp|tcgen05\.(?:alloc|dealloc|relinquish)|arrive|nanosleep|s\.sendmsg|s\.setreg"
)
_ACCESSES = (
    (re.compile(r"load\.(?:async\.)?(?:to\.)?lds|nvvm\.(?:cp\.|tensorm)|mem(?:cpy|set|move)"), Act.COPY, ""),
    (re.compile(r"buffer\.load|\.(?:global|flat)\.load\.tr|nvvm\.ld[gu]"), Act.LOAD, "global"),
    (re.compile(r"buffer\.store"), Act.STORE, "global"),
    (re.compile(r"buffer\.atomic|global\.atomic"), Act.ATOMIC, "global"),
    (re.compile(r"ds\.read|nvvm\.ldmatrix"), Act.LOAD, "shared"),
    (re.compile(r"nvvm\.stmatrix"), Act.STORE, "shared"),
    (re.compile(r"nvvm\.(?:tcgen05|wgmma)"), Act.MATRIX, ""),
    (re.compile(r"shfl|vote|match|redux|nvvm\.mma|\.dpp|perm(?:ute|lane)|swizz|read(?:lane|f)|ballot"),
     Act.LANES, ""),
)  # fmt: skip
_PURE_CALL = re.compile(
    r"__nvvm_reflect|llvm\.(?:nvvm\.(?:read\.ptx\.sreg(?!.*(?:clock|globaltimer))|f|add|mul|div|r?sqrt|rcp"
    r"|ex2|lg2|sin|cos"
    r"|tanh|i2|ui2|d2|abs|round|trunc|ceil|saturate|mapa|elect|idp|prmt|bf2|u?ll2|cvt|isspacep|bitcast|lohi)"
    r"|amdgcn\.(?:work|mfma|s?mfmac|s?wmma|swmmac|exp2|log|rcp|rsq|sqrt|fract|ldexp|frexp|mbcnt|perm\b|cvt"
    r"|[us]?bfe|alignb"
    r"|fmed3|dispatch|implicitarg|kernarg|make\.buffer|[fsu]dot|sudot|sin|cos|class|mul|wavefront|bitop3"
    r"|prng|mad|lerp|sffbh)"
    r"|fma|fmuladd|exp|log|sqrt|sin|cos|tan|pow|fabs|m(?:ax|in)(?:num|imum)|[su](?:max|min)|abs|ct(?:pop|lz"
    r"|tz)|fsh[lr]"
    r"|bswap|bitreverse|copysign|floor|ceil|trunc|rint|round|nearbyint|canonicalize|is\.fpclass"
    r"|vector\.(?:reduce|extract|insert)"
    r"|[us](?:add|sub|mul)\.(?:sat|with)|ldexp|frexp|[us]mul|is\.constant|ptrmask)"
)
_NOTHING = re.compile(r"llvm\.(?:assume|lifetime|dbg|invariant|experimental\.noalias|donothing)")
_COMMUTES = re.compile(
    r"f(?:add|mul)$|llvm\.(?:fma|fmuladd|m(?:ax|in)(?:num|imum)|[su](?:max|min)|nvvm\.(?:fma|add|mul|fmin"
    r"|fmax))\b"
)
_FLOAT_CALL = re.compile(
    r"fma|exp|log|sqrt|sin|cos|tan|pow|fabs|m(?:ax|in)(?:num|imum)|rcp|rsq|ex2|lg2|div|mfma|mma|fdot|round"
    r"|trunc|rint|cvt"
    r"|f2|i2|ff2|\.(?:add|mul)\.r"
)
_CALL = re.compile(
    r"(.*?)(?:(@[\w.$\"]+)|(%[-\w.$]+)|asm (?:sideeffect |alignstack |inteldialect )*\"((?:[^\"\\]"
    r"|\\.)*)\", \"([^\"]*)\")"
    r"\((.*)\)",
    re.S,
)
_ATTRIBUTE = re.compile(
    r"(?:noundef|nonnull|read\w+|writeonly|nocapture|noalias|nofree|immarg|signext|zeroext|inreg|returned"
    r"|captures\([^)]*\)"
    r"|align \d+|dereferenceable\(\d+\)|range\([^)]*\)) "
)
_TYPE = re.compile(
    r"(?:ptr(?: addrspace\(\d+\))?|i\d+|half|bfloat|float|double|void|metadata|<\d+ x [^<>]*>"
    r"|\[\d+ x [^\[\]]*\]|\{[^{}]*\})"
    r"(?: |(?=[,)])|$)"
)
_ADDRESS_OF = re.compile(
    r"getelementptr (?:\w+ )*\(i8, ptr(?: addrspace\(\d\))? (@[\w.$\"]+), i(\d+) (-?\d+)\)$"
)
_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8}


def read(lines: Sequence[str]) -> Program:
    """Raises ReadError."""
    functions: dict[str, Function] = {}
    declarations: list[str] = []
    unknown: list[str] = []
    body: list[str] | None = None
    name, parameters, begin = "", tuple[str, ...](), 0
    for number, code in enumerate(lines, 1):
        if body is None and code.startswith("define "):
            definition = _DEFINE.match(code)
            if not definition:
                raise ReadError(f"LLVM IR: {code[:60]}")
            name, body, begin = definition.group(1).rpartition("@")[2], [], number
            declared = split(definition.group(2))
            # attributes, which LLVM infers, are promises on the code that is compared
            declarations.append(f"{definition.group(1)}({', '.join(_type(part)[0] for part in declared)})")
            parameters = tuple(part.rpartition(" ")[2] for part in declared)
        elif body is not None and code == "}":
            reader = _IrReader()
            functions[name] = reader.function(parameters, body, begin)
            unknown += reader.unknown
            declarations += reader.declared
            body = None
        elif body is not None:
            body.append(code)
        elif code.startswith("@"):
            declarations.append(code)
    if not functions:
        raise ReadError("no function of LLVM IR")
    return Program(functions, tuple(sorted(declarations)), 0, tuple(unknown))


class _IrReader:
    """One function."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.declared: list[str] = []
        self._made = 0
        self._body = Body()

    def function(self, parameters: tuple[str, ...], body: Sequence[str], begin: int) -> Function:
        """`begin`: the number of the line before."""
        phis: Phis = defaultdict(list)
        self._body.label = ""
        for number, code in _joined(body):
            self._body.line = begin + number
            assigned = _ASSIGNED.match(code)
            if at_label := _LABEL.match(code):
                self._body.label = "%" + at_label.group(1)
            elif not assigned:
                raise ReadError(f"LLVM IR: {code[:60]}")
            elif assigned.group(2) == "phi":
                incoming = re.findall(r"\[ (.*?), (%[-\w.$]+) \]", assigned.group(3))
                phis[self._body.label].append(
                    (assigned.group(1), {source: self._bare(value) for value, source in incoming})
                )
            elif end := self._exit(assigned.group(2), assigned.group(3)):
                self._body.end(*end, "")
            else:
                result = assigned.group(1)
                self._instruction((result,) if result else (), assigned.group(2), assigned.group(3))
        return Function(tuple(with_copies(self._body.blocks, phis)), frozenset(), parameters)

    def _exit(self, word: str, rest: str) -> tuple[str, Operand | None, tuple[str, ...]] | None:
        labels = tuple(re.findall(r"label (%[-\w.$]+)", rest))
        if word == "br" and len(labels) == 1:
            return JUMP, None, labels
        if word == "br":
            return BRANCH, self._bare(split(rest)[0].removeprefix("i1 ")), labels
        if word == "switch":
            numbers = " ".join(re.findall(r"i\d+ (-?\d+), label", rest))
            return f"switch {numbers}", self._value(split(rest)[0]), labels
        if word in ("ret", "unreachable"):
            return word, self._value(rest) if word == "ret" and rest != "void" else None, ()
        return None

    def _add(
        self, name: str, results: tuple[str, ...], operands: Sequence[Operand],
        compute: tuple[str, int] | None = None, *, commutes: bool = False, effect: Effect | None = None,
        is_float: bool = False,
    ) -> None:  # fmt: skip
        self._body.add(
            [
                instruction(
                    name, results, operands, compute, effect=effect, commutes=commutes, is_float=is_float
                )
            ]
        )

    def _instruction(self, results: tuple[str, ...], word: str, rest: str) -> None:
        kept = [name for name in _METADATA.findall(rest) if name and name not in _PROMISES]
        rest = _METADATA.sub("", rest) if word != "fence" else rest
        if word == "call":
            self._call(results, rest)
        elif word in ("load", "store", "atomicrmw", "cmpxchg"):
            self._memory(results, word, rest, " ".join(kept))
        elif word == "fence":
            self._add(f"fence {rest}", (), (), effect=Effect(Act.SYNC))
        elif word in _BINARY:
            type_, operands = self._operands(rest := _FLAGS.sub("", rest))
            name = "add" if rest.startswith("disjoint ") else word
            compute = (_BINARY[name], _width(type_)) if _width(type_) else None
            commutes = word in ("add", "mul", "and", "or", "xor")
            self._add(word if compute else f"{word} {type_}", results, operands, compute, commutes=commutes)
        elif word in ("icmp", "fcmp"):
            fast = "".join(_FAST.findall(rest))
            kind, _, rest = _FAST.sub("", _FLAGS.sub("", rest)).partition(" ")
            type_, operands = self._operands(rest)
            compute = (kind, _width(type_)) if _width(type_) and word == "icmp" else None
            name = f"{word} {kind}" if compute else f"{word} {kind} {type_} {fast}".strip()
            self._add(name, results, operands, compute, is_float=word == "fcmp")
        elif word == "select":
            rest = _FAST.sub("", _FLAGS.sub("", rest))
            scalar = ("select", 0) if rest.startswith("i1 ") else None
            self._add("select", results, [self._value(part) for part in split(rest)], scalar)
        elif word == "getelementptr":
            self._address(results, _FLAGS.sub("", rest))
        elif word in ("extractvalue", "extractelement", "insertvalue", "insertelement"):
            self._element(results, word, split(rest))
        elif word == "shufflevector":
            self._shuffle(results, split(rest))
        elif word in _CASTS or word == "freeze" or _PURE.match(word):
            self._plain(results, word, rest)
        else:
            self.unknown += [word] if word != "alloca" else []
            operands, name = re.findall(r"%[-\w.$]+", rest), re.sub(r"%[-\w.$]+", "%", rest)
            self._add(f"{word} {name}", results, operands, effect=Effect(Act.OPAQUE))

    def _plain(self, results: tuple[str, ...], word: str, rest: str) -> None:
        fast, rest = "".join(_FAST.findall(rest)), _FAST.sub("", _FLAGS.sub("", rest))
        source, _, target = rest.rpartition(" to ")
        type_, operands = self._operands(source or rest)
        name, compute = f"{word} {type_} to {target} {fast}" if source else f"{word} {type_} {fast}", None
        from_, to = _width(type_), _width(target)
        if word in _CASTS and from_ and to:
            compute = ("trunc", to) if word == "trunc" else (word, from_ * 1000 + to)
        elif word == "freeze" or (word == "bitcast" and "<" not in type_[0] + target[0]):
            compute = COPY
        self._add(name.strip(), results, operands, compute, commutes=bool(_COMMUTES.match(word)),
                  is_float=bool(_FLOAT.match(word)))  # fmt: skip

    def _address(self, results: tuple[str, ...], rest: str) -> None:
        parts = split(rest)
        size, width = _bytes(parts[0]), 32 if "addrspace(3)" in parts[1] or "addrspace(5)" in parts[1] else 64
        base, operands = self._value(parts[1]), [self._value(part) for part in parts[2:]]
        if not size or len(operands) != 1 or parts[1].startswith("<") or parts[2].startswith("<"):
            self._add(f"getelementptr {parts[0]}", results, (base, *operands))
            return
        index, own = operands[0], _width(_type(parts[2])[0])
        if isinstance(index, str) and own != width:
            index, wide = f"{results[0]}.wide", index
            compute = ("sext", own * 1000 + width) if own < width else ("trunc", width)
            self._add(compute[0], (index,), (wide,), compute)
        self._add("getelementptr", results, (index, size, base), ("mad", width))

    def _element(self, results: tuple[str, ...], word: str, parts: list[str]) -> None:
        is_new = word.startswith("insert")
        values = [self._value(part) for part in parts[: 1 + is_new]]
        places = parts[1 + is_new :]
        place = self._value(places[0]) if word.endswith("element") else int(places[0])
        if len(places) == 1 and isinstance(place, int):
            self._add(word, results, values, ("put" if is_new else "part", place))
        else:
            self._add(f"{word} {places[1:]}", results, (*values, place))

    def _shuffle(self, results: tuple[str, ...], parts: list[str]) -> None:
        mask = re.findall(r"i32 (\d+|poison|undef)", parts[2].partition("> ")[2])
        values, count = [self._value(part) for part in parts[:2]], re.match(r"<(\d+) x", parts[0])
        if not mask or not count:
            self._add(f"shufflevector {parts[2]}", results, values)
            return
        elements: list[Operand] = []
        for index, place in enumerate(mask):
            elements.append(f"{results[0]}.{index}" if place.isdigit() else Verbatim("poison"))
            if place.isdigit():
                which, at = divmod(int(place), int(count.group(1)))
                self._add("extractelement", (f"{results[0]}.{index}",), (values[which],), ("part", at))
        self._add("shufflevector", results, elements, ("pack", 0))

    # memory

    def _memory(self, results: tuple[str, ...], word: str, rest: str, kept: str) -> None:
        modifiers = re.match(r"(?:(?:volatile|atomic|weak) )*", rest)
        parts = split(rest[modifiers.end() if modifiers else 0 :])
        ordering = re.search(
            r'(?: syncscope\("[^"]*"\))?(?: (?:unordered|monotonic|acquire|release|acq_rel|seq_cst))+$',
            parts[-1],
        )
        parts[-1] = parts[-1][: ordering.start()] if ordering else parts[-1]
        operation, place = "", 1 if word in ("load", "store") else 0
        if word == "atomicrmw":
            operation, _, parts[0] = parts[0].partition(" ")
        others = [part for index, part in enumerate(parts) if index != place]
        type_ = others[0] if word == "load" else _type(others[0])[0]
        space = re.match(r"ptr(?: addrspace\((\d+)\))?", parts[place])
        kind = _SPACES.get(space.group(1) or "", "") if space else ""
        words = modifiers.group() if modifiers else ""
        name = f"{word} {words}{operation} {type_}{ordering.group() if ordering else ''} {kept}"
        act = {"load": Act.LOAD, "store": Act.STORE}.get(word, Act.ATOMIC)
        act = Act.SYNC if "atomic" in words else Act.OPAQUE if "volatile" in words else act
        effect = Effect(act, kind, ((self._value(parts[place]), 0),), _bytes(type_))
        operands = [self._value(part) for part in others[(word == "load") :]]
        self._add(" ".join(name.split()), results, operands, effect=effect, is_float=operation[:1] == "f")

    def _call(self, results: tuple[str, ...], text: str) -> None:
        call = _CALL.match(text)
        if not call:
            raise ReadError(f"LLVM IR: {text[:60]}")
        before, callee, pointer, template, constraints, arguments = call.groups()
        texts = split(arguments)
        operands = [self._value(_ATTRIBUTE.sub("", part)) for part in texts]
        if template is not None:
            self._assembly(results, template, constraints, operands)
            return
        name, fast = (callee or "").strip('@"'), "".join(_FAST.findall(before))
        if _NOTHING.match(name):
            return
        is_intrinsic = name.startswith("llvm.")
        access = next((access for access in _ACCESSES if is_intrinsic and access[0].search(name)), None)
        effect = Effect(Act.SYNC) if is_intrinsic and _SYNC.search(name) else None
        if access and not effect:
            _, act, space = access
            place = next((n for n, each in enumerate(texts) if each.startswith("ptr")), 0)
            is_access = act in (Act.LOAD, Act.STORE, Act.ATOMIC)
            address = operands[place:] if is_access else []
            operands = operands[:place] if is_access else operands
            effect = Effect(act, space, tuple((each, 0) for each in address))
        elif not effect and not _PURE_CALL.match(name):
            self.unknown.append(f"call of {name}" if callee else "indirect call")
            operands += [pointer] if pointer else []
            effect = Effect(Act.OPAQUE)
        is_float = is_intrinsic and (not effect or effect.act is Act.MATRIX or "mma" in name)
        self._add(
            f"{name} {fast}".strip(), results, operands, effect=effect,
            commutes=bool(_COMMUTES.match(name)) and len(operands) > 1,
            is_float=is_float and bool(_FLOAT_CALL.search(name)),
        )  # fmt: skip

    def _assembly(
        self, results: tuple[str, ...], template: str, constraints: str, operands: list[Operand]
    ) -> None:
        self._made += 1
        scope = f"%asm{self._made}."
        text = re.sub(r"\\([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), template)
        text = re.sub(r"//[^\n]*|\$\$", "", text)
        slots = [part for part in constraints.split(",") if not part.startswith("~")]
        outputs = [f"{scope}{n}" for n, part in enumerate(slots) if part.startswith("=")]
        tied = {int(part): n for n, part in enumerate(slots[len(outputs) :]) if part.isdigit()}
        names = [*outputs, *(each.text if isinstance(each, Verbatim) else str(each) for each in operands)]
        code = re.sub(
            r"\$(\d+)|\$\{(\d+)(?::\w+)?\}", lambda match: names[int(match.group(1) or match.group(2))], text
        )
        reader = PtxReader(scope)
        is_simple = bool(code.strip()) and not (tied and "wait" in code) and "bra" not in code
        try:
            blocks = reader.function([part.strip() for part in code.split("\n") if part.strip()]).blocks
        except (ReadError, IndexError):
            is_simple, blocks = False, ()
        if not is_simple or reader.unknown or len(blocks) != 1:  # in order with all, known by its text alone
            self.unknown += reader.unknown
            name = " ".join(re.sub(r"\$(\d+)", "$", text).split())
            self._add(f"asm {name}", results, (*operands, Verbatim(template)), effect=Effect(Act.SYNC))
            return
        for place, index in tied.items():
            self._add("mov", (outputs[place],), (operands[index],), COPY)
        self.declared += reader.declared
        self._body.add(blocks[0].instructions)
        if outputs:
            self._add("mov", results, outputs, ("pack" if len(outputs) > 1 else "copy", 0))

    # operands

    def _operands(self, rest: str) -> tuple[str, list[Operand]]:
        type_, rest = _type(rest.removeprefix("disjoint "))
        return type_, [self._bare(part) for part in split(rest)]

    def _value(self, text: str) -> Operand:
        """The operand without its type."""
        return self._bare(_type(text)[1])

    def _bare(self, text: str) -> Operand:
        if text[:1] == "%" and "," not in text:
            return text
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        if text in ("true", "false", "null"):
            return int(text == "true")
        if match := _ADDRESS_OF.match(text):
            self._made += 1
            name, width = f"%address{self._made}", 32 if "addrspace(3)" in text else 64
            self._add(
                "getelementptr", (name,), (Verbatim(match.group(1)), int(match.group(3))), ("add", width)
            )
            return name
        if "%" in text:
            raise ReadError(f"LLVM IR: {text[:60]} as one operand")
        return Verbatim(text)


# words of one line


def _joined(body: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1.

    A `switch` takes several lines; an entry without a label gets the number that phi nodes have for it.
    """
    if body and not _LABEL.match(body[0]):
        labels = {match.group(1) for code in body if (match := _LABEL.match(code))}
        phis = (re.findall(r", %([-\w.$]+) \]", code) for code in body if " = phi " in code)
        yield 0, f"{next((name for names in phis for name in names if name not in labels), 'entry')}:"
    held = ""
    for number, code in enumerate(body, 1):
        held = f"{held} {code}" if held else code
        if held.startswith("switch ") and "]" not in code:
            continue
        if held:
            yield number, held
        held = ""


def _type(text: str) -> tuple[str, str]:
    """The type at the beginning of an operand, and the rest."""
    if match := _TYPE.match(text):
        return match.group().strip(), text[match.end() :]
    depth = 0
    for index, character in enumerate(text if text[:1] in "<[{" else ""):
        depth += (character in "<[{(") - (character in ">]})")
        if not depth:
            return text[: index + 1], text[index + 2 :]
    type_, _, rest = text.partition(" ")
    return type_, rest


def _width(type_: str) -> int:
    """Bits of an integer or a pointer; 0 for any other type."""
    if type_[:1] == "i" and type_[1:].isdigit():
        return int(type_[1:])
    return (32 if "(3)" in type_ or "(5)" in type_ else 64) if type_.startswith("ptr") else 0


@functools.lru_cache(maxsize=1 << 10)
def _bytes(type_: str) -> int:
    """0 where that is not known."""
    if match := re.fullmatch(r"[<\[](\d+) x (.*)[>\]]", type_):
        return int(match.group(1)) * _bytes(match.group(2))
    return (_width(type_) + 7) // 8 or _SIZES.get(type_, 0)
