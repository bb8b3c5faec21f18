"""Mutations that change what a text means: every one must be reported as changed."""

from __future__ import annotations

import re
from random import Random

from tests.programs.mutation.editing import (
    Line,
    Mutation,
    anywhere,
    code_lines,
    in_code,
    on_one_line,
    swap_neighbours,
    with_lines,
)

_OPERAND = {
    "mlir": re.compile(r"(?<=[ (\[])%[\w.$-]+(?:#\d+)?(?= ?[,:)\]]| )"),
    "llir": re.compile(r"(?<=[ ])%[\w.$-]+(?=[,)]|$)"),
    "ptx": re.compile(r"%(?:rd|r|f|rs|h|p)\d+\b"),
    "amdgcn": re.compile(r"(?<![\w\[:])[vs]\d+\b"),
    "sass": re.compile(r"\bR\d+\b"),
}
_ADDITIVE = "mul|add|and|or|xor|max|min|fma|mad|select"


def _increment(match: re.Match[str]) -> str:
    return str(int(match.group()) + 1)


def _double(match: re.Match[str]) -> str:
    return str(int(match.group()) * 2 or 1)


def other_operand(kind: str) -> Mutation:
    """One use of a value becomes a use of another value of the text."""

    def mutate(text: str, random: Random) -> str | None:
        lines = [line for line in code_lines(kind, text) if "=" in line.code or kind not in ("mlir", "llir")]
        names = sorted({m.group() for line in lines for m in _OPERAND[kind].finditer(line.code)})
        places = []
        for line in lines:
            start = line.text.find(" = ") + 3 if kind in ("mlir", "llir") else 0
            operands = list(_OPERAND[kind].finditer(line.text, start, line.end))
            places += [(line, match) for match in (operands if start else operands[1:])]
        if not places or len(names) < 2:
            return None
        line, match = random.choice(places)
        alike = [
            n
            for n in names
            if n != match.group() and n[:2].rstrip("0123456789") == match.group()[:2].rstrip("0123456789")
        ]
        if not alike:
            return None
        new = line.text[: match.start()] + random.choice(alike) + line.text[match.end() :]
        return with_lines(text, {line.number: new})

    return mutate


def swap_operands(kind: str, opcodes: str) -> Mutation:
    """The two last operands of an operation that is not commutative."""
    operand = r"(?:%[\w.$-]+|-?[\w.\[\]:]+)"
    pattern = rf"\b(?:{opcodes})(?:[.\w]*)[^,\n]*?({operand}), ({operand})(?=[; :]|$|\))"

    def swap(match: re.Match[str]) -> str:
        a, b = match.start(1) - match.start(), match.end(1) - match.start()
        return (
            match.group()[:a]
            + f"{match.group(2)}, {match.group(1)}"
            + match.group()[b + 2 + len(match.group(2)) :]
        )

    return in_code(kind, pattern, swap)


def common(kind: str, opcodes: str) -> dict[str, Mutation]:
    return {
        "instruction dropped": on_one_line(kind, lambda line: ""),
        "instruction duplicated": on_one_line(kind, lambda line: f"{line.text}\n{line.text}"),
        "neighbours swapped": swap_neighbours(kind),
        "other operand": other_operand(kind),
        "operands swapped": swap_operands(kind, opcodes),
        "integer constant": in_code(kind, r"(?<![\w.%$@!#*+\[\]<>{}-])\d+(?![\w.\]])", _increment),
    }


def attribute_of_a_definition(text: str, random: Random) -> str | None:
    """An attribute less in the group of a function that the text defines."""
    groups = re.findall(r"^define [^\n]* (#\d+) ", text, re.M)
    if not groups:
        return None
    group = random.choice(groups)
    return anywhere(rf"^(attributes {group} = \{{ (?:[^\n]*? )?)(?:[a-z]+|\"[\w-]+\"=\"[^\"]*\") ", r"\1")(
        text, random
    )


def comment_out(kind: str) -> Mutation:
    """An instruction disappears in a comment that holds a quote, as does the one in its place at the end."""

    def comment(line: Line) -> str | None:
        return None if re.search(r"[\"/;#]", line.code.rstrip(";")) else f'/* 16" {line.code} " */'

    return on_one_line(kind, comment)


