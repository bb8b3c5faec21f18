"""Entry point: `PYTHON irdiff/worker/__main__.py identify|serve [PACKAGES]`; PACKAGES as `packages.add`."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import os
import sys

_ADDR_NO_RANDOMIZE = 0x0040000
_HERE = os.path.dirname(os.path.abspath(__file__))


def _fix_addresses():
    """Starts this interpreter again without address randomization (ptxas for Blackwell depends on
    addresses). Returns whether it is off; container runtimes may refuse.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    persona = libc.personality(0xFFFFFFFF)
    if persona & _ADDR_NO_RANDOMIZE:
        return True
    if os.environ.get("IRDIFF_KEEP_ASLR") or "IRDIFF_RESTARTED" in os.environ:
        return False
    if libc.personality(persona | _ADDR_NO_RANDOMIZE) < 0:
        return False
    os.environ["IRDIFF_RESTARTED"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]] if hasattr(sys, "orig_argv") else sys.argv)
    return False


def _leave_own_folder():
    """Takes this folder off the search path: its files are no modules of their own."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]


def _load_package():
    """This folder as the package `irdiff_worker`, and the corpus API under the name workloads use."""
    spec = importlib.util.spec_from_file_location(
        "irdiff_worker", os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["irdiff_worker"] = package
    spec.loader.exec_module(package)
    import irdiff_worker.corpus_api

    sys.modules["irdiff_corpus"] = irdiff_worker.corpus_api


def main():
    fixed = _fix_addresses()
    os.environ.pop("IRDIFF_RESTARTED", None)
    _leave_own_folder()
    requests_fd, replies_fd = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # whatever triton or a workload prints must not end up in the protocol
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import triton
    import triton.backends

    _preload()
    _ask_assemblers(triton)
    modules, maps = dict(sys.modules), _mapped()
    _load_package()
    if sys.argv[1] == "identify":
        from irdiff_worker import loaded

        os.write(replies_fd, json.dumps(loaded.describe(triton, modules, maps)).encode() + b"\n")
        return
    from irdiff_worker import opened, operations, packages, server, settings, stages

    opened.watch()
    stages.make_ready()
    settings.begin()  # what packages set when they are imported is no part of the toolchain
    if len(sys.argv) > 2:
        packages.add(**json.loads(sys.argv[2]))
    gc.collect()
    gc.freeze()
    server.serve_worker(requests_fd, replies_fd, operations, {"addresses_fixed": fixed})


def _mapped():
    with open("/proc/self/maps") as file:
        return file.read()


def _preload():
    """Imports here what every case would import in its own child: torch alone takes up to six seconds."""
    for name in (
        "torch",
        "triton.compiler.code_generator",
        "triton.experimental.gluon",
        "triton.experimental.gluon.language",
        "triton.tools.tensor_descriptor",
        "triton.language.extra.cuda.libdevice",
        "triton.language.extra.hip.libdevice",
    ):
        try:
            importlib.import_module(name)
        except Exception:  # an older release has no such module, and not every interpreter has torch
            continue


def _ask_assemblers(triton):
    """Lets Triton ask each ptxas for its version, which it remembers: every child would ask again."""
    for name in ("ptxas", "ptxas_blackwell"):
        try:
            getattr(triton.knobs.nvidia, name)
        except Exception:  # an older release, or no ptxas: that is for the cases to find
            continue


if __name__ == "__main__":
    main()
