"""Functions of a Python file that changed; comments, docstrings and their places do not count. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_RUN_BY_THE_FRONTEND = "constexpr_function"
"""Decorates functions that run where nobody notes it."""


@dataclass(frozen=True, kw_only=True)
class ChangedFunction:
    """One that both sides have, and that does not do the same on both."""

    name: str
    """With its class: `SwiGLU.forward`."""
    lines: tuple[int, int]
    """Its first line at base and at head, that of its first decorator."""
    is_kernel: bool
    """Whether Triton compiles it."""


def changed(base: str, head: str) -> list[ChangedFunction]:
    """Nothing for a text that is no Python."""
    try:
        ours, theirs = (dict(_functions(ast.parse(text), "")) for text in (base, head))
    except (SyntaxError, ValueError):
        return []
    return [
        ChangedFunction(
            name=name, lines=(_first_line(ours[name]), _first_line(node)), is_kernel=_is_kernel(node)
        )
        for name, node in theirs.items()
        if name in ours and _meaning(ours[name]) != _meaning(node)
    ]


def _functions(node: ast.Module | ast.ClassDef, above: str) -> Iterator[tuple[str, _Function]]:
    """Functions inside of functions belong to those."""
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield from _functions(inner, f"{above}{inner.name}.")
        elif isinstance(inner, _Function):
            decorators = " ".join(map(ast.unparse, inner.decorator_list))
            if _RUN_BY_THE_FRONTEND not in decorators:
                yield f"{above}{inner.name}", inner


def _is_kernel(node: _Function) -> bool:
    return any(ast.unparse(decorator).partition("(")[0].endswith("jit") for decorator in node.decorator_list)


def _first_line(node: _Function) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _meaning(node: _Function) -> str:
    """Of its body: what stands above it is run where the file is imported."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return "\n".join(map(ast.dump, body))
