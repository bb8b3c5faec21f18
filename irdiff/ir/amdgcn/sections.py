r"""Sections of AMDGCN assembly that are not loaded, taken out.

`.section .debug_*`, `.section .AMDGPU.csdata`, `.AMDGPU.gpr_maximums` → dropped with their data and
labels: line tables, names and comments, in sections without the flag `a` (to be loaded).

Why the meaning is kept: of what stands in such a section, only data, alignment and labels are dropped. What
holds wherever it stands stays (`.set`, metadata). All of it stays, in all sections, where dropping could
change what the rest means: where there is anything else in one of them, where a label that is defined there
is named outside (the length of a section is a number, too), and where the text goes back to an earlier
section without naming it (`.previous`, `.popsection`, `.subsection`).
Source: the GNU assembler's directives; LLVM's "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

import re

from irdiff.ir.lexing import HIDDEN, Strings

_SWITCH = re.compile(r"(\n\.(?:section|text|data|bss|rodata)\b[^\n]*)")
_GOES_BACK = re.compile(r"\n\.(?:previous|popsection|pushsection|subsection)\b")
_UNLOADED = re.compile(
    r"\n\.section \.(?:debug_\w+|AMDGPU\.(?:csdata|gpr_maximums))"
    rf"(?:, ?([{HIDDEN}])(?:, ?@progbits(?:, ?\d+)?)?)?"
)
_DATA = re.compile(
    r"\.(?:byte|short|hword|value|word|long|int|quad|octa|[248]byte|asci[iz]|string|[us]leb128|zero|space|skip|fill"
    r"|p2align[wl]?|balign[wl]?|align|ident|file|loc|cfi_\w+)(?: .*)?"
)
_LABEL = re.compile(r"(\.L[\w.$]+):")
_LOCAL_NAME = re.compile(r"\.L(?<![\w.$]\.L)[\w.$]++")
"""The constant text is matched first, and what stands before it afterwards: this makes the search fast."""
_SET = re.compile(r"\.set [\w.$]+, (?!.*(?<![\w.$])\.(?![\w.$]))")
"""A `.set` whose value does not depend on the place where it stands (`.`)."""
_METADATA = re.compile(
    r"(\n\.amdgpu_metadata(?:\n(?!\.(?:end_)?amdgpu_metadata\n)[^\n]*+)*+\n\.end_amdgpu_metadata(?=\n))"
)


def drop_unloaded_sections(text: str, strings: Strings) -> str:
    """The text, each dropped line left empty. It begins and ends with a line break; strings are hidden."""
    if ".debug_" not in text and ".AMDGPU." not in text:
        return text
    if _GOES_BACK.search(text) or any(map(_SWITCH.search, _METADATA.findall(text))):
        return text
    parts = _SWITCH.split(text)
    labels: set[str] = set()
    for index in range(1, len(parts), 2):
        if _is_unloaded(parts[index], strings):
            kept = _without_data(parts[index + 1], labels)
            if kept is None:
                return text
            parts[index : index + 2] = "\n", kept
    without = "".join(parts)
    named = labels and not labels.isdisjoint(_LOCAL_NAME.findall(without))
    return text if named else without


def _is_unloaded(line: str, strings: Strings) -> bool:
    match = _UNLOADED.fullmatch(line)
    return match is not None and not set("ax") & set(strings.restore(match.group(1) or ""))


def _without_data(content: str, labels: set[str]) -> str | None:
    """The part that holds wherever it stands; None where there is anything else. Dropped labels are noted."""
    parts = _METADATA.split(content)
    for index in range(0, len(parts), 2):
        lines = parts[index].split("\n")
        for number, line in enumerate(lines):
            if not line or _SET.match(line):
                continue
            label = _LABEL.fullmatch(line)
            if label:
                labels.add(label.group(1))
            elif not _DATA.fullmatch(line):
                return None
            lines[number] = ""
        parts[index] = "\n".join(lines)
    return "".join(parts)
