"""A third-party backend, outside of Triton's tree, is a target like any other."""

from pathlib import Path

import pytest

from irdiff.model import Toolchain
from tests import edited_toolchain
from tests.texts import text_of

pytestmark = pytest.mark.integration

COMPILER = text_of("backend/compiler.py")
DRIVER = text_of("backend/driver.py")
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


def test_third_party_backend(irdiff, newest, tmp_path, words):
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


def test_a_last_stage_of_another_name_is_not_unchanged(irdiff, newest, tmp_path, words):
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
