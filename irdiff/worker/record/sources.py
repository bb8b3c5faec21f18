"""Writes the source of a kernel with everything that it needs, as one readable Python file.

Follows the names that a JIT function reads, wherever they were defined. Modules of Triton, of the standard
library and of the recorded program's repository are imported. Every other module (Inductor's helpers, another
package) becomes a module object that holds the members in use.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import enum
import inspect
import math
import re
import sys
import textwrap

import triton
import triton.language as tl

from ..loaded import is_standard
from ..texts import jit_function
from .importable import Importable

_FUTURE_ANNOTATIONS = 0x1000000  # CO_FUTURE_ANNOTATIONS of CPython


class Unwritable(Exception):
    """Something that a kernel reads has no form as source."""


class SourceFile:
    """One namespace: imports, values and definitions, each before its first use."""

    def __init__(self, importable=None):
        self.importable = importable or Importable()
        self.imports = {"triton": "import triton", "tl": "import triton.language as tl"}
        self.statements = []
        self.future_annotations = False
        self._bound = {"triton": triton, "tl": tl}

    def text(self, using=""):
        """Returns the file up to its launches; `using` is the text that follows."""
        parts = [f"\n\n{part}\n" if "\n" in part else part for part in self.statements]
        body = re.sub("\n{4,}", "\n\n\n", "\n".join(parts))
        unused = [name for name in ("triton", "tl") if not re.search(rf"\b{name}\b", f"{body}\n{using}")]
        used = {line for name, line in self.imports.items() if name not in unused}
        lines = sorted(used, key=lambda line: (line.startswith("from"), line))
        return "\n".join(lines) + "\n" + (f"\n{body}\n" if parts else "")

    def bind(self, name, value):
        if name in self._bound:
            if not _same(self._bound[name], value):
                raise Unwritable(f"the name {name!r} means two different things in the kernel's modules")
            return
        if getattr(builtins, name, self) is value:
            return
        self._bound[name] = value
        function = jit_function(value)
        if inspect.ismodule(value):
            self._bind_module(name, value)
        elif function is not None or inspect.isfunction(value) or inspect.isclass(value):
            self._bind_definition(name, function if function is not None else value)
        else:
            self.statements.append(f"{name} = {self.expression(value)}")

    def _bind_module(self, name, module):
        own = self.importable.module_name(module)
        if own is None and not _is_importable(module.__name__, getattr(module, "__file__", None)):
            self.imports["types"] = "import types"
            self.statements.append(f'{name} = types.ModuleType("{name}")')
            return
        whole = own or module.__name__
        parent, _, last = whole.rpartition(".")
        if last != name:
            self.imports[name] = f"import {whole} as {name}"
        else:
            self.imports[name] = f"from {parent} import {name}" if parent else f"import {name}"

    def _bind_definition(self, name, value):
        plain = getattr(value, "fn", value)
        own, module = plain.__name__, plain.__module__ or ""
        origin_module = self.importable.module_of(value)
        if origin_module is None and _is_importable(module, None):
            if "<locals>" in plain.__qualname__ or not hasattr(sys.modules.get(module), own):
                raise Unwritable(f"{module}.{plain.__qualname__} cannot be imported")
            origin_module = module
        if origin_module is not None:
            self.imports[name] = f"from {origin_module} import {own}" + (f" as {name}" if own != name else "")
        elif own != name:
            self.bind(own, value)
            self.statements.append(f"{name} = {own}")
        else:
            text = source_of(value)
            self._bind_names(text, plain)
            decorator = self._decorator(value) if value is not plain else ""
            self.statements.append(decorator + text.rstrip())

    def _bind_names(self, text, plain):
        """Binds the outside names that the text of a definition reads."""
        if inspect.isfunction(plain):
            self.future_annotations |= bool(plain.__code__.co_flags & _FUTURE_ANNOTATIONS)
            scope = _scope(plain)
        else:
            scope = vars(sys.modules[plain.__module__])
        for name, attributes in sorted(free_names(text).items()):
            if name in scope:
                self.bind(name, scope[name])
                if inspect.ismodule(scope[name]) and name not in self.imports:
                    for path in sorted(attributes):
                        self._bind_member(name, scope[name], path)

    def _bind_member(self, name, module, path):
        """Binds `path` of a module that is not imported: `("maximum",)`, `("constants", "EPS")`."""
        head = path[0]
        if not hasattr(module, head):
            raise Unwritable(f"{module.__name__} has no {head}")
        member = getattr(module, head)
        own = getattr(getattr(jit_function(member), "fn", member), "__name__", head).rsplit(".", 1)[-1]
        own = own if own.isidentifier() and own != name else head
        statement = f"{name}.{head} = {own}"
        if statement not in self.statements:
            self.bind(own, member)
            self.statements.append(statement)
        if inspect.ismodule(member) and own not in self.imports and path[1:]:
            self._bind_member(own, member, path[1:])

    def _decorator(self, function):
        if type(function).__name__ == "ConstexprFunction":
            self.bind("constexpr_function", triton.runtime.jit.constexpr_function)
            return "@constexpr_function\n"
        name = "triton.jit"
        if getattr(function, "is_gluon", lambda: False)():
            from triton.experimental import gluon

            self.bind("gluon", gluon)
            name = "gluon.jit"
        names = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline", "debug")
        options = {option: getattr(function, option, None) for option in names}
        words = [
            f"{option}={list(chosen) if isinstance(chosen, tuple) else chosen!r}"
            for option, chosen in options.items()
            if chosen
        ]
        return f"@{name}({', '.join(words)})\n" if words else f"@{name}\n"

    def expression(self, value):
        """Raises Unwritable."""
        if value is None or isinstance(value, (bool, str, bytes)) or type(value) is int:
            return repr(value)
        if type(value) is float:
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, enum.Enum):
            return f"{self._named(type(value))}.{value.name}"
        if type(value).__name__ == "constexpr":
            return f"tl.constexpr({self.expression(value.value)})"
        if isinstance(value, tl.dtype):
            return next(f"tl.{name}" for name, x in vars(tl).items() if type(x) is type(value) and x == value)
        if isinstance(value, dict):
            entries = [f"{self.expression(key)}: {self.expression(item)}" for key, item in value.items()]
            return "{" + ", ".join(entries) + "}"
        if isinstance(value, (tuple, list)) or type(value).__name__ == "tuple":
            items = ", ".join(map(self.expression, value))
            if hasattr(value, "_fields"):
                return f"{self._named(type(value))}({items})"
            comma = "," if len(value) == 1 else ""
            return f"[{items}]" if isinstance(value, list) else f"({items}{comma})"
        function = jit_function(value)
        if function is not None or inspect.isfunction(value) or inspect.isclass(value):
            return self._named(value if function is None else function)
        if dataclasses.is_dataclass(value):
            fields = [field.name for field in dataclasses.fields(value) if field.init]
            words = [f"{name}={self.expression(getattr(value, name))}" for name in fields]
            return f"{self._named(type(value))}({', '.join(words)})"
        raise Unwritable(f"a {type(value).__module__}.{type(value).__qualname__} has no form as source")

    def _named(self, value):
        name = getattr(value, "fn", value).__name__
        self.bind(name, value)
        return name


def source_of(value):
    """Returns the text from `def` or `class` on; decorators stay if the function is plain Python."""
    text = getattr(value, "src", None)
    if isinstance(text, str):
        return text
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError) as error:
        raise Unwritable(f"the source of {getattr(value, '__name__', value)} is not to be had") from error


def free_names(text):
    """Returns {name: {attribute paths}} that a definition reads from outside."""
    tree = ast.parse(text)
    local = {tree.body[0].name}
    paths_by_name: dict = {}
    for node in ast.walk(tree):
        path: list = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.arg):
            local.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            local.add(node.id)
        elif isinstance(node, ast.Name):
            paths_by_name.setdefault(node.id, set()).update([tuple(path)] if path else [])
    return {name: paths for name, paths in paths_by_name.items() if name not in local}


def _scope(function):
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # a cell that is not filled yet
            scope[name] = cell.cell_contents
    return scope


def _same(first, second):
    first, second = (jit_function(x) if jit_function(x) is not None else x for x in (first, second))
    if first is second:
        return True
    if type(first).__name__ == "constexpr" and type(second).__name__ == "constexpr":
        first, second = first.value, second.value
    simple = (bool, int, float, str, tuple, tl.dtype)
    return type(first) is type(second) and isinstance(first, simple) and first == second


def _is_importable(module, path):
    """Accepts modules that any toolchain has: triton's own, and the standard library's."""
    head = module.split(".", 1)[0]
    if head == "triton":
        return True
    if path is None:
        path = getattr(sys.modules.get(head), "__file__", None)
        if path is None:
            return head in ("builtins", "math", "sys", "itertools", "functools")
    return is_standard(path)