def exchange_names(pattern: str) -> Mutation:
    """Two definitions exchange their names, and what names them stays as it is."""

    def mutate(text: str, random: Random) -> str | None:
        found = list(re.finditer(pattern, text, re.M))
        if len(found) < 2:
            return None
        one, other = sorted(random.sample(found, 2), key=lambda match: match.start())
        if text[one.end(1) : text.find("\n", one.end())] == text[other.end(1) : text.find("\n", other.end())]:
            return None
        between = text[one.end(1) : other.start(1)]
        return f"{text[: one.start(1)]}{other[1]}{between}{one[1]}{text[other.end(1) :]}"

    return mutate


def call_another(pattern: str) -> Mutation:
    """A call of one function that the text defines becomes a call of another."""

    def mutate(text: str, random: Random) -> str | None:
        calls = list(re.finditer(pattern, text))
        names = sorted({call[1] for call in calls})
        if len(names) < 2:
            return None
        call = random.choice(calls)
        name = random.choice([name for name in names if name != call[1]])
        return text[: call.start(1)] + name + text[call.end(1) :]

    return mutate


def move_label(text: str, random: Random) -> str | None:
    """A label that a branch names goes behind the instruction that follows it."""
    labels = [
        name for name in re.findall(r"^(\$L\w+):", text, re.M) if len(re.findall(rf"\{name}\b", text)) > 1
    ]
    if not labels:
        return None
    return anywhere(rf"^(\{random.choice(labels)}:[^\n]*\n)(\t(?!\.|//)[^\n]*\n)", r"\2\1")(text, random)


