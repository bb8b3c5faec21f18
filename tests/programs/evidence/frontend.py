"""What a compiler's own frontend makes of the launches of workloads: a program that runs inside a toolchain.

    PYTHON frontend.py CORPUS_API ARCH < request > reply

The request is a JSON list of [root, workload, label]; the reply has, for each, a list of [kernel, digest] in the
order of its launches, or the error. The digest is of the IR as it is printed without locations, just before the
first pass, and of the options: `triton.compile` ends after `make_ir`. CORPUS_API is the file of the module that
workloads import as `irdiff_corpus`, the tensors they are called with; nothing else of irdiff takes part.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import traceback
import types

import triton
import triton.compiler
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime import driver

_seen = []


class _Anything:
    """Stands for a compiled kernel: has every attribute, can be called."""

    def __getattr__(self, name):
        return _Anything()

    def __call__(self, *args, **kwargs):
        return _Anything()


class _Driver:
    """A driver without a device, as far as the frontend asks."""

    def __init__(self, target):
        self.target = target
        self.utils = self

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_device_properties(self, device):
        return {"multiprocessor_count": 132, "max_shared_mem": 232448, "warpSize": 32, "max_num_regs": 65536}


def _compile(src, target=None, options=None, **_):
    backend = make_backend(target)
    options = backend.parse_options(dict(options or {}, **src.parse_options()))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    module = src.make_ir(target, options, functions, backend.get_module_map(), context)
    chosen = sorted((name, str(value)) for name, value in options.__dict__.items())
    text = module.str_nodebug() + repr(chosen)
    _seen.append([src.name, hashlib.sha256(text.encode()).hexdigest()[:16]])
    return _Anything()


def _corpus_api(path):
    package = sys.modules["irdiff_api"] = types.ModuleType("irdiff_api")
    package.__path__ = [os.path.dirname(path)]
    sys.modules["irdiff_corpus"] = importlib.import_module("irdiff_api.corpus_api")


def _launched(root, workload, label):
    os.chdir(root)
    path = workload + ".py"
    module = types.ModuleType("evidence." + workload.replace("/", "."))
    module.__file__ = path
    sys.modules[module.__name__] = module
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), os.path.join(root, path), "exec", dont_inherit=True), module.__dict__)
    _seen.clear()
    module.LAUNCHES[label]()
    return list(_seen)


def main():
    _corpus_api(sys.argv[1])
    driver.set_active(_Driver(GPUTarget("cuda", int(sys.argv[2]), 32)))
    triton.compiler.compile = _compile
    reply = []
    for root, workload, label in json.load(sys.stdin):
        try:
            reply.append({"launches": _launched(root, workload, label)})
        except Exception as error:
            traceback.print_exc()
            reply.append({"error": f"{type(error).__name__}: {error}"[:500]})
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
