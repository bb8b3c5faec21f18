"""Launches of a workload, captured without a GPU from this toolchain's own frontend.

A stub driver answers `get_current_target()` with the target. `JITFunction.run` is wrapped to see the
arguments and the grid, and `triton.compiler.compile`, which the frontend calls with everything it
has specialized, raises `Reached` instead of compiling. So signature, constexprs, attributes and options
are exactly what this side would compile, in every release from 3.2 on.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import types

import triton
import triton.compiler
import triton.compiler.compiler
import triton.runtime.autotuner
import triton.runtime.jit
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from . import corpus_api

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_TRITON_ROOT = os.path.dirname(os.path.abspath(triton.__file__))
real_compile = triton.compiler.compiler.compile


class Reached(BaseException):
    """The frontend is done; carries what it handed to the compiler. Not an Exception, so that a
    workload's own `except Exception` cannot swallow it.
    """

    def __init__(self, src, target, options):
        super().__init__()
        self.src, self.target, self.options = src, target, options


class NoKernel:
    """Stands for the compiled kernel where a workload looks at what a launch returns."""

    n_regs = 32
    n_spills = 0
    asm = types.MappingProxyType({})

    class metadata:
        shared = 0
        num_warps = 4

    def _init_handles(self):
        pass

    def __getitem__(self, grid):
        return lambda *args, **kwargs: None


class StubUtils:
    def __init__(self, facts):
        self.facts = facts

    def get_device_properties(self, device):
        facts = self.facts
        return {
            "multiprocessor_count": facts.get("multiprocessors", 132),
            "max_shared_mem": facts.get("shared_memory_bytes", 232448),
            "max_num_regs": facts.get("registers_per_multiprocessor", 65536),
            "max_threads_per_sm": facts.get("threads_per_multiprocessor", 2048),
            "warpSize": facts.get("warp_size", 32),
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 3201000,
            "mem_bus_width": 6144,
        }


class StubDriver:
    """A driver without a device."""

    def __init__(self, target, facts):
        self.target = target
        self.utils = StubUtils(facts)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0

    def set_current_device(self, device):
        pass

    def get_device_capability(self, device=0):
        arch = self.target.arch
        return divmod(arch, 10) if isinstance(arch, int) else (9, 4)

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_device_interface(self):
        import torch

        return torch.cuda

    def map_python_to_cpp_type(self, ty):
        return ty

    def assemble_tensormap_to_arg(self, *args):
        return None

    def launcher_cls(self, *args, **kwargs):
        raise RuntimeError("irdiff: a launch was reached; there is no GPU here")


class Captured:
    """One launch: the JIT function, what it was called with, and what the frontend made of it."""

    def __init__(self, function, bound, grid, reached):
        self.function, self.bound, self.grid = function, bound, grid
        self.src, self.target, self.options = reached.src, reached.target, reached.options


def _bind(function, args, kwargs):
    names = list(function.signature.parameters)
    bound = dict(zip(names, args))
    bound.update((name, value) for name, value in kwargs.items() if name in names)
    for name, parameter in function.signature.parameters.items():
        if name not in bound and parameter.default is not inspect.Parameter.empty:
            bound[name] = parameter.default
    return {name: bound[name] for name in names if name in bound}


def _evaluate_grid(grid, bound):
    if callable(grid):
        grid = grid(bound)
    if grid is None:
        return None
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    return [int(n) for n in (*grid, 1, 1)[:3]]


@contextlib.contextmanager
def intercepted(target, sink):
    """While open, every launch for `target` is appended to `sink` and nothing is compiled."""
    gpu = GPUTarget(target["backend"], target["arch"], target["warp_size"])
    driver.set_active(StubDriver(gpu, dict(target["facts"], warp_size=target["warp_size"])))
    jit, tuner = triton.runtime.jit.JITFunction, triton.runtime.autotuner.Autotuner
    original_run, original_tune = jit.run, tuner.run

    def compile_reached(src, target=None, options=None, **_):
        raise Reached(src, target, options)

    @functools.wraps(original_run)
    def run(self, *args, grid=None, warmup=False, **kwargs):
        bound = _bind(self, args, kwargs)
        try:
            original_run(self, *args, grid=grid, warmup=warmup, **kwargs)
        except Reached as reached:
            sink.append(Captured(self, bound, _evaluate_grid(grid, bound), reached))
        return NoKernel()

    @functools.wraps(original_tune)
    def tune(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        for config in _pinned_configs(self, kwargs):
            options = config.all_kwargs()
            if config.pre_hook is not None:
                config.pre_hook({**self.nargs, **kwargs, **options})
            self.fn.run(*args, **{**kwargs, **options})
        self.nargs = None
        return NoKernel()

    modules = (triton.compiler, triton.compiler.compiler)
    without_torch = importlib.util.find_spec("torch") is None
    if without_torch:  # 3.3 to 3.7 import it for AMD targets, only to ask `isinstance(x, torch.Tensor)`
        sys.modules["torch"] = types.ModuleType("torch")
        sys.modules["torch"].Tensor = type("Tensor", (), {})
    jit.run, tuner.run = run, tune
    for module in modules:
        module.compile = compile_reached
    try:
        yield
    finally:
        if without_torch:
            del sys.modules["torch"]
        jit.run, tuner.run = original_run, original_tune
        for module in modules:
            module.compile = real_compile


def _pinned_configs(tuner, kwargs):
    """The configs an autotuner would try, without measuring any of them."""
    try:
        return list(tuner.prune_configs(kwargs)) or tuner.configs
    except Exception:  # a pruning function may want a real device; then all configs are kept
        return tuner.configs


def load_workload(root, name):
    """The module of `ROOT/NAME.py`.

    Its code carries the path relative to the corpus root, so that locations in the IR, and the file
    names in assertion messages, do not depend on where the corpus lies.
    """
    os.chdir(root)
    if root not in sys.path:
        sys.path.insert(0, root)
    path = name + ".py"
    with open(path, encoding="utf-8") as file:
        source = file.read()
    module = types.ModuleType("irdiff_workload." + name.replace("/", "."))
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(source, path, "exec"), module.__dict__)
    if not isinstance(getattr(module, "LAUNCHES", None), dict) or not module.LAUNCHES:
        raise ValueError(f"{path} has no launches: it must end with a dictionary LAUNCHES")
    return module


def release_bounds(root, name):
    """(SINCE, UNTIL) of a workload, read without running it: an import may fail in an old release."""
    with open(os.path.join(root, name + ".py"), encoding="utf-8") as file:
        tree = ast.parse(file.read(), name + ".py")
    found = {"SINCE": None, "UNTIL": None}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for variable in node.targets:
                if isinstance(variable, ast.Name) and variable.id in found:
                    found[variable.id] = node.value.value
    return found["SINCE"], found["UNTIL"]


def wanted_here(bounds):
    since, until = bounds
    version = triton.__version__
    return corpus_api._at_least(version, since) and not (until and corpus_api._at_least(version, until))


def launches_of(entry, target):
    """[(suffix, Captured)] of one entry of LAUNCHES: each different specialization once."""
    sink = []
    with intercepted(target, sink):
        entry()
    kept, seen = [], set()
    for captured in sink:
        digest = describe_digest(captured)
        if digest not in seen:
            seen.add(digest)
            kept.append(captured)
    if len(kept) == 1:
        return [("", kept[0])]
    names = [kernel_name(captured) for captured in kept]
    rows, counts = [], {}
    for name, captured in zip(names, kept):
        counts[name] = counts.get(name, 0) + 1
        number = f"#{counts[name]}" if names.count(name) > 1 else ""
        rows.append((f"/{name}{number}", captured))
    return rows


def kernel_name(captured):
    return captured.function.fn.__name__


def describe(captured, launch_id, label, target, entry):
    """The launch as JSON: `irdiff.model.Launch`, field by field."""
    src = captured.src
    constexprs = {_name_of(src, key): _text(value) for key, value in src.constants.items()}
    return {
        "id": launch_id,
        "workload": launch_id.split(":", 1)[0],
        "label": label,
        "kernel": kernel_name(captured),
        "target": target["name"],
        "digest": describe_digest(captured),
        "source_digest": _sha256(sources_of(captured.function)),
        "source_path": _relative(captured.function.fn.__code__.co_filename),
        "arguments": _arguments(captured, constexprs),
        "signature": {str(name): _text(ty) for name, ty in src.signature.items()},
        "constexprs": constexprs,
        "attributes": _attributes(src),
        "options": _options(captured),
        "grid": captured.grid,
        "tier": entry.facts["tier"],
        "expected": entry.expects(target["name"], triton.__version__),
        "flops": entry.facts["flops"],
        "min_bytes": entry.facts["min_bytes"],
        "tolerance": [entry.facts["rtol"], entry.facts["atol"]],
    }


def describe_digest(captured):
    """SHA-256 of what the frontend hands to the compiler: see `irdiff.model.Launch.digest`."""
    src = captured.src
    parts = [
        type(src).__name__,
        kernel_name(captured),
        sources_of(captured.function, *src.constants.values()),
        sorted((str(name), _text(ty)) for name, ty in src.signature.items()),
        sorted((str(key), _text(value)) for key, value in src.constants.items()),
        sorted(_attributes(src).items()),
        sorted(_options(captured).items()),
    ]
    return _sha256(repr(parts))


def _arguments(captured, constexprs):
    rows, storages = [], {}
    for name, value in captured.bound.items():
        row = dict.fromkeys(("value", "dtype", "shape", "strides", "storage_offset", "alias", "fill"))
        row.update(name=name, block_shape=None, type=_text(captured.src.signature.get(name, "constexpr")))
        tensor = value
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            row.update(kind="descriptor", block_shape=list(value.block_shape))
            tensor = value.base
        elif hasattr(value, "data_ptr"):
            row["kind"] = "tensor"
        elif name in constexprs and row["type"] == "constexpr":
            row.update(kind="constexpr", value=_json_value(value))
        else:
            row.update(kind="none" if value is None else "scalar", value=_json_value(value))
        if tensor is not value or row["kind"] == "tensor":
            row.update(_tensor_row(tensor, storages))
            if row["kind"] == "descriptor":
                row.update(shape=[int(n) for n in value.shape], strides=[int(n) for n in value.strides])
        rows.append(row)
    return rows


def _tensor_row(tensor, storages):
    if isinstance(tensor, corpus_api.FakeTensor):
        storage, offset, fill = tensor.storage.number, tensor.offset, tensor.storage.fill
    else:
        storage = tensor.untyped_storage().data_ptr() or id(tensor)
        offset, fill = tensor.storage_offset(), "normal"
    return {
        "dtype": corpus_api.dtype_name(tensor.dtype),
        "shape": [int(n) for n in tensor.shape],
        "strides": [int(n) for n in tensor.stride()],
        "storage_offset": int(offset),
        "alias": storages.setdefault(storage, len(storages)),
        "fill": fill,
    }


def _attributes(src):
    attrs = src.attrs
    if isinstance(attrs, dict):
        return {_name_of(src, key): _text(value) for key, value in attrs.items() if value}
    to_dict = getattr(attrs, "to_dict", None)  # 3.2: an AttrsDescriptor
    return {key: repr(value) for key, value in to_dict().items()} if to_dict else {"attrs": repr(attrs)}


def _options(captured):
    options = captured.options or {}
    return {key: _text(value).replace(_TRITON_ROOT, "<triton>") for key, value in sorted(options.items())}


def _name_of(src, key):
    """Constants and attributes are keyed by name (3.2) or by a path of indices (3.3 and later)."""
    if isinstance(key, tuple):
        names = list(src.fn.arg_names)
        return ".".join([names[key[0]], *map(str, key[1:])])
    return str(key)


def _text(value):
    """Without addresses, so that it is the same in every process."""
    if hasattr(value, "fn") and hasattr(value, "arg_names"):
        return f"jit:{value.fn.__module__.rsplit('.', 1)[-1]}.{value.fn.__qualname__}"
    if inspect.isfunction(value):
        return f"function:{value.__qualname__}"
    inner = getattr(value, "value", None)
    if type(value).__name__ == "constexpr":
        return _text(inner)
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_text, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) + "}"
    return value if isinstance(value, str) else _ADDRESS.sub("", repr(value))


def _json_value(value):
    return value if isinstance(value, (bool, int, float, str)) or value is None else _text(value)


def _relative(path):
    for root in (os.getcwd(), _TRITON_ROOT, sys.prefix):
        if path.startswith(root + os.sep):
            return path[len(root) + 1 :]
    return path


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
            parts.append((name, _text(value)))
    return found


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