MLIR: dict[str, Mutation] = {
    **common("mlir", "subi|subf|divsi|remsi|shli|shrsi|cmpi|cmpf|divf|tt.addptr"),
    "predicate": in_code("mlir", r"\b(?:slt|sle|eq|ogt|olt)\b", lambda m: {"slt": "sle", "sle": "slt", "eq": "ne"}.get(m.group(), "oge")),
    "operation": in_code("mlir", r"\barith\.(?:add|sub|mul|and|or|xor)", lambda m: "arith.max" if "sub" in m.group() else "arith.sub"),
    "element type": in_code("mlir", r"(?<=[x<])f(?:16|32)(?=[,>])", lambda m: "bf16" if "16" in m.group() else "f64"),
    "tensor shape": in_code("mlir", r"(?<=tensor<)\d+", _double),
    "float constant": in_code("mlir", r"\d\.\d{6}e[+-]\d\d", lambda m: "7.250000e+00"),
    "layout attribute": anywhere(r"(?<=sizePerThread = \[)\d+", _double),
    "layout order": anywhere(r"(?<=order = \[)0, 1(?=\])|(?<=order = \[)1, 0(?=\])", lambda m: "1, 0" if m.group() == "0, 1" else "0, 1"),
    "warp count": anywhere(r'(?<="ttg\.num-warps" = )\d+', _double),
    "CTA count": anywhere(r'(?<="ttg\.num-ctas" = )\d+', _double),
    "target": anywhere(r'(?<=ttg\.target = ")(?:cuda:|hip:gfx)\d+', lambda m: m.group() + "1"),
    "argument alignment": anywhere(r"(?<=tt\.divisibility = )16", "8"),
    "argument type": anywhere(r"(?<=!tt\.ptr<)f(?:16|32)(?=> \{tt\.div)", "f64"),
    "mask dropped": in_code("mlir", r"(tt\.load %[\w.$-]+), %[\w.$-]+", r"\1"),
    "eviction policy": in_code("mlir", r"evict_last|evictionPolicy = evict_last", lambda m: m.group().replace("last", "first")),
    "atomic ordering": in_code("mlir", r"\b(?:relaxed|acq_rel)\b", lambda m: "acquire"),
    "atomic scope": in_code("mlir", r"\b(?:gpu|sys)(?=, %)", lambda m: "cta"),
    "atomic operation": in_code("mlir", r"(?<=atomic_rmw )\w+", lambda m: "xor"),
    "program axis": in_code("mlir", r"(?<=get_program_id )[xyz]", lambda m: "y" if m.group() == "x" else "x"),
    "loop bound": anywhere(r"(scf\.for .*? = %[\w.$-]+ to )(%[\w.$-]+)( step )(%[\w.$-]+)", r"\1\4\3\2"),
    "loop arguments swapped": anywhere(r"(iter_args\(%[\w.$-]+ = )(%[\w.$-]+)(, %[\w.$-]+ = )(?!\2[,)])(%[\w.$-]+)", r"\1\4\3\2"),
    "yielded values swapped": anywhere(r"(scf\.yield )(%[\w.$#-]+), (?!\2[ ,])(%[\w.$#-]+)", r"\1\3, \2"),
    "block arguments swapped": anywhere(r"(tt\.reduce\.return )(%[\w.$-]+)", r"\1%absent"),
    "pipelining wait": in_code("mlir", r"(?<=num = )\d+", _increment),
    "swizzle": anywhere(r"(?<=swizzlingByteWidth = )\d+|(?<=maxPhase = )\d+", _double),
    "mma shape": anywhere(r"(?<=instrShape = \[)\d+", _double),
    "dot precision": in_code("mlir", r"inputPrecision = tf32", "inputPrecision = ieee"),
    "fence dropped": anywhere(r"^ +ttng\.fence[^\n]*\n", ""),
    "registers of a partition": anywhere(r"(?<=requestedRegisters = array<i32: )\d+", _increment),
    "warps of a partition": anywhere(r"(?<=num_warps\()\d+", _double),
    "another function called": call_another(r"tt\.call @([\w.]+)"),
    "called function": anywhere(r"(?<=tt\.call @)[\w.]+", lambda m: m.group() + "x"),
    "inline attribute": anywhere(r"noinline = (?:true|false)", lambda m: "noinline = true" if "false" in m.group() else "noinline = false"),
    "assembly text": in_code("mlir", r"shr\.b32|v_lshrrev_b32", lambda m: m.group().replace("shr", "shl")),
    "assembly purity": in_code("mlir", r"pure = (?:true|false)", lambda m: "pure = false" if "true" in m.group() else "pure = true"),
    "message": in_code("mlir", r'(?<=")(?:negative| value)', "other"),
    "convert_layout dropped": anywhere(r"^ +%[\w.$-]+ = ttg\.convert_layout[^\n]*\n", ""),
    "result number": in_code("mlir", r"(?<=#)[01](?=[ ,)])", lambda m: "1" if m.group() == "0" else "0"),
    "memory space": in_code("mlir", r", #smem, mutable", ", #smem"),
    "branch target": in_code("mlir", r"(?<=\^bb)\d+", _increment),
    "scan direction": anywhere(r"reverse = false", "reverse = true"),
    "other axis": anywhere(r"(?<=axis = )\d+", _increment),
}  # fmt: skip

