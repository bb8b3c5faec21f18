"""The text side of a lit test: IR without locations, what can be left out of it, and CHECK lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irdiff import normalize
from irdiff.compare import alignment
from irdiff.compare.line_forms import blanking
from irdiff.stages import Stage

_LOCATION_LINE = re.compile(r"^#loc\d* = loc\(.*\)$\n?", re.MULTILINE)
_LOCATION = re.compile(r" loc\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)")
_RESULT = re.compile(r"^\s*(%[\w$.-]+(?::\d+)?(?:, %[\w$.-]+(?::\d+)?)*) = ")
_RESULT_TYPE = re.compile(r"(?:->| :) ([^:]+)$")
_NOT_AS_ARGUMENT = re.compile(r"= arith\.constant\b")
_POINTEE = re.compile(r"!tt\.ptr<([^<>]*)>")
_SIGNATURE = re.compile(r"\s*(?:tt|llvm|func)\.func [^@]*@[\w.$]+\(")
_VALUE = re.compile(r"%[\w$.-]+")
_NOT_OPERATIONS = re.compile(r"\s*(?:module\b|(?:tt|llvm|func)\.func\b|[#!]\w+ = |\}|\^|\{|$)")
_TERMINATOR = re.compile(
    r"\s*(?:scf\.(?:yield|condition)|tt\.(?:reduce\.|scan\.)?return|cf\.|return\b|llvm\.return"
    r"|ttg\.warp_(?:yield|return))"
)


def without_locations(text: str) -> str:
    return _LOCATION.sub("", _LOCATION_LINE.sub("", text)).strip("\n") + "\n"


# what can be left out


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Lines `start` to `end`, both included: one operation with its regions."""

    start: int
    end: int


def removable(lines: Sequence[str]) -> list[Operation]:
    """Operations whose results nothing else uses, the last first."""
    found = []
    uses: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        for name in _VALUE.findall(line):
            uses.setdefault(name, []).append(number)
    for operation in _operations(lines):
        result = _RESULT.match(lines[operation.start])
        names = _VALUE.findall(result.group(1)) if result else []
        inside = range(operation.start, operation.end + 1)
        if all(number in inside for name in names for number in uses[name]):
            found.append(operation)
    return sorted(found, key=lambda operation: -operation.start)


def _operations(lines: Sequence[str]) -> Iterator[Operation]:
    open_lines: list[int] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("}"):
            if text.endswith("{"):
                continue
            start = open_lines.pop() if open_lines else -1
            if start >= 0 and not _NOT_OPERATIONS.match(lines[start]):
                yield Operation(start=start, end=number)
        elif text.endswith("{"):
            open_lines.append(number)
        elif not _NOT_OPERATIONS.match(line) and not _TERMINATOR.match(line):
            yield Operation(start=number, end=number)


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """One way to make a text smaller: leave an operation out, or take its result as an argument."""

    operation: Operation
    argument: str
    """`%x: i32`, empty where the operation is left out."""
    key: str


def reductions(lines: Sequence[str], tried: set[str]) -> list[Reduction]:
    """All that were not tried, first those that leave out."""
    rows = [Reduction(operation=row, argument="", key="-" + _key(lines, row)) for row in removable(lines)]
    gone = {row.operation.start for row in rows}
    for operation in reversed(list(_operations(lines))):
        argument = _as_argument(lines[operation.start])
        if operation.start == operation.end and operation.start not in gone and argument:
            rows.append(Reduction(operation=operation, argument=argument, key="+" + _key(lines, operation)))
    return [row for row in rows if row.key not in tried]


def _as_argument(line: str) -> str:
    """The result as a parameter, where the line tells its type. A wrong guess is no valid IR."""
    result = _RESULT.match(line)
    typed = _RESULT_TYPE.search(line)
    if not result or not typed or "," in result.group(1) or ":" in result.group(1):
        return ""
    if _NOT_AS_ARGUMENT.search(line):
        return ""
    kind = typed.group(1).strip()
    if "arith.cmp" in line:  # prints the type of what it compares
        kind = re.sub(r"(?<=x)[a-z]\w*(?=[,>])", "i1", kind, count=1) if "<" in kind else "i1"
    elif "= tt.load " in line:  # prints the pointer's
        kind = _POINTEE.sub(r"\1", kind)
    elif "arith.select" in line:  # prints the condition's where that has a shape
        kind = kind[kind.index(", tensor") + 2 :] if ", tensor" in kind else kind
    elif "tt.addptr" in line:  # prints both operands' types, the first is the result's
        kind = kind[: kind.index(", tensor")] if ", tensor" in kind else kind.partition(", ")[0]
    return f"{result.group(1)}: {kind}"


