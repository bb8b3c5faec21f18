"""Mutants, chosen by a seed: small edits of expressions and statements in functions of six areas."""

from __future__ import annotations

import ast
import copy
import csv
import random
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from tests.programs.catch.faults import MUTANTS, Fault, functions

AREAS = {
    "compare": (50, "irdiff/compare"),
    "gate": (50, "irdiff/gate"),
    "group": (50, "irdiff/group"),
    "cache": (25, "irdiff/store"),
    "pipeline": (30, "irdiff/pipeline.py"),
    "worker": (45, "irdiff/worker"),
}
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_CALLED = {"any": "all", "all": "any", "min": "max", "max": "min"}
_SPOKEN = (ast.Raise, ast.Assert, ast.JoinedStr, ast.FunctionDef, ast.Lambda)
"""What is said to people, and what is no edit of this function's own work."""


def choose(tree: Path, seed: int) -> None:
    """Writes the mutants of a tree, each area's in equal parts of its functions."""
    drawn = random.Random(seed)
    chosen = [fault for area in AREAS for fault in _of_area(tree, area, drawn)]
    MUTANTS.parent.mkdir(parents=True, exist_ok=True)
    with MUTANTS.open("w", newline="") as opened:
        names = [field.name for field in fields(Fault)]
        rows = csv.DictWriter(opened, names, dialect="excel-tab", lineterminator="\n")
        rows.writeheader()
        rows.writerows(asdict(fault) for fault in chosen)


def _of_area(tree: Path, area: str, drawn: random.Random) -> list[Fault]:
    wanted, place = AREAS[area]
    paths = [tree / place] if place.endswith(".py") else sorted((tree / place).rglob("*.py"))
    candidates: list[list[Fault]] = []
    for path in paths:
        text = path.read_text()
        relative = str(path.relative_to(tree))
        for name, function in functions(ast.parse(text)):
            if not name.rpartition(".")[2].startswith("__") and (
                found := _mutants(area, relative, name, function)
            ):
                candidates.append(found)
    drawn.shuffle(candidates)
    chosen: list[Fault] = []
    while len(chosen) < wanted:
        for of_function in candidates:
            if of_function and len(chosen) < wanted:
                kinds = sorted({fault.kind for fault in of_function})
                kind = drawn.choice(kinds)
                fault = drawn.choice([fault for fault in of_function if fault.kind == kind])
                of_function.remove(fault)
                chosen.append(fault)
    chosen.sort(key=lambda fault: (fault.path, fault.function, fault.before))
    return [
        Fault(**{**asdict(fault), "name": f"{area}-{number:02}"})
        for number, fault in enumerate(chosen, start=1)
    ]


def _mutants(area: str, path: str, name: str, function: ast.FunctionDef) -> list[Fault]:
    found = []
    seen: dict[tuple[bool, str], int] = {}
    conditions = {id(node.test) for node in ast.walk(function) if isinstance(node, ast.If | ast.While)}
    places = {id(node) for statement in function.body for node in _own(statement)}
    for node in ast.walk(function):
        if not isinstance(node, ast.expr | ast.stmt):
            continue
        before = ast.unparse(node)
        equal = (isinstance(node, ast.stmt), before)
        nth = seen.get(equal, 0)
        seen[equal] = nth + 1
        if id(node) not in places or "\n" in before or "\t" in before:
            continue
        edits = list(_edits(node)) if node is not function.body[-1] else []
        if id(node) in conditions:
            edits.append(("negate", f"(not ({before}))"))
        for kind, after in edits:
            found.append(
                Fault(
                    name="",
                    area=area,
                    kind=kind,
                    path=path,
                    function=name,
                    before=before,
                    after=after,
                    nth=nth,
                )
            )
    return found


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, without sentences, annotations and functions within."""
    if isinstance(node, _SPOKEN) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for below in value if isinstance(value, list) else [value]:
            if isinstance(below, ast.AST):
                yield from _own(below)


def _edits(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Each kind of edit that a node allows, with the new source."""
    match node:
        case ast.Compare(ops=[operation]) if type(operation) in _COMPARED:
            yield "compare", f"({_changed(node, ops=[_COMPARED[type(operation)]()])})"
        case ast.BoolOp(op=operation):
            other = ast.Or() if isinstance(operation, ast.And) else ast.And()
            yield "boolean", f"({_changed(node, op=other)})"
        case ast.IfExp(test=test):
            yield "negate", f"({_changed(node, test=ast.UnaryOp(op=ast.Not(), operand=test))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negate", f"({ast.unparse(operand)})"
        case ast.Constant(value=bool() as value):
            yield "constant", str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", str(value + 1)
        case ast.BinOp(op=operation) if type(operation) in _COUNTED:
            yield "arithmetic", f"({_changed(node, op=_COUNTED[type(operation)]())})"
        case ast.Call(func=ast.Name(id=called)) if called in _CALLED:
            yield "call", _changed(node, func=ast.Name(id=_CALLED[called]))
        case ast.Return():
            yield "return statement", "pass"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "drop statement", "pass"
        case ast.Continue():
            yield "drop statement", "break"
    match node:
        case ast.Call(func=ast.Name(id=called), keywords=keywords) if called.islower():
            for dropped in keywords:
                yield (
                    "argument",
                    _changed(node, keywords=[keyword for keyword in keywords if keyword is not dropped]),
                )
        case (
            ast.ListComp(generators=[one])
            | ast.SetComp(generators=[one])
            | ast.GeneratorExp(generators=[one])
        ):
            if one.ifs:
                negated = [ast.UnaryOp(op=ast.Not(), operand=one.ifs[0]), *one.ifs[1:]]
                clause = ast.comprehension(target=one.target, iter=one.iter, ifs=negated, is_async=0)
                yield "negate", _changed(node, generators=[clause])


def _changed(node: ast.AST, **parts: object) -> str:
    changed = copy.copy(node)
    for name, value in parts.items():
        setattr(changed, name, value)
    return ast.unparse(ast.fix_missing_locations(changed))