LLIR: dict[str, Mutation] = {
    **common("llir", "sub|sdiv|udiv|shl|lshr|ashr|fsub|fdiv|icmp|fcmp|srem|urem"),
    "wrap flag": in_code("llir", r" n[su]w(?= )", ""),
    "wrap flag added": in_code("llir", r"= (?:add|shl|mul)(?= i)", lambda m: m.group() + " nsw"),
    "disjoint flag": in_code("llir", r" disjoint", ""),
    "fast-math flag": in_code("llir", r"(= f(?:add|mul|sub|div))(?= )", r"\1 contract"),
    "predicate": in_code("llir", r"(?<=icmp )(?:slt|sgt|eq|ne|ult|ugt)", lambda m: {"eq": "ne", "ne": "eq"}.get(m.group(), m.group()[:2] + "e")),
    "float predicate": in_code("llir", r"(?<=fcmp )o", "u"),
    "alignment": in_code("llir", r"(?<=align )\d+", _double),
    "address space": in_code("llir", r"(?<=addrspace\()[134](?=\))", lambda m: "5"),
    "volatile": in_code("llir", r"= load (?=[<i\[fd])", "= load volatile "),
    "loaded type": in_code("llir", r"(?<== load )(?:i32|float|<)", lambda m: {"i32": "float", "float": "i32"}.get(m.group(), "<<")),
    "vector width": in_code("llir", r"(?<=<)[124](?= x )", _double),
    "integer type": in_code("llir", r"\bi32\b", "i16"),
    "operation": in_code("llir", r"(?<== )(?:add|fadd|mul|fmul|and|or|xor)(?= )", lambda m: {"add": "sub", "fadd": "fsub", "mul": "add", "fmul": "fadd"}.get(m.group(), "shl")),
    "assembly text": in_code("llir", r'asm (?:sideeffect )?"[^"]', lambda m: m.group() + "x"),
    "assembly cache modifier": in_code("llir", r"(ld\.global)(?=\.)", r"\1.cg"),
    "assembly predicate": in_code("llir", r'"@(?=\$)', '"@!'),
    "assembly constraint": in_code("llir", r'", "=?r', lambda m: m.group()[:-1] + "f"),
    "assembly side effect": in_code("llir", r"asm sideeffect", "asm"),
    "intrinsic": in_code("llir", r"\.x\(\)|(?<=bfly)\.i32|(?<=llvm\.)m(?:in|ax)num", lambda m: ".y()" if m.group() == ".x()" else m.group() + "2"),
    "incoming values swapped": in_code("llir", r"(phi [\w ]+ )\[ ([^,]+), (%[\w.$-]+) \], \[ (?!\2,)([^,]+), (%[\w.$-]+) \]", r"\1[ \4, \3 ], [ \2, \5 ]"),
    "branch targets swapped": in_code("llir", r"(br i1 [^,]+, label )(%[\w.$-]+), label (?!\2\b)(%[\w.$-]+)", r"\1\3, label \2"),
    "inbounds": in_code("llir", r"getelementptr inbounds", "getelementptr"),
    "element stride": in_code("llir", r"(?<=getelementptr \[)\d+", _double),
    "float constant": in_code("llir", r"(?<=float )\d\.\d+e[+-]\d\d", "7.250000e+00"),
    "float constant in bits": in_code("llir", r"0x[0-9A-F]{9}0000000|f0x[0-9A-F]{8}", lambda m: m.group().replace("B", "C").replace("4", "5")),
    "atomic ordering": in_code("llir", r"\b(?:monotonic|acquire|release|acq_rel|seq_cst)\b", lambda m: "seq_cst" if m.group() != "seq_cst" else "acq_rel"),
    "synchronization scope": in_code("llir", r'(?<=syncscope\(")[\w-]+', lambda m: m.group() + "x"),
    "atomic operation": in_code("llir", r"(?<=atomicrmw )\w+", lambda m: "nand"),
    "fence dropped": anywhere(r"^  fence [^\n]*\n", ""),
    "barrier id": in_code("llir", r"(?<=barrier\.cta\.sync\.aligned\.all\(i32 )\d", _increment),
    "tail call": in_code("llir", r"= tail call", "= call"),
    "calling convention": anywhere(r"call fastcc", "call"),
    "kernel convention": anywhere(r"\b(?:ptx|amdgpu)_kernel ", ""),
    "argument attribute": anywhere(r"(?<= )(?:inreg|nofree|readonly|writeonly)(?= [^\n]*%)", ""),
    "block size": anywhere(r'(?<="nvvm\.reqntid"=")\d+|(?<="amdgpu-flat-work-group-size"="1,)\d+', _double),
    "function attribute": attribute_of_a_definition,
    "target attribute": anywhere(r'(?<="amdgpu-agpr-alloc"=")\d+|(?<="amdgpu-waves-per-eu"=")\d+|(?<="uniform-work-group-size"=")\w+', lambda m: m.group() + "1"),
    "data": anywhere(r'^(@[\w.$]+ = [^\n]*c")(\w)', r"\1Z"),
    "names of data exchanged": exchange_names(r"^(@[\w.$]+) = internal "),
    "another function called": call_another(r"call fastcc [^@\n]*@([\w.]+)"),
    "commented out": comment_out("llir"),
    "linkage of data": anywhere(r"(= internal )constant", r"\1global"),
    "shared memory alignment": anywhere(r"(@global_smem[^\n]*align )\d+", r"\g<1>2"),
    "declaration": anywhere(r"^declare (?![^\n]*@llvm)([^\n]*)\((?=\w)", r"declare \1(i64, "),
    "module flag": anywhere(r'(?<="nvvm-reflect-ftz", i32 )1|(?<="amdhsa_code_object_version", i32 )\d+', lambda m: m.group() + "2"),
    "loop metadata": anywhere(r"llvm\.loop\.unroll\.disable", "llvm.loop.unroll.enable"),
    "alias metadata": anywhere(r", !(?:amdgpu\.noclobber|tbaa|range|alias\.scope|noalias) !\d+", ""),
    "called function": in_code("llir", r'call [^@"\n]*@(?!llvm\.)[\w.$]+', lambda m: m.group() + "x"),
}  # fmt: skip

