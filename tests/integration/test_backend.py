"""A third-party backend, outside of Triton's tree, is a target like any other."""

import pytest

from tests import edited_toolchain
from tests.texts import text_of

pytestmark = pytest.mark.integration

COMPILER = text_of("backend/compiler.py")
DRIVER = text_of("backend/driver.py")
TARGET = 'title = "Tiny"\nbackend = "tiny"\narch = "t1"\nwarp_size = 1\n'


def interpreter(folder, toolchain, line, version, compiler=COMPILER):
    """A virtual environment with a toolchain's Triton and a backend package of its own."""
    text = compiler.replace("{LINE}", line).replace("{VERSION}", str(version))
    edited_toolchain.add_backend(edited_toolchain.beside(toolchain, folder), "tiny", text, DRIVER)
    return f"python:{folder}/bin/python"


@pytest.fixture
def words(tmp_path, small_corpus):
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
