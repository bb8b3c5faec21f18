"""The text side of a lit test: IR without locations, what can be left out of it, and CHECK lines. Pure.

Whether a smaller text still shows what it must is for the caller to try: some of them are no valid IR.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irdiff.compare import alignment
from irdiff.ir.mlir.lines import blank
from irdiff.stages import Stage
from irdiff.texts import canonicalize

_LOCATION_LINE = re.compile(r"^#loc\d* = loc\(.*\)$\n?", re.MULTILINE)
_LOCATION = re.compile(r" loc\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)")
_RESULT = re.compile(r"^\s*(%[\w$.-]+(?::\d+)?(?:, %[\w$.-]+(?::\d+)?)*) = ")
_RESULT_TYPE = re.compile(r"(?:->| :) ([^:]+)$")
_POINTEE = re.compile(r"!tt\.ptr<([^<>]*)>")
_SIGNATURE = re.compile(
    r"(\s*(?:tt|llvm|func)\.func [^@]*@([\w.$]+)\()(.*)(\)(?: -> .*| attributes .*)? \{)$"
)
_VALUE = re.compile(r"%[\w$.-]+")
_LABEL = re.compile(r"( *)(\^\w+)(?:\((.*)\))?:")
_BRANCH = re.compile(r" *cf\.br (\^\w+)(?:\(([^():]*) : .*\))?$")
_CONDITIONAL = re.compile(
    r"( *)cf\.cond_br %[\w$.-]+, (\^\w+(?:\([^()]*\))?), (\^\w+(?:\([^()]*\))?)(?: \{.*\})?$"
)
_NOT_OPERATIONS = re.compile(r"\s*(?:module\b|(?:tt|llvm|func)\.func\b|[#!]\w+ = |\}|\^|\{|$)")
_TERMINATOR = re.compile(
    r"\s*(?:scf\.(?:yield|condition)|tt\.(?:reduce\.|scan\.)?return|cf\.|return\b|llvm\.return"
    r"|ttg\.warp_(?:yield|return))"
)


def without_locations(text: str) -> str:
    return _LOCATION.sub("", _LOCATION_LINE.sub("", text)).strip("\n") + "\n"


# what can be left out


CONTROL_FLOW = frozenset({"branch", "block", "join"})


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """One way to make a text smaller: lines `start` to `end`, both included, are replaced."""

    kind: str
    start: int
    end: int
    key: str
    """Those lines and what is in their place: the same in a text that is smaller elsewhere."""
    line: str = ""
    """In their place, if any."""
    argument: str = ""
    """A new parameter of the function: `%x: i32`."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Values that have another name then."""