PTX: dict[str, Mutation] = {
    **common("ptx", "sub|shl|shr|div|setp|selp|rem"),
    "rounding mode": in_code("ptx", r"\.rn\b", ".rz"),
    "predicate negated": in_code("ptx", r"@(?=%p)|@!(?=%p)", lambda m: "@!" if m.group() == "@" else "@"),
    "comparison": in_code("ptx", r"(?<=setp)\.(?:lt|gt|eq|ne|ge|le)\b", lambda m: {".eq": ".ne", ".ne": ".eq"}.get(m.group(), ".eq")),
    "operation": in_code("ptx", r"\b(?:add|mul|and|or|xor|max)(?=\.)", lambda m: "sub" if m.group() != "sub" else "add"),
    "signedness": in_code("ptx", r"\.s32\b", ".u32"),
    "flush to zero": in_code("ptx", r"\b(?:add|mul|fma\.rn|max|sub)(?=\.f32)", lambda m: m.group() + ".ftz"),
    "load cache modifier": in_code("ptx", r"\bld\.global(?=\.[bvuf])", "ld.global.cg"),
    "eviction policy": in_code("ptx", r"evict_last", "evict_first"),
    "address space": in_code("ptx", r"\.(?:global|shared)(?=\.)", lambda m: ".local"),
    "vector width": in_code("ptx", r"\.v[24](?=\.)", lambda m: ".v2" if "4" in m.group() else ".v4"),
    "access width": in_code("ptx", r"(?<=\.)b(?:32|16)\b", lambda m: "b64"),
    "address offset": in_code("ptx", r"(?<= \+ )\d+(?= \])", _increment),
    "atomic ordering": in_code("ptx", r"\.(?:relaxed|acq_rel|acquire|release)\b", lambda m: ".acq_rel" if m.group() != ".acq_rel" else ".relaxed"),
    "scope": in_code("ptx", r"\.(?:gpu|sys|cta)\b", lambda m: ".cluster"),
    "atomic operation": in_code("ptx", r"(?<=\.)(?:add|max|cas|exch)(?=\.[usb]\d)", lambda m: "min"),
    "fence dropped": anywhere(r"^\s+(?:fence|membar)\.[^\n]*\n", ""),
    "barrier id": in_code("ptx", r"(?<=bar\.sync )\s*\d+", lambda m: f"{int(m.group()) + 1}"),
    "barrier dropped": anywhere(r"^\s+(?:bar\.|barrier\.|mbarrier\.)[^\n]*\n", ""),
    "wait count": in_code("ptx", r"(?<=wait_group )(?:0x)?\d+|(?<=wait_group\.sync\.aligned )\d+", lambda m: m.group() + "1"),
    "branch target": in_code("ptx", r"(?<=\$L__BB)\d+_\d+", lambda m: m.group() + "9"),
    "label moved": move_label,
    "mma shape": in_code("ptx", r"m(?:16|64)n\d+k16", lambda m: m.group()[:-2] + "8"),
    "shuffle mode": in_code("ptx", r"\.bfly\b", ".down"),
    "thread count": anywhere(r"(?<=\.reqntid )\d+", _double),
    "register limit": anywhere(r"^(\.reqntid \d+)$", r"\1\n.maxnreg 64"),
    "target": anywhere(r"^\.target sm_\d+", lambda m: m.group() + "1"),
    "register class": anywhere(r"(?<=\.reg \.b)32(?=\s+%r<)", "64"),
    "parameter type": anywhere(r"(?<=\.param \.)u(?:64|32)", lambda m: "f64" if "64" in m.group() else "f32"),
    "parameter alignment": anywhere(r"(\.ptr \.global \.align )\d+", r"\g<1>32"),
    "parameter": anywhere(r"(?<=_param_)[01](?=\])", lambda m: "1" if m.group() == "0" else "0"),
    "data": anywhere(r"(?<=\] = \{)\d+", _increment),
    "shared alignment": anywhere(r"(\.shared \.align )\d+", r"\g<1>2"),
    "another function called": call_another(r"(?<=, )(kernels[\w$]+)(?=, \()"),
    "commented out": comment_out("ptx"),
    "called function": anywhere(r"(?<=, )kernels[\w$]+(?=, \()", lambda m: m.group() + "x"),
    "external function": anywhere(r"^\.extern \.func[^\n]*", lambda m: m.group() + "x"),
    "float constant": in_code("ptx", r"0f[0-9A-F]{8}", lambda m: m.group()[:-2] + ("01" if m.group()[-2:] != "01" else "02")),
    "special register": in_code("ptx", r"%(?:ctaid|tid)\.x", lambda m: m.group()[:-1] + "z"),
    "conversion": in_code("ptx", r"(?<=cvt\.)\w+", lambda m: m.group() + "x"),
    "return dropped": anywhere(r"^\tret;\n", ""),
    "register of inline assembly": anywhere(r"(?<=shr\.b32 )t0", "t1"),
}  # fmt: skip

