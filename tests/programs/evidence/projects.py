"""Generated kernel packages and random edits of them; the same seed gives the same packages and edits.

A project is one workload and its package. Its kernel applies a few parts to what it loads; each part is a number
that reaches the kernel in one of the ways of `kinds`, in a function that lies in one of the places of HOSTS.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.programs.evidence import kinds
from tests.programs.evidence.kinds import Piece

NUMBERS = (1.5, 2.5, 3.5, 5.5, 6.5)
"""Few, so that edits come back to states that the store has seen."""
OPERATORS = ("*", "+", "-")
_PLACES = {
    "file": ("from ROW.part_I import part_I", "part_I", "part_I.py", ""),
    "nested": ("import ROW.deep_I.inner.part", "ROW.deep_I.inner.part.part_I", "deep_I/inner/part.py", ""),
    "static": ("from ROW import part_I", "part_I.Parts.part_I", "part_I.py", "class Parts:\n    @staticmethod\n%s"),
    "closure": (
        "from ROW.part_I import part_I", "part_I", "part_I.py",
        "def made():\n%s\n    return part_I\n\n\npart_I = made()\n",
    ),
    "site-packages": ("import ROW_site_I", "ROW_site_I.part_I", "site-packages/ROW_site_I.py", ""),
    "argument": ("", "F_I", "part_I.py", ""),
}  # fmt: skip
"""What the kernel's module has above it, how the kernel calls the function, its file, and what is around it there."""
HOSTS = ("kernel", *_PLACES)
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
        placed = [_placed(part, self.name) for part in self.parts]
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


def _placed(part: Part, package: str) -> Piece:
    """A part, as the kernel and the workload see it."""
    index = part.index
    piece = kinds.piece(part.kind, package, index, part.number, part.operator, flag=part.flag)
    text = dict(zip(NOISES, part.noise, strict=True))
    files = {**piece.files, f"notes_{index}.txt": f"{text['unread']}\n"}
    blank = "\n" * text["lines"]
    noise = f"# {text['comment']}{blank}\n\ndef unused_{index}():\n    return {text['unused']}"
    if part.host == "kernel":
        return replace(piece, above=f"{piece.above}\n\n{noise}", files=files)
    parameters = "".join(f", {name}: tl.constexpr" for name in piece.arguments)
    local = f"y{text['local']}"
    function = (
        f"@triton.jit\ndef part_{index}(x, n, BLOCK: tl.constexpr{parameters}):\n"
        f'    """{text["docstring"]}"""\n    {local} = {piece.term}\n    return {local}\n'
    )
    names = (word.replace("ROW", package).replace("_I", f"_{index}") for word in _PLACES[part.host])
    above, call, place, around = names
    if around:
        function = around % textwrap.indent(function, "    ")
    passed = ", ".join(("x", "n", "BLOCK", *piece.arguments))
    imports, arguments = piece.imports, dict(piece.arguments)
    if part.host == "argument":
        arguments[f"F_{index}"] = f"part_{index}"
        imports = f"{imports}\nfrom {package}.part_{index} import part_{index}"
    files[place] = f"{_HEADER}\n{noise}\n\n{piece.above}\n\n\n{function}"
    return replace(
        piece, above=above, term=f"{call}({passed})", arguments=arguments, imports=imports, files=files
    )


def _kernel(placed: list[Piece]) -> str:
    arguments = [name for part in placed for name in part.arguments]
    above = "\n".join(part.above for part in placed)
    return f"{_HEADER}{above}\n" + _KERNEL.format(
        parameters="".join(f", {name}: tl.constexpr" for name in arguments),
        terms="\n".join(f"    x = {part.term}" for part in placed),
    )


def _workload(name: str, placed: list[Piece]) -> str:
    arguments = {key: value for part in placed for key, value in part.arguments.items()}
    return _WORKLOAD.format(
        package=name,
        imports="\n".join(part.imports.strip() for part in placed if part.imports),
        before="\n".join(f"    {part.before}" for part in placed if part.before),
        after="\n".join(f"    {part.after}" for part in placed if part.after),
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
        edit = Edit(what=f"add {fresh.kind} in {fresh.host}", expected="changed")
        return replace(project, parts=(*project.parts, fresh)), edit
    if way == "drop" and len(project.parts) > FEWEST_PARTS:
        parts = tuple(other for other in project.parts if other is not part)
        return replace(project, parts=parts), Edit(what=f"drop {where}", expected="changed")
    changes, what, expected = _edit(part, way, random)
    parts = tuple(replace(part, **changes) if other is part else other for other in project.parts)
    return replace(project, parts=parts), Edit(what=f"{what} of {where}", expected=expected)


def _edit(part: Part, way: str, random: Random) -> tuple[dict[str, Any], str, str | None]:
    """What changes of a part, in words too, and the verdict where the edit alone says it."""
    match way:
        case "operator":
            operator = random.choice([other for other in OPERATORS if other != part.operator])
            return {"operator": operator}, f"operator {operator}", "changed"
        case "flag":
            return {"flag": not part.flag}, "flag", "changed"
        case "noise":
            kind = random.randrange(len(NOISES))
            noise = tuple(count + (index == kind) for index, count in enumerate(part.noise))
            return {"noise": noise}, NOISES[kind], "unchanged"
        case "kind":
            kind = random.choice(list(kinds.KINDS))
            return {"kind": kind}, f"kind {kind}", None
        case "host":
            host = random.choice(HOSTS)
            return {"host": host}, f"host {host}", None
    number = random.choice([other for other in NUMBERS if other != part.number])
    hidden = part.kind == "optional" and not part.flag
    return {"number": number}, f"number {number}", "unchanged" if hidden else "changed"