def variants(lines: Sequence[str], rows: Sequence[Reduction], limit: int) -> list[list[str]]:
    """Smaller texts to try: all reductions of one kind at once, halves of them, and so on."""
    if not rows:
        return []
    kind = [row for row in rows if bool(row.argument) == bool(rows[0].argument)]
    found: list[list[str]] = []
    size = len(kind)
    while size >= 1 and len(found) < limit:
        for start in range(0, len(kind), size):
            found.append(_applied(lines, kind[start : start + size]))
            if len(found) == limit:
                break
        size //= 2
    return sorted(found, key=len)


def singles(lines: Sequence[str], rows: Sequence[Reduction]) -> list[list[str]]:
    return [_applied(lines, [row]) for row in rows]


def _applied(lines: Sequence[str], rows: Sequence[Reduction]) -> list[str]:
    gone = {n for row in rows for n in range(row.operation.start, row.operation.end + 1)}
    arguments = [row.argument for row in rows if row.argument]
    kept = [line for number, line in enumerate(lines) if number not in gone]
    return [_with_arguments(line, arguments) for line in kept] if arguments else kept


def _with_arguments(line: str, arguments: Sequence[str]) -> str:
    found = _SIGNATURE.match(line)
    if not found:
        return line
    rest = line[found.end() :]
    separator = "" if rest.startswith(")") else ", "
    return found.group() + ", ".join(arguments) + separator + rest


def _key(lines: Sequence[str], operation: Operation) -> str:
    return "\n".join(lines[operation.start : operation.end + 1])


def without_unused_arguments(text: str) -> str:
    """The function without parameters that its body does not name."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _SIGNATURE.match(line)
        if not found:
            continue
        parts, end = _parameters(line, found.end())
        body = "\n".join(lines[number + 1 :])
        kept = [part for part in parts if re.search(rf"{re.escape(part.split(':')[0].strip())}\b", body)]
        lines[number] = found.group() + ", ".join(part.strip() for part in kept) + line[end:]
    return "\n".join(lines) + "\n"


def _parameters(line: str, start: int) -> tuple[list[str], int]:
    """The parameters from `start`, split at their commas, and where the closing bracket is."""
    parts: list[str] = []
    depth, begin = 0, start
    for index in range(start, len(line)):
        if line[index] in "(<[{":
            depth += 1
        elif line[index] == ")" and depth == 0:
            return [*parts, line[begin:index]] if line[start:index].strip() else [], index
        elif line[index] in ")>]}" and line[index - 1] != "-":
            depth -= 1
        elif line[index] == "," and depth == 0:
            parts.append(line[begin:index])
            begin = index + 1
    return [], start


def without_unused_aliases(text: str) -> str:
    """Layout aliases that nothing refers to any more."""
    while True:
        kept = []
        for line in text.splitlines():
            alias = re.match(r"([#!]\w+) = ", line)
            if alias and len(re.findall(rf"{re.escape(alias.group(1))}\b", text)) < 2:
                continue
            kept.append(line)
        shorter = "\n".join(kept) + "\n"
        if shorter == text:
            return text
        text = shorter


# CHECK lines


def checks_of_edit(base: str, head: str, *, before: int) -> list[str]:
    """CHECK lines for the places where the outputs differ: head's lines, the one after, `before` ahead."""
    texts = [normalize.canonicalize(Stage.TTGIR, text) for text in (base, head)]
    canonical, numbers = [text.lines for text in texts], texts[1].numbers
    raw = head.splitlines()
    pairs = alignment.matching(*(map(blanking(Stage.TTGIR), lines) for lines in canonical))
    found = [_label(raw)]
    i = j = 0
    last = 0
    for a, b in [*pairs, (len(canonical[0]), len(canonical[1]))]:
        if i < a or j < b:
            rows = [numbers[k] for k in range(max(j - before, 0), min(b + 1, len(numbers))) if numbers[k]]
            rows = [row for row in rows if row > last and not _NOT_OPERATIONS.match(raw[row - 1])]
            found += [f"CHECK{'-NEXT' if k else ''}: {pattern(raw[row - 1])}" for k, row in enumerate(rows)]
            last = rows[-1] if rows else last
        i, j = a + 1, b + 1
    return found


def checks_of_all(head: str) -> list[str]:
    """Every line of head's function, one after the other."""
    raw = head.splitlines()
    start = next((n for n, line in enumerate(raw) if ".func" in line), 0)
    body = [line for line in raw[start + 1 :] if line.strip()]
    return [_label(raw), *(f"CHECK-NEXT: {pattern(line)}" for line in body)]


def _label(raw: Sequence[str]) -> str:
    name = next(
        (found.group(1) for line in raw if (found := re.search(r"\.func [^@]*@([\w.$]+)\(", line))), ""
    )
    return f"CHECK-LABEL: @{name}("


def pattern(line: str) -> str:
    """One printed line for FileCheck, whatever its values are called."""
    escaped = line.strip().replace("[[", r"{{\[\[}}")
    return re.sub(r"%[\w$.-]+(?:[:#]\d+)?", "%{{[a-zA-Z0-9_#:]+}}", escaped)
