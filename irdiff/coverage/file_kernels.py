"""Finds the kernels of a Python file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from irdiff.coverage.syntax import Def, walk

_JIT = re.compile("jit", re.IGNORECASE)
_LANGUAGE = re.compile(r"triton.*\.language\b|(^|\.)(tl|gl|ttgl)(\.|$)")
"""`tl` may come from a module of the repository."""


class FileKernels:
    """Which functions of a file are kernels, as far as its text says."""

    def __init__(self, tree: ast.Module) -> None:
        self._origins: dict[str, str] = {}
        """By name, what was imported under it (`triton.jit`), or `jit` where that was assigned to it."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                self._origins.update(
                    (alias.asname or alias.name, f"{above}{alias.name}")
                    for alias in node.names
                    if alias.asname or above
                )
        self.imported = frozenset(
            alias.asname or alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        )
        for node in nodes:
            if isinstance(node, ast.Assign):  # `J = triton.jit`, `J = functools.partial(triton.jit, …)`
                value = node.value
                parts = value.args if isinstance(value, ast.Call) else [value]
                if all(isinstance(part, ast.Name | ast.Attribute) for part in parts) and self._says(
                    _JIT, parts
                ):
                    self._origins.update(
                        (name.id, "jit") for name in node.targets if isinstance(name, ast.Name)
                    )
        calls = [node for node in nodes if isinstance(node, ast.Call) and self._says(_JIT, [node.func])]
        words = [word for call in calls for word in call.keywords]
        parts = [part for call in calls for part in call.args] + [w.value for w in words if w.arg == "fn"]
        self._may_be: dict[ast.AST, bool] = {}
        self._passed = {part.id for part in parts if isinstance(part, ast.Name)}
        self.called_by_the_frontend = frozenset(
            word.value.id for word in words if word.arg == "repr" and isinstance(word.value, ast.Name)
        )
        """Functions such as `name` of `jit(repr=name)`, which returns the name of the compiled kernel."""

    def is_jitted(self, node: Def) -> bool:
        return self._says(_JIT, node.decorator_list) or node.name in self._passed

    def may_be(self, node: Def | ast.Lambda) -> bool:
        """Another file may hand it to the compiler."""
        if node not in self._may_be:
            is_jitted = isinstance(node, Def) and self.is_jitted(node)
            self._may_be[node] = is_jitted or self._says(_LANGUAGE, [node])
        return self._may_be[node]

    def _says(self, pattern: re.Pattern[str], nodes: Iterable[ast.AST]) -> bool:
        return any(pattern.search(self._dotted(part)) for part in walk(nodes))

    def _dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, node.id)
        return f"{self._dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""
