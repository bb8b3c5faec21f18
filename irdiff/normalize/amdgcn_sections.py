r"""Sections of AMDGCN assembly that are not loaded, taken out.

`.section .debug_*` and `.section .AMDGPU.csdata`, `.AMDGPU.gpr_maximums` → dropped with their data and labels:
line tables, names and comments, in sections without the flag `a` (to be loaded).

Why the meaning is kept: of what stands in such a section only data, alignment and labels are dropped. What
holds wherever it stands stays (`.set`, metadata). All of it stays, in all sections, where dropping could
change what the rest means: where there is anything else in one of them, where a label that is defined there is
named outside (the length of a section is a number, too), and where the text goes back to an earlier section
without naming it (`.previous`, `.popsection`, `.subsection`).
Source: the GNU assembler's directives; LLVM's "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

import re

from irdiff.normalize.lexing import HIDDEN, Strings

_PERHAPS = re.compile(r"^\.section \.(?:debug_|AMDGPU\.)", re.M)
_GOES_BACK = re.compile(r"^\.(?:previous|popsection|pushsection|subsection)\b", re.M)
_SECTION = re.compile(r"\.(?:section|text|data|bss|rodata)\b")
_UNLOADED = re.compile(
    r"\.section \.(?:debug_\w+|AMDGPU\.(?:csdata|gpr_maximums))"
    rf"(?:, ?([{HIDDEN}])(?:, ?@progbits(?:, ?\d+)?)?)?"
)
_DATA = re.compile(
    r"\.(?:byte|short|hword|value|word|long|int|quad|octa|[248]byte|asci[iz]|string|[us]leb128|zero|space|skip|fill"
    r"|p2align[wl]?|balign[wl]?|align|ident|file|loc|cfi_\w+)(?: .*)?"
)
_LABEL = re.compile(r"(\.L[\w.$]+):")
_LOCAL_NAME = re.compile(r"(?<![\w.$])\.L[\w.$]++")
_SET = re.compile(r"\.set [\w.$]+, (?!.*(?<![\w.$])\.(?![\w.$]))")
"""Not to where it stands."""
_METADATA, _END_OF_METADATA = ".amdgpu_metadata", ".end_amdgpu_metadata"


def drop_unloaded_sections(text: str, strings: Strings) -> str:
    """Line by line, each dropped one left empty. Comments must be gone and strings hidden."""
    if not _PERHAPS.search(text) or _GOES_BACK.search(text):
        return text
    kept: list[str] = []
    labels: set[str] = set()
    unloaded = metadata = False
    for line in text.split("\n"):
        if metadata or line == _METADATA:
            metadata = line != _END_OF_METADATA
            kept.append(line)
        elif _SECTION.match(line):
            unloaded = _is_unloaded(line, strings)
            kept.append("" if unloaded else line)
        elif not unloaded or _SET.match(line):
            kept.append(line)
        elif not line or _DATA.fullmatch(line):
            kept.append("")
        else:
            label = _LABEL.fullmatch(line)
            if not label:
                return text
            labels.add(label.group(1))
            kept.append("")
    without = "\n".join(kept)
    return without if labels.isdisjoint(_LOCAL_NAME.findall(without)) else text


def _is_unloaded(line: str, strings: Strings) -> bool:
    found = _UNLOADED.fullmatch(line)
    return found is not None and not set("ax") & set(strings.restore(found.group(1) or ""))
