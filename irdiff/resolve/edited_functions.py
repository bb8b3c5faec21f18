"""Which operations the functions that an edit of Triton's C++ touches match, read from their text.

A rewrite pattern names its operation (`struct X : OpRewritePattern<triton::LoadOp>`), and so do parameters,
`isa<…>` and `dyn_cast<…>`. A function that names none counts for those of its file that call it. Triton's
sources are formatted by clang-format: what begins a line in column 0, or in column 2 of a struct, is whole at
the next `}` or `;` in that column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher

_OP = r"(?:[A-Z]+_)?([A-Z]\w*[a-z]\w*Op)\b"
_NAMED = re.compile(rf"\b(?:\w+::)*{_OP}(?!\w|::create)")
_MATCHED = re.compile(
    r"\b(?:isa|cast|dyn_cast|getDefiningOp|getOps|Case)\w*<([^<>()]*)>|\((?:\w+::)*(\w+Op) \w+"
)
_CALLED = re.compile(r"(\w+)\s*(?:<[^<>]*>)?\(")
_STRUCT = re.compile(r"\b(?:struct|class|def) (\w+)")
_PARAMETER = re.compile(r"\btypename (\w+)")
_EVERYWHERE = frozenset({"ModuleOp", "FuncOp", "ReturnOp", "CallOp", "LLVMFuncOp"})
"""They say nothing of what a function is about."""


def operations(before: str, after: str) -> list[str]:
    """C++ classes, `AtomicRMWOp`, in order; `before` and `after` are the whole texts of one file."""
    if not after:
        return []
    old, new = before.split("\n"), after.split("\n")
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    # where lines were only removed, the line that follows stands for them
    edited = {
        line
        for kind, _, _, first, last in changes
        if kind != "equal"
        for line in range(first, max(last, first + 1))
    }
    blocks = list(_blocks(new, 0))
    pending = [block for block in blocks if edited & set(block)]
    found: set[str] = set()
    seen = []
    while pending:
        block = pending.pop()
        seen.append(block)
        named, own = _matched([new[line] for line in block], [line - block.start for line in edited], after)
        found |= named
        if not named:
            pending += [other for other in blocks if other not in seen and _calls(new, other, own)]
    return sorted(found)


def _blocks(lines: Sequence[str], indent: int) -> Iterator[range]:
    first = 0
    for number, line in enumerate(lines):
        body = line[indent:]
        at_margin = line[:indent].isspace() or not indent
        if at_margin and body and (body[0] == "}" or (not body[0].isspace() and body.endswith(";"))):
            yield range(first, number + 1)
            first = number + 1
        elif body.startswith("namespace"):
            first = number + 1


def _matched(block: Sequence[str], edited: Collection[int], file: str) -> tuple[set[str], str]:
    """The operations of a function or struct, and its name."""
    text = "\n".join(line for line in block if not line.lstrip().startswith("//"))
    head = text.partition("{")[0] if "{" in text else ""
    struct = _STRUCT.search(head)
    named = _operations(head) - set(_PARAMETER.findall(head))
    if struct and not named:
        # a template is for what it is used with; else what the edited members match
        uses = re.findall(rf"\b{struct[1]}<\s*((?:\w+::)*\w+Op)\b", file)
        members = [row for row in _blocks(block, 2) if {*row} & {*edited}]
        text = "\n".join(block[line] for row in members for line in row)
        named = _operations(" ".join(uses))
    called = _CALLED.search(head)
    name = struct or called
    matched = " ".join(first or second for first, second in _MATCHED.findall(text))
    return named or _operations(matched), name[1] if name else ""


def _operations(text: str) -> set[str]:
    return set(_NAMED.findall(text)) - _EVERYWHERE


def _calls(lines: Sequence[str], block: range, name: str) -> bool:
    text = "\n".join(lines[line] for line in block)
    return bool(name) and re.search(rf"\b{name}\b", text) is not None
