r"""Canonical form of AMDGCN assembly (of LLVM's AMDGPU backend).

Rules (before → after; why the meaning is kept; source: LLVM's "User Guide for AMDGPU Backend" and the
GNU assembler's directives)
- `s_endpgm ; x` → without: `;` starts a comment.
- `.loc`, `.file`, `.ident`, `.cfi_*`, `.section .debug_*` with its content → dropped: line tables,
  unwind and debug information; none of it is loaded.
- `.size f, .Lfunc_end0-f` → dropped: the length of the symbol, which follows from the code.
- `.LBB0_3`, `.Ltmp1`, `.Lfunc_begin0` → `.L0` by first use; unnamed ones dropped: labels name places.
- `.set .Lf.num_vgpr, 8` and the like, `.set amdgpu.max_num_*` → header, as long as each `.amdhsa_`
  directive has its own number: they only feed those directives. Otherwise kept.
- `.section .AMDGPU.csdata`, `.AMDGPU.gpr_maximums` → dropped: they hold comments only.
- `.amdgcn_target "amdgcn-amd-amdhsa--gfx942"` → `.amdgcn_target gfx942`, spelling to the header: the
  triple was renamed, the processor and its features decide the code. The same in `amdhsa.target`.
- the name of the text's one kernel → `__kernel__` where it is declared, described and labelled.
- runs of blanks → one blank.

Kept on purpose: physical registers, all `.amdhsa_*`, metadata (it is the launch ABI), data, alignment,
fill, every other label and symbol, and the order of everything.
"""

from __future__ import annotations

import re

from irdiff.normalize.canonical import Numbering, Rows, unrecognized
from irdiff.normalize.lexing import (
    C_STRING,
    HIDDEN,
    KERNEL,
    Strings,
    blank_out,
    collapse_spaces,
    drop_unused_labels,
)

_STRING = f"[{HIDDEN}]"
_COMMENT = re.compile(r";[^\n]*")
_QUOTED_TARGET = re.compile(r'^([ \t]*\.amdgcn_target[ \t]+)"([\w.:+-]+)"', re.M)
_DEBUG_SECTION = re.compile(
    r"^\.section \.debug_[^\n]*(?:\n(?!\.(?:section|pushsection|popsection|previous|subsection|text|data"
    r"|bss|rodata|amdgpu_metadata|amdhsa_kernel|amdgcn_target)\b)[^\n]*)*+",
    re.M,
)
_DROPPED = re.compile(
    r"\n\.(?:loc \d+ \d+[^\n]*"
    rf"|file (?:\d+ )?(?:{_STRING} ?)++(?:md5 \w+)?(?: ?source {_STRING})?"
    rf"|ident {_STRING}|cfi_\w+(?: [^\n]*)?"
    r"|size ([\w.$]+), \.Lfunc_end\d+-\1"
    rf"|section \.AMDGPU\.(?:csdata|gpr_maximums),{_STRING}(?:,@\w+)?)(?=\n|$)"
)
_LABEL = r"\.L(?:BB\d+_|tmp|func_begin|func_end)?\d+(?![\w.$])"
_NAME = re.compile(f"({_LABEL})")
_COUNTED = (
    r"(?:num_[av]gpr|numbered_sgpr|num_named_barrier|private_seg_size|uses_vcc|uses_flat_scratch"
    r"|has_dyn_sized_stack|has_recursion|has_indirect_call)"
)
_RESOURCE = re.compile(rf"^\.set (\.?[\w.$]+\.{_COUNTED}|amdgpu\.max_num_\w+), ([^\n]*)$", re.M)
_SYMBOLIC_DESCRIPTOR = re.compile(r"^\.amdhsa_(?!kernel\b)\w+ (?!-?\w+$)[^\n]*", re.M)
_TARGET = re.compile(r"^(\.amdgcn_target |amdhsa\.target: )('?[\w.-]+-(gfx\w+(?::\w+[+-])*)'?)$", re.M)
_KERNEL_NAME = re.compile(r"^\.amdhsa_kernel ([\w.$]+)$", re.M)
_RECOGNIZED = re.compile(
    r"^(?:\.amdgcn_target|\.amdhsa_|s_endpgm|s_(?:load|waitcnt|mov|setpc)|v_mov|\.type [\w.$]+,@function)",
    re.M,
)


def rows(text: str, *, stripped: bool = False) -> Rows:
    """Of the whole text; with `stripped`, of what `strip` has made of it."""
    strings = Strings(_QUOTED_TARGET.sub(r"\1\2", text), C_STRING)
    text = strings.text if stripped else _strip(strings.text)
    if not _RECOGNIZED.search(text):
        raise unrecognized("amdgcn", "a target directive, a function or a known instruction")
    header: dict[str, str] = {}
    text = _take_target(text, header)
    text = _take_resources(text, header)
    text = _rename_kernel(drop_unused_labels(text, _LABEL))
    parts = _NAME.split(text)
    parts[1::2] = map(Numbering(".L").__getitem__, parts[1::2])
    return Rows(body="".join(parts).split("\n"), tail=[], header=header).restored(strings)


def strip(text: str) -> str:
    """The text without comments, debug information and superfluous blanks: equal here, equal canonically."""
    strings = Strings(text, C_STRING)
    return strings.restore(_strip(strings.text))


def _strip(text: str) -> str:
    text = collapse_spaces(_COMMENT.sub("", text))
    text = _DEBUG_SECTION.sub(blank_out, text)
    return _DROPPED.sub("\n", text)


def _take_target(text: str, header: dict[str, str]) -> str:
    def shorten(match: re.Match[str]) -> str:
        header[f"amdgcn.{match.group(1).strip(' .:')}"] = match.group(2)
        return match.group(1) + match.group(3)

    return _TARGET.sub(shorten, text)


def _take_resources(text: str, header: dict[str, str]) -> str:
    if _SYMBOLIC_DESCRIPTOR.search(text):
        return text

    def take(match: re.Match[str]) -> str:
        header[f"amdgcn.set {match.group(1)}"] = match.group(2)
        return ""

    return _RESOURCE.sub(take, text)


def _rename_kernel(text: str) -> str:
    names = _KERNEL_NAME.findall(text)
    if len(names) != 1 or KERNEL in text:
        return text
    name = re.escape(names[0])
    return re.sub(
        rf"^(\.(?:globl|protected|hidden|weak|type|amdhsa_kernel) |(?:- )?\.(?:name|symbol): )?{name}"
        rf"(?(1)(?=,|$|\.kd$)|(?=:$))",
        lambda match: (match.group(1) or "") + KERNEL,
        text,
        flags=re.M,
    )
