"""Which part of an installed Triton a file is: what turns kernels into IR, what compiles IR, what launches.

*Frontend* is what is done with a kernel before the first stage, and what users and Triton's own tests drive
it with: the language, the code generators of Triton and Gluon, `runtime/jit.py`, the autotuner, the
interpreter, `testing.py`, the tools that are kernels or programs of their own. All that it hands on is IR,
options and the target, and those are the input digest of a launch, so its files need not count again.

*Launchers* are `driver.py` and `driver.c` of a backend with the headers that these are built with. They run
binaries and make none.

A *backend's* files are all others in its folder. *Common* is whatever is not placed: `compiler/compiler.py`,
which drives both sides of the frontend's edge, knobs, caches, errors, every library, all that a later
release adds. What is common counts for every backend, so a file that the rule does not know costs time and
hides nothing.

Names decide nothing alone: `proof.py` follows what the files below the frontend refer to, and a backend
that leads back to a frontend or launcher file is known by the digest of its whole toolchain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class LayerKind(StrEnum):
    FRONTEND = "frontend"
    COMMON = "common"
    BACKEND = "backend"
    LAUNCHER = "launcher"


@dataclass(frozen=True, kw_only=True)
class Layer:
    kind: LayerKind
    backend: str
    """The folder in `triton/backends`, or the key of another distribution's package; empty where shared."""


FRONTEND = Layer(kind=LayerKind.FRONTEND, backend="")
COMMON = Layer(kind=LayerKind.COMMON, backend="")

SHARED_LAUNCHING = frozenset(
    {"triton/backends/driver.py", "triton/runtime/build.py", "triton/runtime/_allocation.py"}
)
"""Common files that take part in launching, whatever the backend."""

_FRONTEND_FILES = re.compile(
    r"triton/(?:language/.+"
    r"|experimental/gluon/.+"
    r"|compiler/code_generator"
    r"|runtime/(?:jit|autotuner|interpreter)"
    # `compiler.py` takes the disassembler from `tools`; everything else there is for users
    r"|tools/(?!disasm\.).+"
    r"|testing|_internal_testing|_filecheck|_test_runner|_compile_warmup\w*"
    r")\.py"
)
_IN_BACKEND = re.compile(r"triton/backends/([^/]+)/(.+)")
_LAUNCHING = re.compile(r"driver\.(?:py|c)|include/.+")


def layer_of(path_in_site_packages: str) -> Layer:
    """The layer of one file of the package, by its path with slashes: `triton/language/core.py`."""
    if found := _IN_BACKEND.fullmatch(path_in_site_packages):
        kind = LayerKind.LAUNCHER if _LAUNCHING.fullmatch(found[2]) else LayerKind.BACKEND
        return Layer(kind=kind, backend=found[1])
    return FRONTEND if _FRONTEND_FILES.fullmatch(path_in_site_packages) else COMMON


def not_below(entered: Iterable[str]) -> list[str]:
    """Of the files that the stages of one compilation entered, sorted, those that show that they do not keep
    below the frontend: frontend and launchers, and where files of several backends were entered, those files.
    """
    layers = {name: layer_of(name) for name in entered}
    above = {name for name, layer in layers.items() if layer.kind in (LayerKind.FRONTEND, LayerKind.LAUNCHER)}
    backends = {name: layer.backend for name, layer in layers.items() if layer.kind is LayerKind.BACKEND}
    if len(set(backends.values())) > 1:  # one that takes after another is known by its whole toolchain then
        above |= backends.keys()
    return sorted(above)
