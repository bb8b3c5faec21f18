"""What the mutations are made of: where the code of a text is, and edits of one place in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

Mutation = Callable[[str, Random], str | None]
"""Returns the mutated text, or None where the text has nothing to mutate so."""

_CODE = {
    "mlir": re.compile(r"^ +(?:%|(?:tt|ttg|ttng|scf|cf|arith|math|amdg|gpu|llvm|gluon)\.)(?!.*\{$)"),
    "llir": re.compile(r"^  (?! )(?!#dbg)"),
    "ptx": re.compile(r"^\t(?!\.|//)|^\t\{ "),
    "amdgcn": re.compile(r"^\t(?:[svb]_|ds_|global_|buffer_|flat_|scratch_)"),
    "sass": re.compile(r"^ +/\*[0-9a-f]{4,}\*/(?! +(?:NOP|BRA)\b)"),
}
_END = {
    "mlir": re.compile(r" loc\(#loc\d*\)"),
    "llir": re.compile(r", !dbg !\d+| +;"),
    "ptx": re.compile(r"\s*//"),
    "amdgcn": re.compile(r"\s*;"),
    "sass": re.compile(r";"),
}
_MLIR = {"ttir", "ttgir", "glir", "source"}


def dialect(stage: str) -> str:
    return "mlir" if stage in _MLIR else stage


@dataclass(frozen=True, kw_only=True)
class Line:
    number: int
    text: str
    end: int
    """Where the code of the line ends and the comment or location begins."""

    @property
    def code(self) -> str:
        return self.text[: self.end]


def code_lines(kind: str, text: str) -> list[Line]:
    """Lines that are instructions, outside debug sections."""
    found = []
    inside = kind != "ptx"
    for number, line in enumerate(text.split("\n")):
        if kind == "ptx":
            inside = (inside or line.startswith((".visible", ".func", "{"))) and ".section" not in line
        if inside and _CODE[kind].match(line):
            end = _END[kind].search(line)
            found.append(Line(number=number, text=line, end=end.start() if end else len(line)))
    return found


def with_lines(text: str, changes: dict[int, str | None]) -> str:
    """Replace lines by number; None drops the line, line breaks make several."""
    lines = [changes.get(number, line) for number, line in enumerate(text.split("\n"))]
    return "\n".join(line for line in lines if line is not None)


def on_one_line(kind: str, change: Callable[[Line], str | None]) -> Mutation:
    """Puts another text in place of one instruction, of those for which there is one; an empty one drops it."""

    def mutate(text: str, random: Random) -> str | None:
        found = [(line.number, new) for line in code_lines(kind, text) if (new := change(line)) is not None]
        if not found:
            return None
        number, new = random.choice(found)
        return with_lines(text, {number: new or None})

    return mutate


_NAME = re.compile(r"%[\w.$-]+|/\*[0-9a-f]+\*/")


def swap_neighbours(kind: str) -> Mutation:
    """Scheduling order: two neighbouring instructions that differ in more than names."""

    def mutate(text: str, random: Random) -> str | None:
        lines = code_lines(kind, text)
        pairs = [
            (first, second)
            for first, second in pairwise(lines)
            if second.number == first.number + 1
            and _NAME.sub("", first.code).strip() != _NAME.sub("", second.code).strip()
        ]
        if not pairs:
            return None
        first, second = random.choice(pairs)
        return with_lines(text, {first.number: second.text, second.number: first.text})

    return mutate


def in_code(kind: str, pattern: str, replacement: str | Callable[[re.Match[str]], str]) -> Mutation:
    """Replace one match of a pattern in the code of one line."""
    compiled = re.compile(pattern)

    def mutate(text: str, random: Random) -> str | None:
        places = [
            (line, match)
            for line in code_lines(kind, text)
            for match in compiled.finditer(line.text, 0, line.end)
        ]
        random.shuffle(places)
        for line, match in places[:8]:
            new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            if new != match.group():
                changed = line.text[: match.start()] + new + line.text[match.end() :]
                return with_lines(text, {line.number: changed})
        return None

    return mutate


def anywhere(pattern: str, replacement: str | Callable[[re.Match[str]], str]) -> Mutation:
    """Replace one match of a pattern in the whole text."""
    compiled = re.compile(pattern, re.M)

    def mutate(text: str, random: Random) -> str | None:
        places = list(compiled.finditer(text))
        random.shuffle(places)
        for match in places[:8]:
            new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            if new != match.group():
                return text[: match.start()] + new + text[match.end() :]
        return None

    return mutate


def everywhere(pattern: str, replacement: str | Callable[[re.Match[str]], str]) -> Mutation:
    """Replace all matches of a pattern."""
    compiled = re.compile(pattern, re.M)

    def mutate(text: str, random: Random) -> str | None:
        changed = compiled.sub(replacement, text)
        return changed if changed != text else None

    return mutate


def rename_all(pattern: str, name: Callable[[str, int], str]) -> Mutation:
    """Rename every distinct match; numbers are handed out in random order."""
    compiled = re.compile(pattern, re.M)

    def mutate(text: str, random: Random) -> str | None:
        found = list(dict.fromkeys(match.group() for match in compiled.finditer(text)))
        if not found:
            return None
        numbers = random.sample(range(10 * len(found) + 10), len(found))
        names = {old: name(old, number) for old, number in zip(found, numbers, strict=True)}
        return compiled.sub(lambda match: names[match.group()], text)

    return mutate


def on_lines(pattern: str, change: Callable[[str, Random], str], share: float = 0.3) -> Mutation:
    """Change a random share of the lines that match."""
    compiled = re.compile(pattern)

    def mutate(text: str, random: Random) -> str | None:
        lines = text.split("\n")
        places = [number for number, line in enumerate(lines) if compiled.search(line)]
        if not places:
            return None
        for number in random.sample(places, max(1, int(share * len(places)))):
            lines[number] = change(lines[number], random)
        return "\n".join(lines)

    return mutate
