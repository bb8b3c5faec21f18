"""A Triton of one file, as far as the worker asks it: a frontend whose IR is a kernel's source, and three stages."""

import inspect
import sys
import types
import warnings
from dataclasses import dataclass

__version__ = "9.9.0"
ROOT = "/site/triton"
__file__ = f"{ROOT}/__init__.py"


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

    def run(self, *_):
        """Where it stands for a compiled kernel: its launch does nothing."""

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
        active = sys.modules["triton.runtime"].driver.active
        src, kernels = ASTSource(self, own), self.cache.setdefault(active.get_current_device(), {})
        key = repr((src.signature, src.constants, options))
        if key not in kernels:
            kernels[key] = self.compile(src, target=active.get_current_target(), options=options)
        kernel = kernels[key]
        if not warmup:
            grid = (*(grid(bound) if callable(grid) else grid), 1, 1)[:3]
            known_by = [getattr(kernel, name, None) for name in ("function", "packed_metadata")]
            kernel.run(*grid, active.get_current_stream(0), *known_by, None, None, None, *own.values())
        return kernel

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


def autotune(configs, key, **rest):
    return lambda fn: Autotuner(fn, configs, key, **rest)


class base_knobs:
    pass


jit = JITFunction
knobs = types.SimpleNamespace(base_knobs=base_knobs, nvidia=base_knobs(), cache=base_knobs())
knobs.nvidia.level = 3
driver = types.SimpleNamespace(active=None)
driver.set_active = lambda active: setattr(driver, "active", active)
pass_manager = type("pass_manager", (), {"run": None})
ir = types.SimpleNamespace(context=object, pass_manager=pass_manager)
llvm = types.SimpleNamespace(attach_datalayout=lambda text: text, optimize_module=lambda text, flags: text)
MODULES = {
    "backends": {"backends": {"tiny": types.SimpleNamespace(compiler=Backend)}},
    "backends.compiler": {"GPUTarget": GPUTarget},
    "backends.tiny": {"REGISTRY": {}, "Backend": Backend, "warnings": warnings},
    "compiler": {"compile": compile},
    "compiler.compiler": {
        "compile": compile,
        "make_backend": Backend,
        "IRSource": IRSource,
        "ASTSource": ASTSource,
        "CompiledKernel": lambda src: src,
        "get_cache_manager": None,
        "triton_key": None,
    },
    "compiler.code_generator": {"CodeGenerator": CodeGenerator, "inspect": inspect},
    "language": {"dtype": type("dtype", (), {}), "constexpr": object},
    "runtime": {"driver": driver},
    "runtime.jit": {"JITFunction": JITFunction},
    "runtime.autotuner": {"Autotuner": Autotuner},
    "testing": {"do_bench": None, "do_bench_cudagraph": None},
    "_C": {},
    "_C.libtriton": {"ir": ir, "llvm": llvm},
}
for name, members in MODULES.items():
    made = sys.modules[f"triton.{name}"] = types.ModuleType(f"triton.{name}")
    made.__dict__.update(members, __file__=f"{ROOT}/{name.replace('.', '/')}.py")
    parent, _, last = made.__name__.rpartition(".")
    setattr(sys.modules[parent], last, made)
made.__file__ = None
