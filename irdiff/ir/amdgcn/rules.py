r"""Canonical form of AMDGCN assembly (of LLVM's AMDGPU backend).

Rules (before → after; why the meaning is kept; source: LLVM's "User Guide for AMDGPU Backend" and the
GNU assembler's directives)
- `s_endpgm ; x`, `// x`, `/* x */`, `# x` → without: comments, as LLVM's AsmLexer reads them.
- `.loc`, `.file`, `.ident`, `.cfi_*`, debug sections and those that hold comments only → dropped: line
  tables, unwind and debug information; none of it is loaded (`amdgcn_sections`).
- `.size f, .Lfunc_end0-f` → dropped: the length of the symbol, which follows from the code.
- `.LBB0_3`, `.Ltmp1`, `.Lfunc_begin0` → `.L0` by first use; unnamed ones dropped: labels name places.
- `.set .Lf.num_vgpr, 8` and the like, `.set amdgpu.max_num_*` → header, as long as nothing but each other
  names them: then they reach neither an instruction nor a descriptor. Otherwise all are kept.
- `.amdgcn_target "amdgcn-amd-amdhsa--gfx942"` → `.amdgcn_target gfx942`, spelling to the header: the
  triple was renamed, the processor and its features decide the code. The same in `amdhsa.target`.
- the name of the text's one kernel → `__kernel__` where it is declared, described and labelled, as long as
  nothing else names it.
- the name of a function that no `.globl`, `.weak` or the like shows to the linker → `function__0`, together
  with the names of its resources (`symbols`). Quoted names stay.
- runs of blanks → one blank.

A text with macros or repetitions is compared as it is: they put names together.

Kept on purpose: physical registers, all `.amdhsa_*`, metadata (it is the launch ABI), data, alignment,
fill, every other label and symbol, and the order of everything.
"""

from __future__ import annotations

import re

from irdiff.ir.amdgcn.sections import drop_unloaded_sections
from irdiff.ir.canonical import Numbering, Rows, unrecognized
from irdiff.ir.lexing import (
    AMDGCN,
    HIDDEN,
    KERNEL,
    Strings,
    UnclearError,
    collapse_spaces,
    drop_unused_labels,
)
from irdiff.ir.symbols import Renamed, rename_functions

_STRING = f"[{HIDDEN}]"
_QUOTED_TARGET = re.compile(rf"(\n\.amdgcn_target )({_STRING})(?=\n)")
_DROPPED = re.compile(
    r"\n\.(?:loc \d+ \d+[^\n]*"
    rf"|file (?:\d+ )?(?:{_STRING} ?)++(?:md5 \w+)?(?: ?source {_STRING})?"
    rf"|ident {_STRING}|cfi_\w+(?: [^\n]*)?"
    rf"|size ([\w.$]+|{_STRING}), \.Lfunc_end\d+-\1)(?=\n)"
)
_PUTS_TOGETHER = re.compile(r"\n\.(?:macro|rept|rep|irp|irpc|altmacro|include)\b")
_LABEL = r"\.L(?:BB\d+_|tmp|func_begin|func_end)?\d+(?![\w.$])"
_NAME = re.compile(f"({_LABEL})")
_COUNTED = (
    r"num_[av]gpr|numbered_sgpr|num_named_barrier|private_seg_size|uses_vcc|uses_flat_scratch"
    r"|has_dyn_sized_stack|has_recursion|has_indirect_call"
)
_RESOURCE = re.compile(rf"\n\.set (\.?[\w.$]+\.(?:{_COUNTED})|amdgpu\.max_num_\w+), ([^\n]*)")
_NAMES_RESOURCE = re.compile(rf"\.(?:{_COUNTED}|max_num_\w+)(?![\w.$])")
_RESOURCE_OF = re.compile(rf"\.L(?P<function>.+)\.(?:{_COUNTED})")
_SYMBOL = re.compile(r"([\w.$]++)")
_QUOTES_CONTENT = re.compile(r"\.(?:asci[iz]|string|section|ident|file|amdgcn_target)\b")
_TARGET = re.compile(r"(\n(?:\.amdgcn_target |amdhsa\.target: ))('?[\w.-]+-(gfx\w+(?::\w+[+-])*)'?)(?=\n)")
_KERNEL_NAME = re.compile(r"\n\.amdhsa_kernel ([\w.$]+)(?=\n)")
_FUNCTION = re.compile(r"\n\.type ([\w.$]++), ?@function(?=\n)")
_SHOWN = re.compile(r"\n\.(?:globl|global|weak|hidden|protected|internal|comm|symver) ([^\n]*+)")
_METADATA = "\n.amdgpu_metadata\n"
_RECOGNIZED = re.compile(
    r"^(?:\.amdgcn_target|\.amdhsa_|s_endpgm|s_(?:load|waitcnt|mov|setpc)|v_mov|\.type [\w.$]+,@function)",
    re.M,
)


