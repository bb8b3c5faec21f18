"""A Triton of one file, as far as the worker asks it: a frontend whose IR is a kernel's source, and three stages.

`installed(monkeypatch)` puts it in the place of triton, and loads the worker as its entry point does.
"""

import importlib
import inspect
import itertools
import subprocess
import sys
import types
from dataclasses import dataclass

from irdiff.worker import corpus_api, run_program

ROOT = "/site/triton"
TARGET = {"name": "t1", "backend": "tiny", "arch": "t1", "warp_size": 32, "facts": {"multiprocessors": 8}}


@dataclass(frozen=True)
class GPUTarget:
    backend: str
    arch: int | str
    warp_size: int


@dataclass
class Options:
    num_warps: int = 4
    debug: bool = False
    plugin: str = ""


class Module:
    """IR: as libtriton prints it, without locations and with them."""

    def __init__(self, text, line):
        self.text, self.line = text, line

    def str_nodebug(self):
        return self.text

    def __str__(self):
        return f"{self.text} loc({self.line})"


class Backend:
    __module__ = "triton.backends.tiny"

    def __init__(self, target):
        if target.arch == "unknown":
            raise RuntimeError("Unsupported target")
        self.target = target

    @staticmethod
    def supports_target(target):
        return target.backend == "tiny"

    def parse_options(self, options):
        return Options(**{name: value for name, value in options.items() if name in vars(Options())})

    def pack_metadata(self, metadata):
        return (metadata.num_warps,)

    def add_stages(self, stages, options, language):
        stages["ttir"] = lambda module, metadata: module
        stages["tinyasm"] = lambda module, metadata: f"{module} {CODE['stage']()} warps {options.num_warps}"
        stages["tinybin"] = lambda text, metadata: text.encode()


CODE = {"stage": str}
"""What the second stage calls."""


class ASTSource:
    language = "triton"

    def __init__(self, fn, bound):
        self.fn, self.name, self.attrs = fn, fn.fn.__name__, {}
        constants = {name: value for name, value in bound.items() if not hasattr(value, "data_ptr")}
        self.constants = {(fn.arg_names.index(name),): value for name, value in constants.items()}
        self.signature = {
            name: "constexpr" if name in constants else f"*{value.dtype}" for name, value in bound.items()
        }

    def parse_options(self):
        return {}

    def make_ir(self, *_):
        made = sys.modules["triton.compiler.code_generator"].CodeGenerator(jit_fn=self.fn, begin_line=7)
        lines = [line for line in self.fn.src.splitlines() if not line.strip().startswith("#")]
        return Module(f"{self.signature} {self.constants} {lines}", made.line)


class CodeGenerator:
    def __init__(self, jit_fn=None, begin_line=0):
        if "refused" in jit_fn.src:
            raise ValueError("the frontend does not take this kernel")
        self.line = begin_line


def compile(src, target=None, options=None):
    own = sys.modules["triton.compiler.compiler"]
    if isinstance(src, str):
        src = own.IRSource(src, None, None)
    backend = own.make_backend(target)
    parsed = backend.parse_options(dict(options or {}, **src.parse_options()))
    cache = own.get_cache_manager("key")
    stages = {}
    backend.add_stages(stages, parsed, src.language)
    module, metadata = src.make_ir(), {"name": src.name, **vars(parsed)}
    for name, stage in stages.items():
        module = stage(module, metadata)
        if not cache.has_file(f"{src.name}.{name}"):
            cache.put(module, f"{src.name}.{name}")
    return own.CompiledKernel(src)


class IRSource:
    """A file of IR."""

    language = "triton"

    def __init__(self, path, context, backend):
        with open(path) as file:
            self.src = file.read()
        self.name, self.signature = "@from_file", {0: "*fp32"}

    def parse_options(self):
        return {"num_warps": 2}

    def make_ir(self, *_):
        return Module(self.src, 1)


class JITFunction:
    def __init__(self, fn):
        text = inspect.getsource(fn)
        self.fn, self.src = fn, text[text.index("def ") :]
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.params = [
            types.SimpleNamespace(name=name, is_constexpr=name.isupper()) for name in self.arg_names
        ]
        self.cache = {}
        self.compile = None

    def run(self, *args, grid, warmup, **kwargs):
        self.compile = self.compile or sys.modules["triton.compiler.compiler"].compile
        bound = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        own = {name: bound[name] for name in self.arg_names if name in bound}
        options = {name: value for name, value in kwargs.items() if name not in own}
        target = sys.modules["triton.runtime"].driver.active.get_current_target()
        return self.compile(ASTSource(self, own), target=target, options=options)

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


