"""Adds a pack's published packages to a toolchain's own.

A library keeps what it asks of the GPU when it is imported, so a worker with packages serves one target. If
torch is the interpreter's own, each host answers for its target.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys

from ..capture import inductor, stub_driver, torch_on_cpu, workloads

_added: dict = {}


def add(site, imports, kernels, torch_compile, target):
    """Adds packages in the parent of all cases, after the toolchain's own on the path.

    imports: modules to import once for every case. kernels: packages whose files have paths relative to
    `site`, because names of files reach code. torch_compile: whether torch.compile writes kernels for the
    target, or code for the CPU.
    """
    _added.update(site=site, kernels=kernels)
    workloads.import_packages(site, kernels)
    with contextlib.suppress(ImportError):
        importlib.import_module("torch")
    answer_as(target, torch_compile=torch_compile)
    for name in imports:
        with contextlib.suppress(Exception):  # it fails again, and is reported, where a workload needs it
            importlib.import_module(name)


def answer_as(target, torch_compile=True):
    """Includes torch if this process has it."""
    stub_driver.answer_as(target)
    if "torch" not in sys.modules or _added.get("target") == target:
        return
    _added["target"] = target
    sys.modules["torch"].set_num_threads(1)  # cases are forked from here: no other threads
    torch_on_cpu.install(target)
    if torch_compile:
        inductor.install(target)


def check():
    """Raises ImportError if a package that holds kernels is the toolchain's own, not the pack's."""
    for name in _added.get("kernels", ()):
        spec = importlib.util.find_spec(name)
        origin = (spec.origin if spec else None) or ""
        if not origin.startswith(_added["site"] + os.sep):
            raise ImportError(f"{name} is not the pack's own, but that of the toolchain: {origin}")