def rows(stage: str, text: str) -> Rows:
    strings = Strings(AMDGCN)
    text = f"\n{collapse_spaces(strings.read(text))}\n"  # makes searches begin with constant text
    if _PUTS_TOGETHER.search(text):
        raise UnclearError
    _check_quoted(text, strings)
    text = _DROPPED.sub("\n", drop_unloaded_sections(text, strings))
    if not _RECOGNIZED.search(text):
        raise unrecognized(stage, "a target directive, a function or a known instruction")
    header: dict[str, str] = {}
    text = _take_target(_QUOTED_TARGET.sub(lambda m: m[1] + strings.restore(m[2]).strip('"'), text), header)
    text = _take_resources(_rename_functions(_rename_kernel(text)), header)
    parts = _NAME.split(drop_unused_labels(text[1:-1], _LABEL))
    parts[1::2] = map(Numbering(".L").__getitem__, parts[1::2])
    return Rows(body="".join(parts).split("\n"), tail=[], header=header).restored(strings)


def _check_quoted(text: str, strings: Strings) -> None:
    """A symbol may be quoted. One that is spelled both ways is not known to be one symbol."""
    lines = [line for line in text.partition(_METADATA)[0].split("\n") if not line.isascii()]
    quoting = "\n".join(line for line in lines if not _QUOTES_CONTENT.match(line))
    literals = map(strings.restore, re.findall(_STRING, quoting))
    names = {string[1:-1] for string in literals if string[0] == '"'}
    if names and (any("\\" in name for name in names) or not names.isdisjoint(_SYMBOL.findall(text))):
        raise UnclearError


def _take_target(text: str, header: dict[str, str]) -> str:
    def shorten(match: re.Match[str]) -> str:
        header[f"amdgcn.{match.group(1).strip().strip('.:')}"] = match.group(2)
        return match.group(1) + match.group(3)

    return _TARGET.sub(shorten, text)


def _take_resources(text: str, header: dict[str, str]) -> str:
    resources: dict[str, str] = {}

    def take(match: re.Match[str]) -> str:
        resources[f"amdgcn.set {match.group(1)}"] = match.group(2)
        return "\n"

    rest = _RESOURCE.sub(take, text)
    if _NAMES_RESOURCE.search(rest):
        return text
    header |= resources
    return rest


def _rename_kernel(text: str) -> str:
    names = _KERNEL_NAME.findall(text)
    if len(names) != 1 or KERNEL in text:
        return text
    name = re.escape(names[0])
    renamed = re.sub(rf"\.L(?<![\w.$]\.L){name}(?=\.(?:{_COUNTED})(?![\w.$]))", f".L{KERNEL}", text)
    renamed = re.sub(
        rf"\n(\.(?:globl|protected|hidden|weak|type|amdhsa_kernel) |(?:- )?\.(?:name|symbol): )?{name}"
        rf"(?(1)(?=,|\n|\.kd\n)|(?=:\n))",
        lambda match: f"\n{match.group(1) or ''}{KERNEL}",
        renamed,
    )
    return text if re.search(rf"{name}(?<![\w.$]{name})(?![\w.$])", renamed) else renamed


def _rename_functions(text: str) -> str:
    shown = {*_SYMBOL.findall("\n".join(_SHOWN.findall(text))), KERNEL, *_KERNEL_NAME.findall(text)}
    internal = [name for name in _FUNCTION.findall(text) if name not in shown]
    if not internal:
        return text
    symbols = _SYMBOL.split(text)
    metadata = text.find(_METADATA)
    fixed = set(_SYMBOL.findall(text, metadata)) if metadata >= 0 else set()
    internal = [name for name in internal if name not in fixed]
    names = rename_functions(internal, symbols[1::2])
    symbols[1::2] = map(Renamed(names, _RESOURCE_OF).__getitem__, symbols[1::2])
    return "".join(symbols)
