"""Where the files of a Triton are placed, and what proves that the places are right."""

from __future__ import annotations

import pytest

from irdiff.resolve.toolchains import layers
from irdiff.resolve.toolchains.layers import LayerKind
from irdiff.resolve.toolchains.proof import DRIVING_FILE, Proof, PythonFile
from irdiff.resolve.toolchains.references import read_references


@pytest.mark.parametrize(
    ("path", "kind", "backend"),
    [
        ("triton/language/core.py", LayerKind.FRONTEND, ""),
        ("triton/language/extra/cuda/libdevice.py", LayerKind.FRONTEND, ""),
        ("triton/experimental/gluon/_runtime.py", LayerKind.FRONTEND, ""),
        ("triton/compiler/code_generator.py", LayerKind.FRONTEND, ""),
        ("triton/runtime/jit.py", LayerKind.FRONTEND, ""),
        ("triton/tools/tensor_descriptor.py", LayerKind.FRONTEND, ""),
        ("triton/testing.py", LayerKind.FRONTEND, ""),
        ("triton/tools/disasm.py", LayerKind.COMMON, ""),
        ("triton/compiler/compiler.py", LayerKind.COMMON, ""),
        ("triton/knobs.py", LayerKind.COMMON, ""),
        ("triton/_C/libtriton.so", LayerKind.COMMON, ""),
        ("triton/language/table.bin", LayerKind.COMMON, ""),
        ("triton/a_module_of_tomorrow.py", LayerKind.COMMON, ""),
        ("triton/backends/compiler.py", LayerKind.COMMON, ""),
        ("triton/backends/amd/compiler.py", LayerKind.BACKEND, "amd"),
        ("triton/backends/nvidia/bin/ptxas", LayerKind.BACKEND, "nvidia"),
        ("triton/backends/nvidia/driver.c", LayerKind.LAUNCHER, "nvidia"),
        ("triton/backends/nvidia/include/cuda.h", LayerKind.LAUNCHER, "nvidia"),
        ("triton/backends/nvidia/sub/driver.py", LayerKind.BACKEND, "nvidia"),
    ],
)
def test_the_layer_of_a_file(path: str, kind: LayerKind, backend: str) -> None:
    layer = layers.layer_of(path)
    assert (layer.kind, layer.backend) == (kind, backend)


def test_what_must_not_be_entered_below_the_frontend() -> None:
    names = ["triton/knobs.py", "triton/runtime/jit.py", "json/decoder.py", "triton/backends/amd/driver.py"]
    assert layers.not_below(names) == ["triton/backends/amd/driver.py", "triton/runtime/jit.py"]


def test_references_are_found_wherever_they_stand() -> None:
    source = b"""
import triton
from typing import TYPE_CHECKING
from . import compiler as made
from ..runtime.driver import driver
if TYPE_CHECKING:
    from triton.language import core
class Backend:
    def stage(self):
        from triton.language import semantic
        importlib.import_module(".late", __name__)
        importlib.import_module(name)
        open(os.path.join(here, "driver.c"))
        return triton.language.dtype, driver.active, made
"""
    found = read_references(source, "triton.backends.nvidia.compiler", is_package=False)
    rows = {(row.module, row.names, row.where) for row in found}
    assert {
        ("triton", ("language", "dtype"), "Backend.stage"),
        ("triton.backends.nvidia", ("compiler",), "Backend.stage"),
        ("triton.backends.runtime.driver", ("driver", "active"), "Backend.stage"),
        ("triton.language", ("semantic",), "Backend.stage"),
        ("triton.backends.nvidia.late", (), "Backend.stage"),
        ("", (), "Backend.stage"),
        ("", ("driver.c",), "Backend.stage"),
    } <= rows
    assert not any(row.names == ("core",) for row in found)


CLEAN = {
    "triton/__init__.py": "__version__ = '9'\nfrom .runtime import jit\nfrom . import language\n",
    "triton/knobs.py": "from triton import __version__\n",
    "triton/errors.py": "class OutOfResources(Exception): pass\n",
    "triton/runtime/__init__.py": "from .jit import jit\n",
    "triton/runtime/jit.py": "",
    "triton/runtime/autotuner.py": "from ..errors import OutOfResources\nfrom .jit import jit\n",
    "triton/language/__init__.py": "from .core import dtype\n",
    "triton/language/core.py": "",
    "triton/compiler/compiler.py": "from .. import __version__, knobs\n"
    "from ..runtime.autotuner import OutOfResources\n"
    "class ASTSource:\n    def make_ir(self):\n        from .code_generator import ast_to_ttir\n",
    "triton/compiler/code_generator.py": "",
    "triton/backends/nvidia/compiler.py": "from triton import knobs\n"
    "class Backend:\n    def get_module_map(self):\n        from triton.language import core\n",
    "triton/backends/nvidia/driver.py": "",
    "triton/backends/amd/compiler.py": "",
}


def violations(changed: dict[str, str]) -> list[str]:
    texts = {**CLEAN, **changed}
    modules = {name: name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in texts}
    files = [PythonFile(name=name, module=module) for name, module in modules.items()]
    places = {name: layers.layer_of(name) for name in texts}
    counted = {
        name
        for name, layer in places.items()
        if layer.kind is LayerKind.COMMON or (layer.kind is LayerKind.BACKEND and layer.backend == "nvidia")
    }
    own = [name for name in counted if places[name].backend == "nvidia"]
    return Proof(files, lambda name: texts[name].encode()).violations([DRIVING_FILE, *own], counted)


def test_names_that_a_frontend_file_passes_on_are_followed_to_where_they_are_made() -> None:
    assert violations({}) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("triton/backends/nvidia/compiler.py", "from triton.language import core\n"),
        ("triton/backends/nvidia/compiler.py", "import triton\ndef stage():\n    triton.language.dtype\n"),
        ("triton/backends/nvidia/compiler.py", "import triton as t\nstage = getattr(t, 'language')\n"),
        ("triton/backends/nvidia/compiler.py", "def stage():\n    import triton.language.core as c\n    c.x\n"),
        ("triton/backends/nvidia/compiler.py", "from triton.language.core import *\n"),
        ("triton/backends/nvidia/compiler.py", "import importlib\nimportlib.import_module('triton.runtime.jit')\n"),
        ("triton/backends/nvidia/compiler.py", "import importlib\nimportlib.import_module(chosen)\n"),
        ("triton/backends/nvidia/compiler.py", "from .driver import launch\n"),
        ("triton/backends/nvidia/compiler.py", "from triton.backends.amd import compiler\n"),
        ("triton/backends/nvidia/compiler.py", "not Python at all"),
        ("triton/backends/nvidia/passes.py", "from triton import jit\n"),
        ("triton/knobs.py", "def late():\n    from .language import core\n"),
        ("triton/runtime/autotuner.py", "from ..errors import OutOfResources\nclass OutOfResources: pass\n"),
        ("triton/compiler/compiler.py", "class Other:\n    def make_ir(self):\n        from . import code_generator\n"),
    ],
)  # fmt: skip
def test_a_file_below_the_frontend_that_leads_back_breaks_the_rule(name: str, text: str) -> None:
    assert violations({name: text})


def test_a_violation_says_where() -> None:
    text = "class Backend:\n    def stage(self):\n        from triton.language import core\n"
    assert violations({"triton/backends/nvidia/compiler.py": text}) == [
        "triton/backends/nvidia/compiler.py:3 (Backend.stage) refers to triton.language.core of "
        "triton/language/core.py"
    ]
