"""Runs the stages of the toolchain's own `triton.compile` one by one, and watches each.

Replacements decide only where results go and when to stop: its cache (by one that never hits), the key of
that cache (which hashes the whole of libtriton), and each stage (by itself, with notes before and after it).
"""

from __future__ import annotations

import collections
import inspect
import math
import os
import sys
import types

import triton
import triton._C.libtriton
import triton.compiler.code_generator
import triton.compiler.compiler as tc

from .. import texts

real_compile = tc.compile
_CodeGenerator = triton.compiler.code_generator.CodeGenerator

_SITE = os.path.dirname(os.path.dirname(os.path.abspath(triton.__file__))) + os.sep


class Watcher:
    """Sees a compilation; this base class does not change it."""

    def parsed(self, options):
        """Called with the options as the backend parsed them."""

    def wrap(self, name, stage):
        """Returns the function that replaces a stage."""
        return stage

    def keep(self, name, content):
        """Called with what the compilation would put into its cache."""

    def compiles(self, function):
        """Called when the frontend compiles a function."""


_watcher = Watcher()


def compile_launch(src, target, options, watcher):
    global _watcher
    source = src.path if isinstance(src, FileSource) else src
    _watcher = watcher
    try:
        return real_compile(source, target=target, options=options)
    finally:
        _watcher = Watcher()


class FileSource:
    """Does not keep its module, because reading it may have started threads."""

    constants: types.MappingProxyType = types.MappingProxyType({})
    attrs = constants

    def __init__(self, path, target, check=lambda module: None):
        context = triton._C.libtriton.ir.context()
        arguments = (path, context, tc.make_backend(target))  # before 3.3 fewer
        read = tc.IRSource(*arguments[: len(inspect.signature(tc.IRSource).parameters)])
        self.path, self.name, self.text = path, read.name.lstrip("@"), read.src
        check(getattr(read, "module", None))
        self.ext = os.path.splitext(path)[1].lstrip(".")
        self.signature = {str(key): str(ty) for key, ty in read.signature.items()}
        self.language = getattr(read, "language", None)
        self._options = read.parse_options()

    def parse_options(self):
        return dict(self._options)


def make_ready():
    """Installs all replacements in this process. Call it once, before anything else is loaded."""
    _watch_functions()
    tc.get_cache_manager = _Cache
    for module in (tc, getattr(tc, "cache", None)):
        for name in ("triton_key", "get_cache_key"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: "irdiff")
    tc.CompiledKernel = lambda *args, **kwargs: None
    for backend in triton.backends.backends.values():
        _hook(backend.compiler)


def of_backend(backend, options, src):
    """Returns {name: stage} in the backend's order."""
    stages: dict = {}
    own = type(backend).add_stages
    own = getattr(own, "__wrapped__", own)
    if len(inspect.signature(own).parameters) > 3:  # since 3.4
        own(backend, stages, options, src.language)
    else:
        own(backend, stages, options)
    return stages


def launcher_args_of(target, metadata):
    """Returns what `CompiledKernel` passes to the launcher in addition to the arguments: the name of the
    symbol, and the metadata that the backend packs.
    """
    fields = dict(metadata, target=target)
    if isinstance(fields.get("cluster_dims"), list):
        fields["cluster_dims"] = tuple(fields["cluster_dims"])
    kind = collections.namedtuple("KernelMetadata", sorted(fields))  # type: ignore[misc]
    return {"symbol": fields.get("name"), "packed": tc.make_backend(target).pack_metadata(kind(**fields))}


def scratch_allocator():
    """Returns the program's allocator for scratch memory of kernels; None by default."""
    allocation = sys.modules.get("triton.runtime._allocation")
    allocator = getattr(allocation, "_allocator", None)
    of_context = getattr(allocator, "get", None)  # before 3.4 it is the function itself
    allocator = allocator if of_context is None else of_context()
    return None if type(allocator).__name__ == "NullAllocator" else allocator


def scratch_memory(captured, metadata):
    """Returns None if the kernel needs no scratch memory."""
    size = metadata.get("global_scratch_size") or 0
    if size == 0 or captured.grid is None:
        return None
    if captured.allocator is None:
        return "no allocator is set: each launch raises"
    size *= math.prod(captured.grid) * (metadata.get("num_ctas") or 1)
    try:
        memory = captured.allocator(size, metadata.get("global_scratch_align") or 1, 0)
    except Exception as error:
        return f"the allocator fails without a GPU: {type(error).__name__}"
    length = memory.numel() * memory.element_size() if hasattr(memory, "element_size") else "some"
    return f"{length} bytes for {size}"


def _hook(backend_class):
    original = backend_class.add_stages

    def add_stages(self, stages, options, *language):
        original(self, stages, options, *language)
        _watcher.parsed(options)
        stages.update([(name, _watcher.wrap(name, stage)) for name, stage in stages.items()])

    add_stages.__wrapped__ = original  # type: ignore[attr-defined]
    backend_class.add_stages = add_stages
    backend_class.hash = lambda self: "irdiff"


class _Cache:
    """A cache manager (Triton's interface) that never hits."""

    def __init__(self, key, *args, **kwargs):
        pass

    def get_file(self, filename):
        return None

    def has_file(self, filename):
        return False

    def get_group(self, filename):
        return None

    def put_group(self, filename, group):
        pass

    def put(self, data, filename, binary=True):
        stem, _, name = filename.rpartition(".")
        if name == "json":
            name = f"{stem.partition('.')[2]}.json".lstrip(".")
        if name != "json":  # that one holds the metadata, which are read elsewhere
            _watcher.keep(name, data)
        return filename


def _watch_functions():
    """Notes each function that is compiled, and counts lines of functions that assert from their own first
    line. An assertion puts its line number into the machine code: without this, a line added above a kernel
    would change its code.
    """
    original = _CodeGenerator.__init__

    def __init__(self, *args, **kwargs):
        function = kwargs.get("jit_fn")
        if function is not None:
            _watcher.compiles(function)
            if kwargs.get("begin_line") is not None and _asserts(function):
                kwargs["begin_line"] = 1
        original(self, *args, **kwargs)

    _CodeGenerator.__init__ = __init__


def _asserts(function):
    """Triton's own functions stay as they are: they are part of the toolchain."""
    if function.fn.__code__.co_filename.startswith(_SITE + "triton" + os.sep):
        return False
    return "assert" in texts.text_of_source(function)
