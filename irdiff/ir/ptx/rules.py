r"""Canonical form of PTX.

Rules (before → after; why the meaning is kept; source: PTX ISA, sections in brackets)
- `add.s32 a, b, c; // x`, `/* x */` → without: comments are white space [Comments].
- `.loc 1 20 3`, `.file 1 "a.py"`, `.section .debug_* {…}` → dropped: they make line tables only
  [Debugging Directives]. A `.loc` that something follows on its line is kept, and so is a section that has
  more than data and labels in it.
- `$L__BB0_2` → `$L0` by first use; a `$L…:` line that nothing names is dropped: labels name places, and
  an unnamed place adds nothing. Other labels, such as those of inline assembly, keep their names.
- `.reg .b32 %r<17>;` → `.reg .b32 %r<>;` and `%r5` → `%r0` by first use within a function, the prefix
  kept: parameterized names declare a set of virtual registers, their number allocates nothing
  [Parameterized Variable Names]. Only prefixes declared so, inside of the function and once: special
  registers (`%tid.x`, `%clock64`) and registers of inline assembly (`.reg .b32 t<2>;`) keep their names; a
  prefix that is declared again in an inner scope, on its own or as a part of another set's (`%r1<5>` has
  `%r10`), is left alone together with its counts.
- `.visible .entry NAME(`, `NAME_param_0` → `__kernel__`, where the text has one kernel: the name is a
  symbol, no instruction reads it.
- `.func NAME(`, `call NAME`, `NAME_param_0` → `function__0`, where no declaration of the name has a linkage
  directive: such a function is not visible outside [Linking Directives] (`symbols`). External ones keep their
  names (`vprintf`, `__assertfail`).
- `.version 8.7` → header: the version of the language; the meaning of the instructions is unchanged
  [PTX Module Directives]. `.target` stays: it decides the code.
- runs of blanks → one blank.

Kept on purpose: data (`.global .align 1 .b8 x[4] = {…}`), declarations, performance directives
(`.reqntid`, `.maxntid`, `.maxnreg`, `.pragma`), and the order of everything.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import count

from irdiff.ir.canonical import Numbering, Rows, unrecognized
from irdiff.ir.lexing import (
    HIDDEN,
    KERNEL,
    PTX,
    Strings,
    blank_out,
    collapse_spaces,
    drop_unused_labels,
)
from irdiff.ir.symbols import Renamed, rename_functions

_LINE_TABLE = re.compile(
    r"\n\.(?:loc \d+ \d+(?: \d+)?(?: ?, ?function_name [\w$]+(?: ?\+ ?\d+)? ?, ?inlined_at \d+ \d+ \d+)?"
    rf"|file \d+ [{HIDDEN}](?: ?, ?\d+)*)(?=\n|$)"
)
_DEBUG_SECTION = re.compile(
    r"^\.section \.debug_\w+\s*+\{(?:\s++|\.b(?:8|16|32|64) [^;:{}\n]*+;?+|[\w$]++:)*+\}", re.M
)
_LABEL = r"\$L[\w$]+"
_VERSION = re.compile(r"^\.version (\d+\.\d+)$", re.M)
_KERNEL_NAME = re.compile(r"\.entry\s+([\w$]+)")
_FUNCTION = re.compile(r"(\.\w+\s++)?\.func\s++(?:\([^()]*+\)\s*+)?([A-Za-z_$][\w$]*+)")
_IDENTIFIER = re.compile(r"([%.]?[\w$]++)")
_PARAMETER = re.compile(r"(?P<function>.+)_param_\d+")
_REGISTER_SET = re.compile(r"(\.reg \.\w+ %([A-Za-z_$]+))<(\d*)>")
_ANY_SET = re.compile(r"%([A-Za-z_$]+)(\d*+[\w$]*+)<")
_NAME = re.compile(r"([%$](?:(?<=%)[A-Za-z_$]++\d++(?![\w$])|(?<=\$)L[\w$]++))")
"""Matches a set of characters first, and what stands before it afterwards: this makes the search fast."""
_BRACE = re.compile(r"[{}]")
_RECOGNIZED = re.compile(r"\.(?:version|target|entry|func)\b")


def rows(stage: str, text: str) -> Rows:
    strings = Strings(PTX)
    text = collapse_spaces(strings.read(text))
    text = _DEBUG_SECTION.sub(blank_out, _LINE_TABLE.sub("\n", text))
    if not _RECOGNIZED.search(text):
        raise unrecognized(stage, "`.version`, `.target`, `.entry` or `.func`")
    header: dict[str, str] = {}
    version = _VERSION.search(text)
    if version:
        header["ptx.version"] = version.group(1)
        text = text[: version.start()] + text[version.end() :]
    text = _rename_functions(_rename_kernel(drop_unused_labels(text, _LABEL)))
    labels = Numbering("$L")
    renamed = "".join([_rename_registers(part, labels) for part in _functions(text)])
    return Rows(body=renamed.split("\n"), tail=[], header=header).restored(strings)


def _functions(text: str) -> list[str]:
    """Split behind each brace that closes a function or an initializer."""
    parts: list[str] = []
    depth = start = 0
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            depth += 1
        elif depth > 1:
            depth -= 1
        else:
            depth = 0
            parts.append(text[start : match.end()])
            start = match.end()
    parts.append(text[start:])
    return parts


class _RegisterNames(dict[str, str]):
    """New names of the registers and labels of one function."""

    def __init__(self, prefixes: set[str], labels: Numbering) -> None:
        super().__init__()
        self._counts = {prefix: count() for prefix in prefixes}
        self._labels = labels

    def __missing__(self, name: str) -> str:
        prefix = name[1:].rstrip("0123456789")
        if name[0] == "$":
            self[name] = self._labels[name]
        else:
            self[name] = f"%{prefix}{next(self._counts[prefix])}" if prefix in self._counts else name
        return self[name]


def _rename_registers(function: str, labels: Numbering) -> str:
    if "%" not in function and "$" not in function:
        return function
    sets = _ANY_SET.findall(function)
    times = Counter(prefix for prefix, _ in sets)
    inside = max(function.find("{"), 0)
    declared = {match.group(2) for match in _REGISTER_SET.finditer(function, inside)}
    prefixes = {prefix for prefix in declared if times[prefix] == 1}
    parts = _NAME.split(function)
    parts[1::2] = map(_RegisterNames(prefixes, labels).__getitem__, parts[1::2])
    function = "".join(parts)
    return _REGISTER_SET.sub(
        lambda match: f"{match.group(1)}<>" if match.group(2) in prefixes else match.group(), function
    )


def _rename_kernel(text: str) -> str:
    names = _KERNEL_NAME.findall(text)
    if len(names) != 1 or KERNEL in text:
        return text
    name = re.escape(names[0])
    # the constant text is matched first, and what stands before it afterwards: this makes the search fast
    text = re.sub(rf"{name}(?<=\b{name})(?=_param_\d+(?![\w$]))", KERNEL, text)
    return re.sub(rf"\.entry {name}(?![\w$])", f".entry {KERNEL}", text)


def _rename_functions(text: str) -> str:
    if ".func" not in text:
        return text
    functions = _FUNCTION.findall(text)
    linked = {name for linkage, name in functions if linkage}
    internal = [name for _, name in functions if name not in linked]
    names = rename_functions(internal, _IDENTIFIER.findall(text)) if internal else {}
    if not names:
        return text
    parts = _IDENTIFIER.split(text)
    parts[1::2] = map(Renamed(names, _PARAMETER).__getitem__, parts[1::2])
    return "".join(parts)
