"""Two kinds of small difference between canonical LLVM IR texts, as facts next to the verdict `changed`.

`inferred-attributes-only`: equal once the attributes that LLVM's passes infer from the code are taken out.
They state what holds anyway, but a later pass may act on them.

`reordered-only`: in each block the same operations on the same operands, in another order. Operations are
compared by a digest of their whole operand tree, so that numbering does not matter. Order is real for
scheduling and for effects: this is no statement that the code is the same.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from hashlib import blake2b

_INFERRED = re.compile(
    r' ?(?<![\w."-])(?:nofree|readnone|readonly|writeonly|norecurse|nosync|nounwind|willreturn|mustprogress'
    r"|nocallback|speculatable|nocreateundeforpoison|nocapture|local_unnamed_addr|unnamed_addr"
    r'|(?:captures|memory|initializes)\((?:[^()]|\([^()]*\))*\)|"amdgpu-no-[\w-]+"(?:="[^"]*")?'
    r'|"uniform-work-group-size"(?:="[^"]*")?)(?![\w"-])'
)
_STRING = re.compile(r'("[^"\n]*")')
_GROUP = re.compile(r"^attributes (#\w+) = \{ (.*) \}$")
_GROUP_USE = re.compile(r" ?#[0-9a-f]{12}\b")
_LOCAL = re.compile(r'"[^"\n]*"|%[\w.$-]+')
_DEFINITION = re.compile(r"(%[\w.$-]+) = ")
_LABEL = re.compile(r"%[\w.$-]+:$")


def differs_in_inferred_attributes_only(base: tuple[str, ...], head: tuple[str, ...]) -> bool:
    """For two unequal canonical texts of LLVM IR; cheap where they are far apart."""
    (left, ours), (right, theirs) = _without_groups(base), _without_groups(head)
    return len(left) == len(right) and all(
        _inlined(one, ours) == _inlined(other, theirs)
        for one, other in zip(left, right, strict=True)
        if one != other  # a group's name is a digest of what it holds: equal lines mean the same
    )


def _without_groups(lines: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """The lines that are no attribute group; for each group a digest of what is not inferred."""
    kept: list[str] = []
    groups: dict[str, str] = {}
    for line in lines:
        match = _GROUP.match(line) if line.startswith("attributes ") else None
        if match:
            content = _take_inferred(match.group(2), quoted=True)
            groups[match.group(1)] = _digest(content) if content else ""
        else:
            kept.append(line)
    return kept, groups


def _inlined(line: str, groups: dict[str, str]) -> str:
    def inline(match: re.Match[str]) -> str:
        content = groups.get(match.group().strip(), "")
        return f" {{{content}}}" if content else ""

    return _GROUP_USE.sub(inline, _take_inferred(line, quoted=False))


def _take_inferred(line: str, *, quoted: bool) -> str:
    if quoted:
        return " ".join(_INFERRED.sub("", line).split())
    return "".join(
        part if index % 2 else _INFERRED.sub("", part) for index, part in enumerate(_STRING.split(line))
    )


def differs_in_order_only(base: tuple[str, ...], head: tuple[str, ...]) -> bool:
    """For two unequal canonical texts of LLVM IR; cheap where they are far apart."""
    if len(base) != len(head):
        return False
    moved = [pair for pair in zip(base, head, strict=True) if pair[0] != pair[1]]
    left, right = (Counter(_LOCAL.sub("%", pair[side]) for pair in moved) for side in (0, 1))
    if left != right:
        return False
    return _block_digests(base) == _block_digests(head)


def _block_digests(lines: tuple[str, ...]) -> list[Counter[str]]:
    blocks: list[Counter[str]] = [Counter()]
    values: dict[str, str] = {}
    for line in lines:
        if line.startswith("define "):
            values = {name: f"argument{n}" for n, name in enumerate(_LOCAL.findall(line))}
        if _LABEL.match(line):
            blocks.append(Counter())
            continue
        definition = _DEFINITION.match(line)
        body = line[definition.end() :] if definition else line
        digest = _digest(_LOCAL.sub(partial(_operand, values), body))
        blocks[-1][digest] += 1
        if definition:
            values[definition.group(1)] = digest
    return blocks


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _operand(values: dict[str, str], match: re.Match[str]) -> str:
    name = match.group()
    return name if name[0] == '"' else values.get(name, "%later")