AMDGCN: dict[str, Mutation] = {
    **common("amdgcn", "v_sub|v_subrev|v_lshlrev|v_cmp|s_sub|v_cndmask|s_lshl|s_cmp"),
    "vector register": in_code("amdgcn", r"\bv\d+\b", lambda m: f"v{int(m.group()[1:]) + 1}"),
    "scalar register": in_code("amdgcn", r"\bs\d+\b", lambda m: f"s{int(m.group()[1:]) + 1}"),
    "register range": in_code("amdgcn", r"[vs]\[\d+:\d+\]", lambda m: m.group().replace(":", ":1")),
    "wait count": in_code("amdgcn", r"(?<=cnt\()\d+", _increment),
    "wait dropped": anywhere(r"^\ts_wait[^\n]*\n", ""),
    "barrier dropped": anywhere(r"^\ts_barrier[^\n]*\n", ""),
    "offset": in_code("amdgcn", r"(?<=offset:)\d+", _increment),
    "cache modifier": in_code("amdgcn", r"\b(?:sc0|sc1|nt)\b", lambda m: "glc"),
    "cache modifier added": in_code("amdgcn", r"(?:global|buffer)_(?:load|store)_[^\n;]*(?<=\S)", lambda m: m.group() + " nt"),
    "opcode": in_code("amdgcn", r"\bv_(?:add|mul|sub)_", lambda m: "v_max_"),
    "comparison": in_code("amdgcn", r"(?<=cmp_)(?:lt|gt|eq|ne|le|ge)", lambda m: "eq" if m.group() != "eq" else "ne"),
    "access width": in_code("amdgcn", r"dwordx?\d?\b", lambda m: "dwordx3"),
    "float literal": in_code("amdgcn", r"0x[0-9a-f]{8}", lambda m: m.group()[:-1] + ("1" if m.group()[-1] != "1" else "2")),
    "negation": in_code("amdgcn", r"(?<=, )(?=v\d+$)", "-"),
    "clamp": in_code("amdgcn", r" clamp", ""),
    "encoding": in_code("amdgcn", r"_e32\b", "_e64"),
    "lane control": in_code("amdgcn", r"(?<=row_shr:)\d|(?<=row_mask:)0x\w", lambda m: m.group() + "1"),
    "branch target": in_code("amdgcn", r"(?<=\.LBB)\d+_\d+", lambda m: m.group() + "9"),
    "branch condition": in_code("amdgcn", r"(?<=s_cbranch_)(?:execz|scc[01]|vcc\w+)", lambda m: "execnz" if m.group() != "execnz" else "execz"),
    "mfma shape": in_code("amdgcn", r"32x32x\d+|16x16x\d+", lambda m: m.group() + "0"),
    "nop count": in_code("amdgcn", r"(?<=s_nop )\d+", _increment),
    "priority": in_code("amdgcn", r"(?<=s_setprio )\d", _increment),
    "registers of the kernel": anywhere(r"(?<=\.amdhsa_next_free_vgpr )\d+", _increment),
    "accumulator offset": anywhere(r"(?<=\.amdhsa_accum_offset )\d+", _double),
    "scratch": anywhere(r"(?<=\.amdhsa_private_segment_fixed_size )\d+", _increment),
    "preloaded arguments": anywhere(r"(?<=kernarg_preload_length )\d+", _increment),
    "float mode": anywhere(r"(?<=\.amdhsa_ieee_mode )\d", lambda m: "0" if m.group() == "1" else "1"),
    "denormal mode": anywhere(r"(?<=\.amdhsa_float_denorm_mode_32 )\d", "1"),
    "argument size": anywhere(r"(?<=\.kernarg_segment_size: )\d+", _increment),
    "argument kind": anywhere(r"(?<=\.value_kind:)\s+by_value", "      global_buffer"),
    "work group size": anywhere(r"(?<=\.max_flat_workgroup_size: )\d+", _double),
    "processor": anywhere(r'(?<=gfx9)\w\w(?="$)', "0a"),
    "data": anywhere(r'(?<=\.asciz)(\s+")\w(?![^\n]*;)', r"\1Z"),
    "alignment": anywhere(r"(?<=\.p2align)\t\d", "\t3"),
    "another function called": call_another(r"(kernels\.[\w.]+)@rel32@lo"),
    "commented out": comment_out("amdgcn"),
    "section switch dropped": anywhere(r"^\t\.text\n", ""),
    "setting in a debug section": anywhere(r'^(\t\.section\t\.debug_\w+,[^\n]*\n)', r"\1\t.set exec_mask, 7\n"),
    "resource named in code": anywhere(r"^\t(v_mov_b32_e32 v\d+), [^\n]*?(?=\n)", r"\t\1, amdgpu.max_num_vgpr"),
    "called function": in_code("amdgcn", r"kernels\.[\w.]+(?=@)", lambda m: m.group() + "x"),
}  # fmt: skip