def steps(lines: Sequence[str]) -> Iterator[Reduction]:
    """By kind: a branch that always goes one way, a block that nothing enters then, a block that only follows
    another one, an operation whose results nothing else uses, and an operation whose result becomes a
    parameter; the last operations first.
    """

    def step(kind: str, start: int, end: int, line: str = "", argument: str = "", **more: Any) -> Reduction:
        key = "\n".join((kind, *lines[start : end + 1], line, argument))
        return Reduction(kind=kind, start=start, end=end, key=key, line=line, argument=argument, **more)

    for number, line in enumerate(lines):
        if branch := _CONDITIONAL.match(line):
            for target in branch.group(2, 3):
                yield step("branch", number, number, line=f"{branch[1]}cf.br {target}")
    indent = next((_indent(line) for line in lines if _SIGNATURE.match(line)), "")
    labels = [n for n, line in enumerate(lines) if (label := _LABEL.match(line)) and label[1] == indent]
    close = next((n for n in range(len(lines)) if lines[n] == f"{indent}}}"), len(lines))
    for start, end in itertools.pairwise([*labels, close]):
        yield step("block", start, end - 1)
    for number, (before, after) in enumerate(itertools.pairwise(lines)):
        branch, label = _BRANCH.match(before), _LABEL.match(after)
        if branch and label and branch[1] == label[2]:
            arguments, names = _VALUE.findall(branch[2] or ""), re.findall(r"(%[\w$.-]+): ", label[3] or "")
            yield step("join", number, number + 1, renamed=tuple(zip(names, arguments, strict=False)))
    operations = sorted(_operations(lines), reverse=True)
    uses: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        for name in _VALUE.findall(line):
            uses.setdefault(name, []).append(number)
    for start, end in operations:
        result = _RESULT.match(lines[start])
        names = _VALUE.findall(result[1]) if result else []
        if all(start <= number <= end for name in names for number in uses[name]):
            yield step("operation", start, end)
        elif start == end and (argument := _as_argument(lines[start])):
            yield step("argument", start, end, argument=argument)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _operations(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first and the last line of each, with its regions."""
    open_lines: list[int] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("}"):
            if text.endswith("{"):
                continue
            start = open_lines.pop() if open_lines else -1
            if start >= 0 and not _NOT_OPERATIONS.match(lines[start]):
                yield start, number
        elif text.endswith("{"):
            open_lines.append(number)
        elif not _NOT_OPERATIONS.match(line) and not _TERMINATOR.match(line):
            yield number, number


def _as_argument(line: str) -> str:
    """The result as a parameter, where the line shows its type. A wrong guess is no valid IR."""
    result, typed = _RESULT.match(line), _RESULT_TYPE.search(line)
    if not result or not typed or "," in result[1] or ":" in result[1] or "= arith.constant" in line:
        return ""
    kind = typed[1].strip()
    if "arith.cmp" in line:  # prints the type of what it compares
        kind = re.sub(r"(?<=x)[a-z]\w*(?=[,>])", "i1", kind, count=1) if "<" in kind else "i1"
    elif "= tt.load " in line:  # prints the pointer's
        kind = _POINTEE.sub(r"\1", kind)
    elif "arith.select" in line:  # prints the condition's where that has a shape
        kind = kind[kind.index(", tensor") + 2 :] if ", tensor" in kind else kind
    elif "tt.addptr" in line:  # prints both operands' types, the first is the result's
        kind = kind[: kind.index(", tensor")] if ", tensor" in kind else kind.partition(", ")[0]
    return f"{result[1]}: {kind}"


def applied(lines: Sequence[str], chosen: Iterable[Reduction]) -> list[str]:
    kept: dict[int, str] = dict(enumerate(lines))
    arguments: list[str] = []
    names: dict[str, str] = {}
    for step in chosen:
        for number in range(step.start, step.end + 1):
            kept.pop(number, None)
        if step.line:
            kept[step.start] = step.line
        arguments += [step.argument] * bool(step.argument)
        names.update(step.renamed)
    kept_lines = (kept[number] for number in sorted(kept))
    kept_lines = (_VALUE.sub(lambda value: names.get(value[0], value[0]), line) for line in kept_lines)
    return [_with_parameters(line, lambda parameters: [*arguments, *parameters]) for line in kept_lines]


def _with_parameters(line: str, change: Callable[[list[str]], list[str]]) -> str:
    """The line of a function's signature with other parameters; any other line as it is."""
    signature = _SIGNATURE.match(line)
    if not signature:
        return line
    parameters = re.split(r", (?=%)", signature[3]) if signature[3] else []
    return signature[1] + ", ".join(change(parameters)) + signature[4]


def without_unused_parameters(text: str) -> str:
    """The function without those that its body does not name."""

    def used(parameters: list[str]) -> list[str]:
        names = [part.partition(":")[0] for part in parameters]
        return [part for part, name in zip(parameters, names, strict=True) if len(_uses(name, text)) > 1]

    return "\n".join(_with_parameters(line, used) for line in text.splitlines()) + "\n"


def without_unused_aliases(text: str) -> str:
    """Layout aliases that nothing refers to any more."""
    while True:
        aliases = re.findall(r"^([#!]\w+) = ", text, re.MULTILINE)
        unused = next((alias for alias in aliases if len(_uses(alias, text)) < 2), None)
        if unused is None:
            return text
        text = re.sub(rf"^{re.escape(unused)} = .*\n", "", text, flags=re.MULTILINE)


def _uses(name: str, text: str) -> list[str]:
    return re.findall(rf"{re.escape(name)}(?![\w$.-])", text)


# CHECK lines


def checks_of_edit(base: str, head: str, *, before: int) -> list[str]:
    """CHECK lines for the places where the outputs differ: head's lines, the one after, `before` ahead."""
    texts = [canonicalize(Stage.TTGIR, text) for text in (base, head)]
    canonical, numbers = [text.lines for text in texts], texts[1].numbers
    raw = head.splitlines()
    pairs = alignment.matching(*(map(blank, lines) for lines in canonical))
    checks = [_label(raw)]
    i = j = 0
    last = 0
    for a, b in [*pairs, (len(canonical[0]), len(canonical[1]))]:
        if i < a or j < b:
            rows = [numbers[k] for k in range(max(j - before, 0), min(b + 1, len(numbers))) if numbers[k]]
            rows = [number for number in rows if number > last and not _NOT_OPERATIONS.match(raw[number - 1])]
            checks += [
                f"CHECK{'-NEXT' if k else ''}: {pattern(raw[number - 1])}" for k, number in enumerate(rows)
            ]
            last = rows[-1] if rows else last
        i, j = a + 1, b + 1
    return checks


def checks_of_all(head: str) -> list[str]:
    """Every line of head's function, one after the other."""
    raw = head.splitlines()
    start = next((n for n, line in enumerate(raw) if ".func" in line), 0)
    body = [line for line in raw[start + 1 :] if line.strip()]
    return [_label(raw), *(f"CHECK-NEXT: {pattern(line)}" for line in body)]


def _label(raw: Sequence[str]) -> str:
    names = (signature[2] for line in raw if (signature := _SIGNATURE.match(line)))
    return f"CHECK-LABEL: @{next(names, '')}("


def pattern(line: str) -> str:
    """One printed line for FileCheck, whatever its values are called."""
    escaped = line.strip().replace("[[", r"{{\[\[}}")
    return re.sub(r"%[\w$.-]+(?:[:#]\d+)?", "%{{[a-zA-Z0-9_#:]+}}", escaped)
