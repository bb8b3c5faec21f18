"""Generated kernel packages and random edits of them; the same seed gives the same packages and edits.

A project is one workload and its package. Its kernel applies a few parts to what it loads; each part is a number
that reaches the kernel in one of the ways of `kinds`, in a function that lies in one of the places of HOSTS.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from tests.programs.evidence import kinds
from tests.programs.evidence.kinds import Piece

NUMBERS = (1.5, 2.5, 3.5, 5.5, 6.5)
"""Few, so that edits come back to states that the store has seen."""
OPERATORS = ("*", "+", "-")
HOSTS = ("kernel", "file", "nested", "static", "closure", "site-packages", "argument")
NOISES = ("comment", "docstring", "lines", "unused", "local", "unread")
FEWEST_PARTS, MOST_PARTS = 2, 5

_HEADER = "import triton\nimport triton.language as tl\n"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr{parameters}):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
{terms}
    tl.store(out_ptr + offsets, x, mask=mask)
"""
_WORKLOAD = """\
import triton
from irdiff_corpus import empty, launch, tensor
from {package}.kernel import kernel
{imports}


def run(x):
    out = empty(x.shape, x.dtype)
{before}
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256{arguments})
{after}
    return out


LAUNCHES = {{"fp32": launch(run, tensor((4096,), "fp32"))}}
"""
_INIT = """\
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
"""


@dataclass(frozen=True, kw_only=True)
class Part:
    index: int
    kind: str
    host: str
    number: float
    operator: str
    flag: bool
    noise: tuple[int, ...]
    """How often each of NOISES was edited."""


