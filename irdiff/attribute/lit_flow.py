"""Takes blocks and branches out of a function, on the text of its IR, for lit tests. Pure.

Whether the smaller text still shows what it must is for the caller to try. MLIR prints the blocks of a
function at its own indentation, `^bb1(%0: i32):  // pred: ^bb0`, and those of inner regions deeper.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

_FUNCTION = re.compile(r"( *)(?:tt|llvm|func)\.func\b.*\{$")
_LABEL = re.compile(r"( *)(\^\w+)(?:\((.*)\))?:")
_CONDITIONAL = re.compile(
    r"( *)cf\.cond_br %[\w$.-]+, (\^\w+(?:\([^()]*\))?), (\^\w+(?:\([^()]*\))?)(?: \{.*\})?$"
)
_BRANCH = re.compile(r" *cf\.br (\^\w+)(?:\(([^():]*) : [^()]*\))?$")
_TARGET = re.compile(r"\^\w+")
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")


@dataclass(frozen=True, kw_only=True)
class _Block:
    name: str
    """Empty for the entry."""
    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    """Without the label."""


def straightened(lines: Sequence[str]) -> list[list[str]]:
    """Texts in which one conditional branch always goes one way, without what is not reached any more."""
    found = []
    for number, line in enumerate(lines):
        branch = _CONDITIONAL.match(line)
        for target in (branch.group(2), branch.group(3)) if branch else ():
            assert branch is not None
            taken = [*lines[:number], f"{branch.group(1)}cf.br {target}", *lines[number + 1 :]]
            found.append(without_idle_blocks(taken))
    return sorted(found, key=len)


def without_idle_blocks(lines: Sequence[str]) -> list[str]:
    """Without blocks that are not reached, and with blocks joined that only follow one another."""
    begin = next((n for n, line in enumerate(lines) if _FUNCTION.match(line)), None)
    if begin is None:
        return list(lines)
    indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
    end = next((n for n in range(begin + 1, len(lines)) if lines[n].rstrip() == indent + "}"), None)
    if end is None:
        return list(lines)
    blocks = _joined(_reached(_blocks(lines[begin + 1 : end], indent)))
    body = [line for block in blocks for line in _printed(block, indent)]
    return [*lines[: begin + 1], *body, *lines[end:]]


def _blocks(lines: Sequence[str], indent: str) -> list[_Block]:
    labels = [
        (number, label)
        for number, line in enumerate(lines)
        if (label := _LABEL.match(line)) and label.group(1) == indent
    ]
    first = labels[0][0] if labels else len(lines)
    found = [_Block(name="", arguments=(), lines=tuple(lines[:first]))]
    ends = [number for number, _ in labels[1:]] + [len(lines)]
    for (number, label), end in zip(labels, ends, strict=True):
        arguments = tuple(part.strip() for part in _split(label.group(3) or ""))
        found.append(_Block(name=label.group(2), arguments=arguments, lines=tuple(lines[number + 1 : end])))
    return found


def _split(text: str) -> list[str]:
    """At the commas that no bracket encloses."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(text):
        if character in "<[{(":
            depth += 1
        elif character in ">]})" and text[index - 1] != "-":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    return [*parts, text[begin:]] if text.strip() else []


def _successors(block: _Block) -> list[str]:
    last = block.lines[-1].strip() if block.lines else ""
    return _TARGET.findall(last) if last.startswith("cf.") else []


def _reached(blocks: Sequence[_Block]) -> list[_Block]:
    known = {block.name: block for block in blocks}
    seen, waiting = set(), [""]
    while waiting:
        name = waiting.pop()
        if name not in seen and name in known:
            seen.add(name)
            waiting += _successors(known[name])
    return [block for block in blocks if block.name in seen]


def _joined(blocks: list[_Block]) -> list[_Block]:
    """Joins a block to the only one that goes to it; its arguments become the values that it is given."""
    for number, (before, after) in enumerate(itertools.pairwise(blocks)):
        branch = _BRANCH.match(before.lines[-1]) if before.lines else None
        entered = sum(_successors(block).count(after.name) for block in blocks)
        if branch is None or branch.group(1) != after.name or entered != 1:
            continue
        given = [part.strip() for part in (branch.group(2) or "").split(",") if part.strip()]
        if len(given) != len(after.arguments):
            continue
        names = {
            part.partition(":")[0].strip(): value for part, value in zip(after.arguments, given, strict=True)
        }
        joined = _Block(
            name=before.name, arguments=before.arguments, lines=(*before.lines[:-1], *after.lines)
        )
        renamed = [_renamed(block, names) for block in (*blocks[:number], joined, *blocks[number + 2 :])]
        return _joined(renamed)
    return list(blocks)


def _renamed(block: _Block, names: dict[str, str]) -> _Block:
    def named(match: re.Match[str]) -> str:
        return names.get(match.group(), match.group())

    return _Block(
        name=block.name,
        arguments=block.arguments,
        lines=tuple(_VALUE.sub(named, line) for line in block.lines),
    )


def _printed(block: _Block, indent: str) -> list[str]:
    if not block.name:
        return list(block.lines)
    arguments = f"({', '.join(block.arguments)})" if block.arguments else ""
    return [f"{indent}{block.name}{arguments}:", *block.lines]
