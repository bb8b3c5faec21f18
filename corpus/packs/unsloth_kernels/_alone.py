"""Unsloth's kernel modules without its trainer: importing `unsloth` itself patches transformers and asks for a GPU.

Replaced: the packages `unsloth_zoo` and `transformers`, of which the kernels take version numbers, a logger and
classes to patch. Its own cache of compiled kernels is off, so that Triton sees each launch.
"""

import importlib.machinery
import importlib.util
import logging
import os
import sys
import types

import torch
from packaging.version import Version


class Answers(types.ModuleType):
    """A module that has an empty class for each name with a capital letter, and a function that does nothing for others."""

    __path__ = []
    logger = logging.getLogger("unsloth")
    Version = staticmethod(lambda text: Version(str(text)))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (torch.nn.Module,), {}) if name[0].isupper() else lambda *_, **__: None

    @staticmethod
    def torch_compile(function=None, **_):
        return function or (lambda inner: inner)


os.environ["UNSLOTH_TRITON_FAST_LAUNCH"] = "0"
if not hasattr(torch._C, "_cuda_getCurrentRawStream"):  # a torch for the CPU
    torch._C._cuda_getCurrentRawStream = lambda index: 0
for name in (
    "unsloth_zoo",
    "unsloth_zoo.log",
    "unsloth_zoo.loss_utils",
    "unsloth_zoo.patching_utils",
    "unsloth_zoo.temporary_patches",
    "unsloth_zoo.temporary_patches.common",
    "unsloth_zoo.utils",
    "transformers",
    "transformers.models",
    "transformers.models.llama",
    "transformers.models.llama.modeling_llama",
    "transformers.models.mllama",
    "transformers.models.mllama.modeling_mllama",
):
    sys.modules[name] = Answers(name)
for name in ("unsloth", "unsloth.kernels"):
    sys.modules[name] = importlib.util.module_from_spec(importlib.util.find_spec(name))
