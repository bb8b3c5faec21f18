"""Published packages beside a toolchain's own: what the workloads of a pack import.

They call a library's own functions, on torch tensors that lie on the CPU, as if there were a GPU. What a
library asks of the GPU when it is imported it keeps, so a worker with packages serves one target.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os

from . import capture, importing, inductor, torch_on_cpu

_added = {}


def add(site, imports, kernels, torch_compile, target):
    """Adds packages, in the parent of all cases. The toolchain's own come first on the path and stay so.

    site: their folder; None where they are the toolchain's own.
    imports: modules to import once for every case.
    kernels: packages whose files are known by paths relative to `site`: names of files reach code.
    torch_compile: whether it writes kernels for the target, or code for the CPU.
    """
    _added.update(site=site, kernels=kernels)
    if site is not None:
        importing.import_packages(site, kernels)
    capture.answer_as(target)
    torch_on_cpu.install(target)
    with contextlib.suppress(ImportError):
        importlib.import_module("torch").set_num_threads(1)  # cases are forked from here: no other threads
    if torch_compile:
        inductor.install(target)
    for name in imports:
        with contextlib.suppress(Exception):  # it will fail again, and be told, where a workload needs it
            importlib.import_module(name)


def check():
    """Raises ImportError where a package that holds kernels is the toolchain's own, not the pack's."""
    for name in _added.get("kernels", ()):
        spec = importlib.util.find_spec(name)
        origin = spec.origin if spec else None
        if not (origin or "").startswith(_added["site"] + os.sep):
            raise ImportError(f"{name} is not the pack's own, but that of the toolchain: {origin}")
