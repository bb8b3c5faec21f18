"""Everything that can take part in compiling a kernel: its source, what it calls, the globals they read."""

from __future__ import annotations

import contextlib
import inspect

from .texts import text_of


def sources_of(*roots):
    """The text of every function that can take part in compiling `roots`, and the globals they read.

    Lines do not count: locations reach the code only through assertions, whose lines `pin_lines` makes
    relative to their function. File names reach it there too, so they count where a source asserts.
    """
    parts = []
    for item, function in _closure(roots, parts):
        if function is None:
            with contextlib.suppress(OSError, TypeError):
                parts.append((item.__qualname__, inspect.getsource(item)))
            continue
        text = _source_text(item, function)
        where = (function.__code__.co_filename,) if "assert" in text else ()
        parts.append((function.__qualname__, text, where, repr(function.__defaults__)))
    return repr(sorted(parts, key=repr))


def pin_lines(captured):
    """Counts the lines of asserting kernels from their own first line, not from that of the file.

    An assertion puts its line number into the machine code: without this, a line added above a kernel
    would change its code. Line information of other kernels stays as it is.
    """
    for item, function in _closure([captured.function, *captured.src.constants.values()], []):
        line = getattr(item, "starting_line_number", None)
        if function is not None and line is not None and "assert" in _source_text(item, function):
            item.starting_line_number = 1
            if hasattr(item, "def_file_line_number"):
                item.def_file_line_number += 1 - line


def _closure(roots, parts):
    """(JIT function or class, Python function or None) of all that `roots` can reach; globals go to `parts`.

    Follows names through globals, closures and modules, from JIT functions into JIT functions, plain
    helpers (constexpr functions) and classes; triton's own modules belong to the toolchain's digest.
    """
    seen = set()
    pending = list(roots)
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        function = getattr(item, "fn", item)
        function = getattr(function, "__wrapped__", function)
        if isinstance(item, (tuple, list)):
            pending.extend(item)
        elif inspect.isfunction(function) and not _is_tritons(function):
            pending.extend(_reachable(function, parts))
            yield item, function
        elif inspect.isclass(item) and not _is_tritons(item):
            pending.extend(member for member in vars(item).values() if callable(member))
            yield item, None


def _source_text(item, function):
    text = getattr(item, "src", None) or getattr(item, "raw_src", None)
    if text is None:
        try:
            text = inspect.getsource(function)
        except (OSError, TypeError):
            text = repr(function.__code__.co_code)
    return text if isinstance(text, str) else "".join(text)


def _is_tritons(thing):
    """Triton's own, or this package's: `tl.zeros` in a kernel must not lead to a workload's `zeros`."""
    package = (getattr(thing, "__module__", None) or "").split(".", 1)[0]
    return package in ("triton", __name__.split(".", 1)[0])


def _names(code):
    names = {*code.co_names, *code.co_freevars}
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= _names(constant)
    return names


def _reachable(function, parts):
    names = _names(function.__code__)
    names |= set((getattr(function, "__annotations__", None) or {}).keys())
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            scope[name] = cell.cell_contents
    found = []
    for name in sorted(names):
        if name not in scope:
            continue
        value = scope[name]
        if inspect.ismodule(value):
            if value.__name__.split(".", 1)[0] != "triton":
                found += [getattr(value, attr) for attr in sorted(names) if hasattr(value, attr)]
        elif callable(value) or hasattr(value, "fn"):
            found.append(value)
        else:
            parts.append((name, text_of(value)))
    return found