SASS: dict[str, Mutation] = {
    **common("sass", "ISETP|IADD3|SHF|SEL|FSETP"),
    "register": in_code("sass", r"\bR\d+\b", lambda m: f"R{int(m.group()[1:]) + 1}"),
    "uniform register": in_code("sass", r"\bUR\d+\b", lambda m: f"UR{int(m.group()[2:]) + 1}"),
    "predicate negated": in_code("sass", r"@(?=U?P)|@!(?=U?P)", lambda m: "@!" if m.group() == "@" else "@"),
    "comparison": in_code("sass", r"(?<=SETP\.)[GL][TE]", lambda m: "EQ"),
    "immediate": in_code("sass", r"(?<=, )0x[0-9a-f]+(?=[, ])", lambda m: m.group() + "1"),
    "constant": in_code("sass", r"(?<=c\[0x0\]\[0x)[0-9a-f]+", lambda m: m.group() + "0"),
    "access width": in_code("sass", r"\.(?:64|128)\b", ".32"),
    "address offset": in_code("sass", r"(?<=\+0x)[0-9a-f]+(?=\])", lambda m: m.group() + "0"),
    "reuse flag": in_code("sass", r"\.reuse", ""),
    "rounding": in_code("sass", r"\.(?:RZ|RN|FTZ)\b", ".RM"),
    "barrier": anywhere(r"^ +/\*[0-9a-f]+\*/ +BAR[^\n]*\n", ""),
    "opcode": in_code("sass", r"\b(?:FADD|FMUL|IMAD|LOP3|MOV|SHF)\b", lambda m: "FMNMX"),
    "branch target": anywhere(r"(?<=\(\.L_x_)\d+(?=\) ;)", lambda m: m.group() + "9"),
}  # fmt: skip

BY_DIALECT = {"mlir": MLIR, "llir": LLIR, "ptx": PTX, "amdgcn": AMDGCN, "sass": SASS}
