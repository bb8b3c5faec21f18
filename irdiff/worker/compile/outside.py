"""Finds loaded modules that the toolchain's digest does not cover: those from outside of Triton and the
standard library.

A stage may use them, so those that a workload has loaded at the launch are part of the input digest, by
content. A compilation whose stages load one is not kept.
"""

from __future__ import annotations

import contextlib
import os
import sys

import triton

from .. import texts
from ..capture import workloads
from ..loaded import WORKER, is_installed, is_standard

_KNOWN = (os.path.join(os.path.dirname(os.path.abspath(triton.__file__)), ""), WORKER)
_KNOWN_PACKAGES = ("torch", "torchgen", "functorch", "irdiff_workload")
"""Torch's record is part of the toolchain's digest (`loaded`)."""
_at_first: set = set()
"""Names of the modules that the toolchain's digest covers."""
_digests: dict = {}
"""{file: SHA-256}"""


def begin(names):
    """names: the modules that are loaded before any workload, without torch and other packages."""
    _at_first.update(names)
    with contextlib.suppress(OSError):
        loaded()  # what is loaded by now is read once, and not by every child


def loaded():
    """Lists (name, SHA-256 of its file) of modules loaded since `begin`. Raises OSError."""
    digests = []
    for name in sorted(set(sys.modules) - _at_first):
        path = None if name.partition(".")[0] in _KNOWN_PACKAGES else path_of(sys.modules[name])
        if path and not _is_own(path):
            if path not in _digests:
                _digests[path] = texts.sha256_of_file(path)
            digests.append((name, _digests[path]))
    return digests


def _is_own(path):
    inner = (path[len(folder) :] for folder in workloads.own_folders if path.startswith(folder + os.sep))
    return any(not is_installed(name) for name in inner)


def path_of(module):
    """Returns None for a module that does not come from outside."""
    path = getattr(module, "__file__", None)
    if not isinstance(path, str):
        return None
    path = os.path.abspath(path)
    return None if path.startswith(_KNOWN) or is_standard(path) else path
