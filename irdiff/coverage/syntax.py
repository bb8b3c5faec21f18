"""Answers about syntax trees: which names a part uses and binds, and what is left without some functions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence

Def = ast.FunctionDef | ast.AsyncFunctionDef


class _WithoutFunctions(ast.NodeTransformer):
    """Drops functions that stand for themselves."""

    def __init__(self, functions: Iterable[ast.AST]) -> None:
        self._functions = set(map(id, functions))

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.Pass() if id(node) in self._functions else self.generic_visit(node)


def without(node: ast.AST, functions: Sequence[ast.AST]) -> ast.AST:
    if not functions:
        return node
    same: dict[int, ast.AST] = {}  # deepcopy gives each node a copy
    copied = copy.deepcopy(node, same)
    return _WithoutFunctions(same[id(function)] for function in functions if id(function) in same).visit(
        copied
    )


def free_names(node: ast.AST) -> frozenset[str]:
    """Names that are bound elsewhere, and attributes as `.name`."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    names = frozenset().union(*map(free_names, ast.iter_child_nodes(node)))
    if isinstance(node, ast.Attribute):
        return names | {f".{node.attr}"}
    if not isinstance(node, Def | ast.Lambda):
        return names
    body = node.body if isinstance(node.body, list) else [node.body]
    outside = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    outside += [a.annotation for a in all_arguments(node.args) if a.annotation is not None]
    outside += [*node.decorator_list, *filter(None, [node.returns])] if isinstance(node, Def) else []
    inside = frozenset().union(*map(free_names, body)) - _local_names(body) - {*arguments(node.args)}
    return inside.union(*map(free_names, outside))


def _local_names(body: Iterable[ast.AST]) -> set[str]:
    local: set[str] = set()
    elsewhere: set[str] = set()
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, Def | ast.ClassDef):
            local.add(node.name)
            continue
        if isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere.update(node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            local.add(node.id)
        if not isinstance(node, ast.Lambda):
            todo += ast.iter_child_nodes(node)
    return local - elsewhere


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return several + [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]


def arguments(arguments: ast.arguments) -> list[str]:
    return [argument.arg for argument in all_arguments(arguments)]


def first_line(node: Def | ast.Lambda) -> int:
    decorators = node.decorator_list if isinstance(node, Def) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in walk(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def is_block(value: object) -> bool:
    return isinstance(value, list) and isinstance(
        next(iter(value), None), ast.stmt | ast.ExceptHandler | ast.match_case
    )


def nodes(value: object) -> list[ast.AST]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST)]


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def outermost_lambdas(nodes: Iterable[ast.AST]) -> Iterator[ast.Lambda]:
    for node in nodes:
        if isinstance(node, ast.Lambda):
            yield node
        else:
            yield from outermost_lambdas(ast.iter_child_nodes(node))
