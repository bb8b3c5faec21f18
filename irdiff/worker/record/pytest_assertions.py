"""Ignores failing assertions of tests whose kernels compute nothing.

An assertion decides only whether a test passes, so a value that only an assertion, or a function called
`assert…`, reads does not make a test less followed. Assertions of numpy and torch check nothing.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import functools
import importlib
import os
import sys
import types

from ..loaded import WORKER, is_standard


def turn_off():
    """Modules that were imported before keep their assertions."""
    _go_on_after_assertions(importlib.import_module("_pytest.assertion.rewrite"))
    with contextlib.suppress(ModuleNotFoundError):  # a repository need not have it
        _turn_off_those_of_numpy()


def _turn_off_those_of_numpy():
    import numpy.testing

    for name in dir(numpy.testing):
        if name.startswith("assert_"):
            setattr(numpy.testing, name, lambda *_, **__: None)
    # results that no kernel writes may be an index: they are the same in every process
    for name in ("empty", "empty_like"):
        setattr(numpy, name, getattr(numpy, name.replace("empty", "zeros")))


def _go_on_after_assertions(rewrite):
    """rewrite: the module in which pytest compiles tests."""
    compile_test, root = rewrite._rewrite_test, os.path.join(os.getcwd(), "")

    def compile_forgiving(*arguments):
        stat, code = compile_test(*arguments)
        return stat, _below(root, code)

    rewrite._rewrite_test = compile_forgiving
    rewrite.rewrite_asserts = lambda module, *_, **__: _Forgiving().visit(module)
    rewrite._read_pyc = lambda *_, **__: None  # code that pytest kept has its assertions


def _below(root, code):
    """Names the code's file relative to the root: the name reaches the machine code of an assertion."""
    inner = [_below(root, value) if hasattr(value, "co_filename") else value for value in code.co_consts]
    name = code.co_filename[len(root) :] if code.co_filename.startswith(root) else code.co_filename
    return code.replace(co_filename=name, co_consts=tuple(inner))


def in_one():
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name.startswith("assert") or frame.f_lineno in _lines_of(code.co_filename).of_asserts:
            return True
        frame = frame.f_back
    return False


def is_only_asserted():
    """True if the value that the running line of a test reads can reach nothing but assertions."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(WORKER):
        frame = frame.f_back
    if frame is None:
        return False
    lines = _lines_of(frame.f_code.co_filename)
    return frame.f_lineno in lines.of_asserts or frame.f_lineno in lines.asserted


def learn(root):
    """Reads the files of all modules loaded from `root`, once for all processes forked from here."""
    below = os.path.join(os.path.realpath(root), "")
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if os.path.realpath(path).startswith(below):
            _lines_of(path)
            _lines_of(os.path.realpath(path)[len(below) :])  # as `_below` names it


class _Forgiving(ast.NodeTransformer):
    def visit_Assert(self, node):
        caught = ast.ExceptHandler(ast.Name("AssertionError", ast.Load()), None, [ast.Pass()])
        whole = ast.Try([node], [caught], [], [])
        return ast.fix_missing_locations(ast.copy_location(whole, node))


class _Lines:
    """Line numbers of a file of tests."""

    def __init__(self, tree=None):
        nodes = list(ast.walk(tree)) if tree else []
        self.of_asserts = frozenset(_all_lines(node for node in nodes if isinstance(node, ast.Assert)))
        functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self.asserted = frozenset(
            _all_lines(statement for function in functions for statement in _only_asserted(function))
        )
        """All lines of the statements `name = kernel.asm[stage]` whose name only assertions read."""


def _only_asserted(function):
    """Yields assignments `name = kernel.asm[stage]` whose name only assertions read."""
    nodes = list(ast.walk(function))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    in_asserts = _names_read(
        inner for node in nodes if isinstance(node, ast.Assert) for inner in ast.walk(node)
    )
    others = _names_read(nodes)
    others.subtract(in_asserts)
    outside = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_of_asm(node.value):
            target = node.targets[0]
            if isinstance(target, ast.Name) and not others[target.id] and target.id in read - outside:
                yield node


def _names_read(nodes):
    return collections.Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def _is_of_asm(node):
    """Matches `kernel.asm[stage]` if evaluating it calls nothing else."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "asm"
        and isinstance(node.value.value, ast.Name)
    )


def _all_lines(nodes):
    return (line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


@functools.lru_cache(maxsize=None)
def _lines_of(path):
    if not path.endswith(".py") or "site-packages" in path or path.startswith(WORKER) or is_standard(path):
        return _Lines()
    try:
        with open(path, encoding="utf-8") as file:
            return _Lines(ast.parse(file.read()))
    except (OSError, SyntaxError):
        return _Lines()