@dataclass(frozen=True, kw_only=True)
class Project:
    name: str
    parts: tuple[Part, ...]

    def files(self) -> dict[str, str]:
        """Path in the repository → content."""
        placed = [_Placed.of(part, self.name) for part in self.parts]
        files = {f"src/{self.name}/__init__.py": _INIT}
        for part in placed:
            files.update((f"src/{self.name}/{place}", text) for place, text in part.files.items())
        files[f"src/{self.name}/kernel.py"] = _kernel(placed)
        files[f"bench/made/{self.name}.py"] = _workload(self.name, placed)
        return files


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One step of one project."""

    what: str
    expected: str | None
    """The verdict, where the edit alone says it."""


@dataclass(frozen=True, kw_only=True)
class _Placed:
    """A part, as the kernel and the workload see it."""

    above: str
    term: str
    arguments: Mapping[str, str]
    piece: Piece
    imports: str
    files: Mapping[str, str]

    @staticmethod
    def of(part: Part, package: str) -> _Placed:
        index = part.index
        piece = kinds.piece(part.kind, package, index, part.number, part.operator, flag=part.flag)
        text = dict(zip(NOISES, part.noise, strict=True))
        files = {**piece.files, f"notes_{index}.txt": f"{text['unread']}\n"}
        noise = (
            f"# {text['comment']}"
            + "\n" * text["lines"]
            + f"\n\ndef unused_{index}():\n    return {text['unused']}"
        )
        arguments = dict(piece.arguments)
        if part.host == "kernel":
            above = f"{piece.above}\n\n{noise}"
            return _Placed(
                above=above, term=piece.term, arguments=arguments, piece=piece, imports="", files=files
            )
        parameters = "".join(f", {name}: tl.constexpr" for name in arguments)
        local = f"y{text['local']}"
        function = (
            f"@triton.jit\ndef part_{index}(x, n, BLOCK: tl.constexpr{parameters}):\n"
            f'    """{text["docstring"]}"""\n    {local} = {piece.term}\n    return {local}\n'
        )
        module = f"{_HEADER}\n{noise}\n\n{piece.above}\n\n\n"
        passed = ", ".join(("x", "n", "BLOCK", *arguments))
        names = {"ROW": package, "I": str(index)}
        above, call, place, wrapped = _HOSTED[part.host](function, names)
        imports = f"from {package}.part_{index} import part_{index}" if part.host == "argument" else ""
        if part.host == "argument":
            arguments[f"F_{index}"] = f"part_{index}"
        files[place] = module + wrapped
        return _Placed(
            above=above,
            term=f"{call}({passed})",
            arguments=arguments,
            piece=piece,
            imports=imports,
            files=files,
        )


def _in_file(function: str, names: Mapping[str, str]) -> tuple[str, str, str, str]:
    """(what the kernel's module has above it, how the kernel calls it, where it lies, how it stands there)."""
    row, i = names["ROW"], names["I"]
    return f"from {row}.part_{i} import part_{i}", f"part_{i}", f"part_{i}.py", function


def _nested(function: str, names: Mapping[str, str]) -> tuple[str, str, str, str]:
    row, i = names["ROW"], names["I"]
    path = f"{row}.deep_{i}.inner.part"
    return f"import {path}", f"{path}.part_{i}", f"deep_{i}/inner/part.py", function


def _static(function: str, names: Mapping[str, str]) -> tuple[str, str, str, str]:
    row, i = names["ROW"], names["I"]
    inside = textwrap.indent("@staticmethod\n" + function, "    ")
    return (
        f"from {row} import part_{i}",
        f"part_{i}.Parts.part_{i}",
        f"part_{i}.py",
        f"class Parts:\n{inside}",
    )


def _closure(function: str, names: Mapping[str, str]) -> tuple[str, str, str, str]:
    row, i = names["ROW"], names["I"]
    inside = textwrap.indent(function, "    ")
    made = f"def made():\n{inside}\n    return part_{i}\n\n\npart_{i} = made()\n"
    return f"from {row}.part_{i} import part_{i}", f"part_{i}", f"part_{i}.py", made


def _in_site_packages(function: str, names: Mapping[str, str]) -> tuple[str, str, str, str]:
    name = f"{names['ROW']}_site_{names['I']}"
    return f"import {name}", f"{name}.part_{names['I']}", f"site-packages/{name}.py", function


def _argument(function: str, names: Mapping[str, str]) -> tuple[str, str, str, str]:
    return "", f"F_{names['I']}", f"part_{names['I']}.py", function


_HOSTED: Mapping[str, Callable[[str, Mapping[str, str]], tuple[str, str, str, str]]] = {
    "file": _in_file,
    "nested": _nested,
    "static": _static,
    "closure": _closure,
    "site-packages": _in_site_packages,
    "argument": _argument,
}


def _kernel(placed: list[_Placed]) -> str:
    arguments = [name for part in placed for name in part.arguments]
    return (
        _HEADER
        + "\n".join(part.above for part in placed)
        + "\n"
        + _KERNEL.format(
            parameters="".join(f", {name}: tl.constexpr" for name in arguments),
            terms="\n".join(f"    x = {part.term}" for part in placed),
        )
    )


def _workload(name: str, placed: list[_Placed]) -> str:
    arguments = {key: value for part in placed for key, value in part.arguments.items()}
    return _WORKLOAD.format(
        package=name,
        imports="\n".join(line for part in placed for line in (part.piece.imports, part.imports) if line),
        before="\n".join(f"    {part.piece.before}" for part in placed if part.piece.before),
        after="\n".join(f"    {part.piece.after}" for part in placed if part.piece.after),
        arguments="".join(f", {key}={value}" for key, value in arguments.items()),
    )


# random choices


def new_project(name: str, random: Random) -> Project:
    count = random.randint(FEWEST_PARTS, MOST_PARTS)
    return Project(name=name, parts=tuple(_new_part(index, random) for index in range(count)))


def _new_part(index: int, random: Random) -> Part:
    return Part(
        index=index,
        kind=random.choice(list(kinds.KINDS)),
        host=random.choice(HOSTS),
        number=random.choice(NUMBERS),
        operator=random.choice(OPERATORS),
        flag=random.random() < 0.5,
        noise=(0,) * len(NOISES),
    )


def edited(project: Project, random: Random) -> tuple[Project, Edit]:
    """The project after one random edit, and what was done."""
    part = random.choice(project.parts)
    ways = ["number"] * 8 + ["operator"] * 2 + ["noise"] * 5 + ["kind", "host", "add", "drop"]
    way = random.choice(ways + (["flag"] * 8 if part.kind in kinds.FLAGGED else []))
    where = f"part {part.index} ({part.kind} in {part.host})"
    if way == "add" and len(project.parts) < MOST_PARTS:
        fresh = _new_part(max(part.index for part in project.parts) + 1, random)
        parts = (*project.parts, fresh)
        return replace(project, parts=parts), Edit(
            what=f"add {fresh.kind} in {fresh.host}", expected="changed"
        )
    if way == "drop" and len(project.parts) > FEWEST_PARTS:
        parts = tuple(other for other in project.parts if other is not part)
        return replace(project, parts=parts), Edit(what=f"drop {where}", expected="changed")
    new, edit = _edited_part(part, way, where, random)
    parts = tuple(new if other is part else other for other in project.parts)
    return replace(project, parts=parts), edit


def _edited_part(part: Part, way: str, where: str, random: Random) -> tuple[Part, Edit]:
    match way:
        case "operator":
            operator = random.choice([other for other in OPERATORS if other != part.operator])
            return replace(part, operator=operator), Edit(what=f"{operator} in {where}", expected="changed")
        case "flag":
            return replace(part, flag=not part.flag), Edit(what=f"flag of {where}", expected="changed")
        case "noise":
            kind = random.randrange(len(NOISES))
            noise = tuple(count + (index == kind) for index, count in enumerate(part.noise))
            return replace(part, noise=noise), Edit(what=f"{NOISES[kind]} of {where}", expected="unchanged")
        case "kind":
            kind = random.choice(list(kinds.KINDS))
            return replace(part, kind=kind), Edit(what=f"{where} becomes {kind}", expected=None)
        case "host":
            host = random.choice(HOSTS)
            return replace(part, host=host), Edit(what=f"{where} moves to {host}", expected=None)
    number = random.choice([other for other in NUMBERS if other != part.number])
    hidden = part.kind == "optional" and not part.flag
    expected = "unchanged" if hidden else "changed"
    return replace(part, number=number), Edit(what=f"{number} in {where}", expected=expected)
