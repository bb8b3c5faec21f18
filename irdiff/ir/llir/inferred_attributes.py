"""`inferred-attributes-only`: LLVM IR that is equal once the attributes that LLVM's passes infer are gone.

They state what holds anyway, but a later pass may act on them: a fact next to the verdict `changed`.
"""

from __future__ import annotations

import re
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


def differs_in_inferred_only(base: tuple[str, ...], head: tuple[str, ...]) -> bool:
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


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
