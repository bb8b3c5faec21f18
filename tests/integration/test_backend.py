"""A third-party backend, outside of Triton's tree, is a target like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.model import Toolchain
from tests import edited_toolchain

pytestmark = pytest.mark.integration

COMPILER = """
import types
from triton.backends.compiler import BaseBackend


class TinyBackend(BaseBackend):
    binary_ext = "tinybin"

    @staticmethod
    def supports_target(target):
        return target.backend == "tiny"

    def hash(self):
        return "tiny"

    def parse_options(self, options):
        values = dict(num_warps=4, num_ctas=1, num_stages=1, cluster_dims=(1, 1, 1), enable_fp_fusion=True, debug=False,
                      backend_name="tiny", arch=self.target.arch, warp_size=1, extern_libs=None, sanitize_overflow=False,
                      launch_cooperative_grid=False, supported_fp8_dtypes=(), deprecated_fp8_dot_operand_dtypes=(),
                      default_dot_input_precision="ieee", allowed_dot_input_precisions=("ieee",),
                      max_num_imprecise_acc_default=0, instrumentation_mode="", sanitize=False, fpsan_homomorphic_casts=False)
        return types.SimpleNamespace(**values | {k: v for k, v in options.items() if k in values and v is not None})

    def pack_metadata(self, metadata):
        return ()

    def get_codegen_implementation(self, options):
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self):
        return {}

    def load_dialects(self, context):
        pass

    def add_stages(self, stages, options, language):
        stages["ttir"] = lambda src, metadata: src
        stages["tinyasm"] = lambda src, metadata: "\\n".join(
            f"op {LINE}{n}" for n, line in enumerate(str(src).splitlines()) if "tt." in line)
        stages["tinybin"] = lambda src, metadata: bytes([0, {VERSION}]) + src.encode()
"""
DRIVER = """
from triton.backends.driver import DriverBase


class TinyDriver(DriverBase):
    is_active = staticmethod(lambda: False)
    map_python_to_cpp_type = get_active_torch_device = get_benchmarker = lambda self, *_: None

    def get_current_target(self):
        raise RuntimeError
"""
TARGET = 'title = "Tiny"\nbackend = "tiny"\narch = "t1"\nwarp_size = 1\n'
BINARY = """        stages["tinybin"] = lambda src, metadata: bytes([0, {VERSION}]) + src.encode()
"""


def ends_in(stage: str) -> str:
    """The same backend without a binary, its last stage under another name."""
    text = COMPILER.replace(BINARY, "").replace("tinyasm", stage).replace("tinybin", stage)
    assert "tinybin" not in text
    return text


def interpreter(folder: Path, toolchain: Toolchain, line: str, version: int, compiler: str = COMPILER) -> str:
    """A virtual environment with a toolchain's Triton and a backend package of its own."""
    text = compiler.replace("{LINE}", line).replace("{VERSION}", str(version))
    edited_toolchain.add_backend(edited_toolchain.beside(toolchain, folder), "tiny", text, DRIVER)
    return f"python:{folder}/bin/python"


@pytest.fixture
def words(tmp_path: Path, small_corpus: Path) -> tuple[str, ...]:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "tiny.toml").write_text(TARGET)
    return "--corpus", str(small_corpus), "--targets-dir", str(tmp_path / "targets"), "--target", "tiny"


def test_third_party_backend(irdiff, newest, tmp_path: Path, words: tuple[str, ...]) -> None:
    base = interpreter(tmp_path / "base", newest, "x", 1)
    head = interpreter(tmp_path / "head", newest, "y", 2)
    result = irdiff("compare", base, head, *words)
    assert result.code == 0, result.stderr
    assert result.verdicts() == {"changed": 3}
    case = result.run["cases"][0]
    assert case["stages"]["ttir"] in ("identical", "equivalent")
    assert case["origin"]["stage"] == "tinyasm"
    assert "generic-normalizer:tinyasm" in case["findings"]

    same = irdiff("compare", base, base, "--no-cache", *words)
    assert same.verdicts() == {"unchanged": 3}

    without = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words)
    assert without.code == 4
    assert "supports" in without.stderr
    mixed = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words, "--target", "sm_90")
    assert mixed.verdicts()["unsupported"] == 1


def test_a_last_stage_of_another_name_is_not_unchanged(
    irdiff, newest, tmp_path: Path, words: tuple[str, ...]
) -> None:
    base = interpreter(tmp_path / "base", newest, "x", 1, ends_in("asm"))
    head = interpreter(tmp_path / "head", newest, "x", 1, ends_in("npuasm"))
    for stages in ((), ("--stages", "ttir")):
        result = irdiff("compare", base, head, *words, *stages, "--exit-code")
        assert result.verdicts() == {"changed": 3}
        assert result.code == 1
        assert "The code of 3 could not be compared" in result.stdout
        for case in result.run["cases"]:
            assert "not-compared:asm,npuasm" in case["findings"]
            assert case["origin"]["stage"] == "asm"
    assert irdiff("compare", base, base, "--no-cache", *words).verdicts() == {"unchanged": 3}
