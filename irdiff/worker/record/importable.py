"""Decides which functions and classes of a recorded program a workload can import from the repository, so
that it launches those of the compared revision.

Others have to be copied: functions inside others, modules that are generated or lie outside of the
repository, files that git ignores, and a program that would run again when it is imported.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import subprocess
import sys

from ..texts import jit_function

_INSTALLED = ("site-packages", "dist-packages")
_QUIET = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_VALUES = (ast.Assign, ast.AnnAssign, ast.AugAssign)


class Importable:
    """Without a root nothing can be imported, and no reason is reported."""

    def __init__(self, root=None):
        self.root = os.path.realpath(root) if root else ""
        self._ignored: dict = {}

    def module_of(self, value):
        """Returns the module to import a function or class from; None if it has to be copied."""
        return None if self.why_not(value) else self._place(value)

    def why_not(self, value):
        """Returns the end of a sentence; None if the value can be imported."""
        if not self.root:
            return "the program is in no repository"
        plain = getattr(value, "fn", value)
        scope = _scope_of(plain)
        path = scope.get("__file__")
        if not path or not os.path.isfile(path):
            return f"no file holds {plain.__name__}: it was generated"
        if "<locals>" in plain.__qualname__:
            return f"{plain.__qualname__} is made inside of another function"
        bound = scope.get(plain.__name__)
        kernel = jit_function(bound) if jit_function(value) is not None else bound
        if kernel is not value and kernel is not plain:
            return f"{plain.__name__} means something else in {os.path.basename(path)}"
        return self._why_not_module(value, path)

    def _why_not_module(self, value, path):
        inner = self._inside(path)
        why = self._why_not_file(path, inner)
        if why:
            return why
        if self._place(value) is None:
            return f"{inner} was not imported by a name that leads to it"
        if _scope_of(getattr(value, "fn", value)).get("__name__") == "__main__" and not _is_quiet(path):
            return f'{inner} runs when it is imported: put what it does below `if __name__ == "__main__":`'
        return None

    def _why_not_file(self, path, inner):
        if inner is None or any(part in _INSTALLED for part in inner.split(os.sep)):
            return f"{path} does not lie in the repository"
        return f"git ignores {inner}" if self._is_ignored(inner) else None

    def module_name(self, module):
        """Returns None for a module that cannot be imported."""
        path = getattr(module, "__file__", None)
        inner = self._inside(path) if self.root and path else None
        if inner is None or self._why_not_file(path, inner):
            return None
        return _named(module.__name__, inner)

    def _place(self, value):
        scope = _scope_of(getattr(value, "fn", value))
        return _named(scope.get("__name__", ""), self._inside(scope["__file__"]))

    def _inside(self, path):
        path = os.path.realpath(path)
        return path[len(self.root) + 1 :] if path.startswith(self.root + os.sep) else None

    def _is_ignored(self, inner):
        if inner not in self._ignored:
            words = ["git", "-C", self.root, "check-ignore", "--quiet", "--", inner]
            try:
                self._ignored[inner] = subprocess.run(words, capture_output=True).returncode == 0
            except OSError:  # without git nothing says so
                self._ignored[inner] = False
        return self._ignored[inner]


def only_defines(text):
    """True if importing a program would only define things and assign values."""
    return all(_defines(node) for node in ast.parse(text).body)


@functools.lru_cache(maxsize=None)
def _is_quiet(path):
    with open(path, encoding="utf-8") as file:
        return only_defines(file.read())


def _defines(node):
    if isinstance(node, (*_QUIET, *_VALUES)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        if "__name__" in {inner.id for inner in ast.walk(node.test) if isinstance(inner, ast.Name)}:
            return all(map(_defines, node.orelse))
        return all(map(_defines, [*node.body, *node.orelse]))
    if isinstance(node, ast.Try):
        handlers = [inner for handler in node.handlers for inner in handler.body]
        return all(map(_defines, [*node.body, *handlers, *node.orelse, *node.finalbody]))
    return isinstance(node, ast.Pass)


def _named(name, inner):
    """Returns None if the name does not lead to the file."""
    place = os.path.splitext(inner)[0]
    stem = os.path.basename(place)
    if name == "__main__":
        return stem if stem.isidentifier() else None
    place = os.path.dirname(place) if stem == "__init__" else place
    return name if f"{os.sep}{place}".endswith(os.sep + name.replace(".", os.sep)) else None


def _scope_of(plain):
    if inspect.isfunction(plain):
        return plain.__globals__
    return vars(sys.modules[plain.__module__]) if plain.__module__ in sys.modules else {}
