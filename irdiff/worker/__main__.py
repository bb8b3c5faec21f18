"""Entry point: `PYTHON irdiff/worker/__main__.py COMMAND [WORDS…]`.

identify         prints the files, variables, knobs and options that make this toolchain what it is (`loaded`)
serve [PACKAGES] captures and compiles until its input is closed (`server`); PACKAGES: `extra_packages.add`
tests WORDS      runs tests and records what each launches (`pytest_session`)
record WORDS     runs a user's program and writes its launches as a corpus (`program`)
verify WORDS     runs a corpus on this machine's GPU (`verify`)
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import os
import sys

_ADDR_NO_RANDOMIZE = 0x0040000
_NO_TRITON = 69  # EX_UNAVAILABLE of sysexits.h
_HERE = os.path.dirname(os.path.abspath(__file__))
_PRELOADED = (
    "triton.compiler.code_generator",
    "triton.experimental.gluon",
    "triton.experimental.gluon.language",
    "triton.tools.tensor_descriptor",
    "triton.language.extra.cuda.libdevice",
    "triton.language.extra.hip.libdevice",
)
"""Modules that every case would otherwise import in its own child."""


def main():
    command = sys.argv[1]
    # this folder's files are no modules of their own
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    if command in ("identify", "serve"):
        return _work(command, sys.argv[2:])
    if importlib.util.find_spec("triton") is None:
        return _NO_TRITON
    load_package()
    module = importlib.import_module(
        {
            "record": "irdiff_worker.record.program",
            "tests": "irdiff_worker.record.pytest_session",
            "verify": "irdiff_worker.record.verify",
        }[command]
    )
    return module.main(sys.argv[2:])


def load_package():
    """Loads this folder as `irdiff_worker`, and the corpus API as `irdiff_corpus`, which workloads import."""
    place = os.path.join(_HERE, "__init__.py")
    spec = importlib.util.spec_from_file_location("irdiff_worker", place, submodule_search_locations=[_HERE])
    assert spec is not None
    sys.modules["irdiff_worker"] = importlib.util.module_from_spec(spec)
    sys.modules["irdiff_corpus"] = importlib.import_module("irdiff_worker.corpus_api")


def _work(command, words):
    fixed = _fix_addresses()
    os.environ.pop("IRDIFF_RESTARTED", None)
    requests_fd, replies_fd = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # whatever triton or a workload prints must not end up in the protocol
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import triton
    import triton.backends

    _try_all(importlib.import_module, _PRELOADED)
    # Triton remembers the version of each ptxas: every child would ask again
    _try_all(lambda name: getattr(triton.knobs.nvidia, name), ["ptxas", "ptxas_blackwell"])
    modules = dict(sys.modules)
    with open("/proc/self/maps") as file:
        maps = file.read()
    load_package()
    from irdiff_worker.compile import settings

    environment = settings.variables_of_c()
    if words:
        _try_all(importlib.import_module, ["torch"])  # which takes up to six seconds
    if command == "identify":
        from irdiff_worker import loaded
        from irdiff_worker.compile import defaults

        reply = {**loaded.describe(triton, modules, maps), "environment": environment}
        reply["knobs"] = defaults.knobs()
        reply["options"] = defaults.options(triton.backends.backends)
        os.write(replies_fd, json.dumps(reply).encode() + b"\n")
        return
    from irdiff_worker.capture import noted
    from irdiff_worker.compile import llvm_calls, outside, staged_compile
    from irdiff_worker.serve import extra_packages, operations, server

    noted.watch_files()
    staged_compile.make_ready()
    llvm_calls.make_ready()
    outside.begin(modules)
    settings.begin()  # what packages set when they are imported is no part of the toolchain
    packages = json.loads(words[0]) if words else None
    if packages:
        extra_packages.add(**packages)
    gc.collect()
    gc.freeze()
    hello = {"addresses_fixed": fixed, "environment": environment}
    server.serve_worker(requests_fd, replies_fd, operations, hello)


def _fix_addresses():
    """Restarts this interpreter without address randomization, because the output of ptxas for Blackwell
    depends on addresses. Returns False if a container runtime refuses to turn it off.
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
    words = sys.orig_argv[1:] if hasattr(sys, "orig_argv") else sys.argv[1:]
    return os.execv(sys.executable, [sys.executable, *words])


def _try_all(action, names):
    """Ignores failures: older releases, and interpreters without torch, lack some names. The cases
    report it.
    """
    for name in names:
        try:
            action(name)
        except Exception:
            continue


if __name__ == "__main__":
    sys.exit(main())