class Config:
    def __init__(self, kwargs, num_warps=4, pre_hook=None):
        self.kwargs, self.num_warps, self.pre_hook = kwargs, num_warps, pre_hook

    def all_kwargs(self):
        return {**self.kwargs, "num_warps": self.num_warps}


class Autotuner:
    def __init__(self, fn, configs, key, **rest):
        self.fn, self.configs, self.keys, self.arg_names = fn, configs, key, fn.arg_names
        self.reset_to_zero, self.restore_value = rest.get("reset_to_zero"), rest.get("restore_value")

    def prune_configs(self, kwargs):
        return self.configs

    def _bench(self, *args, **kwargs):
        self.fn.run(*args, warmup=False, **kwargs)

    def run(self, *args, grid, warmup=False, **kwargs):
        for config in self.configs:
            self._bench(*args, grid=grid, **kwargs, **config.all_kwargs())
        best = {**kwargs, **self.configs[-1].all_kwargs()}
        return self.fn.run(*args, grid=grid, warmup=warmup, **best)

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)


def module(name, monkeypatch, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members, __file__=f"{ROOT}/{name.replace('.', '/')}.py")
    monkeypatch.setitem(sys.modules, name, made)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)
    return made


def installed(monkeypatch):
    """The worker's package."""
    driver = types.SimpleNamespace(active=None)
    driver.set_active = lambda active: setattr(driver, "active", active)
    pass_manager = type("pass_manager", (), {"run": None})
    ir = types.SimpleNamespace(context=object, pass_manager=pass_manager)
    tune = lambda configs, key, **rest: lambda fn: Autotuner(fn, configs, key, **rest)  # noqa: E731
    base_knobs = type("base_knobs", (), {})
    nvidia = base_knobs()
    nvidia.level = 3
    knobs = types.SimpleNamespace(base_knobs=base_knobs, nvidia=nvidia, cache=base_knobs())
    facade = {"jit": JITFunction, "autotune": tune, "Config": Config, "knobs": knobs, "compile": compile}
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton"))
    sys.modules["triton"].__dict__.update(facade, __version__="9.9.0", __file__=f"{ROOT}/__init__.py")
    backends = {"tiny": types.SimpleNamespace(compiler=Backend)}
    language = {"dtype": type("dtype", (), {}), "constexpr": object}
    compiler = {
        "compile": compile,
        "make_backend": Backend,
        "IRSource": IRSource,
        "CompiledKernel": lambda src: src,
    }
    for name, members in {
        "triton.backends": {"backends": backends},
        "triton.backends.compiler": {"GPUTarget": GPUTarget},
        "triton.backends.tiny": {"REGISTRY": {}, "Backend": Backend},
        "triton.compiler": {"compile": compile},
        "triton.compiler.compiler": {**compiler, "get_cache_manager": None, "triton_key": None},
        "triton.compiler.code_generator": {"CodeGenerator": type("CodeGenerator", (CodeGenerator,), {})},
        "triton.language": language,
        "triton.runtime": {"driver": driver},
        "triton.runtime.jit": {"JITFunction": JITFunction},
        "triton.runtime.autotuner": {"Autotuner": Autotuner},
        "triton.testing": {"do_bench": None, "do_bench_cudagraph": None},
        "triton._C": {},
        "triton._C.libtriton": {"ir": ir, "llvm": None},
    }.items():
        module(name, monkeypatch, **members)
    sys.modules["triton._C.libtriton"].__file__ = None
    monkeypatch.setattr(Backend, "add_stages", Backend.add_stages)  # the worker replaces them in place
    monkeypatch.setattr(Backend, "hash", None, raising=False)
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("irdiff_worker", "irdiff_corpus")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(CODE, "stage", str)
    monkeypatch.setattr(subprocess, "Popen", subprocess.Popen)  # as is that
    for shared in (corpus_api, run_program):  # what tests import is what the worker has
        monkeypatch.setitem(sys.modules, shared.__name__.replace("irdiff.worker", "irdiff_worker"), shared)
    importlib.import_module("irdiff.worker.__main__").load_package()
    worker = sys.modules["irdiff_worker"]
    importlib.import_module("irdiff_worker.staged_compile").make_ready()
    importlib.import_module("irdiff_worker.outside").begin(sys.modules)
    importlib.import_module("irdiff_worker.settings").begin()
    return worker


numbers = itertools.count()
"""Workloads of one process have names of their own: sources are found again by them."""
