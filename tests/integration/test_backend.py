"""A third-party backend, outside of Triton's tree, is a target like any other."""

from tests import edited_toolchain
from tests.texts import text_of

TARGET = 'title = "Tiny"\nbackend = "tiny"\narch = "t1"\nwarp_size = 1\n'


def test_third_party_backend(irdiff, newest, tmp_path, small_corpus):
    for side, line, version in (("base", "x", "1"), ("head", "y", "2")):
        text = text_of("backend/compiler.py").replace("{LINE}", line).replace("{VERSION}", version)
        site = edited_toolchain.beside(newest, tmp_path / side)
        edited_toolchain.add_backend(site, "tiny", text, text_of("backend/driver.py"))
    base, head = (f"python:{tmp_path}/{side}/bin/python" for side in ("base", "head"))
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "tiny.toml").write_text(TARGET)
    folders = ("--corpus", str(small_corpus), "--targets-dir", str(tmp_path / "targets"))
    words = (*folders, "--target", "tiny")

    result = irdiff("compare", base, head, *words)
    assert result.code == 0, result.stderr
    assert result.verdicts() == {"changed": 3}
    case = result.run["cases"][0]
    assert case["stages"]["ttir"] in ("identical", "equivalent")
    assert case["origin"]["stage"] == "tinyasm"
    assert "generic-normalizer:tinyasm" in case["findings"]
    assert irdiff("compare", base, base, "--no-cache", *words).verdicts() == {"unchanged": 3}

    without = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words)
    assert without.code == 4 and "supports" in without.stderr
    mixed = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words, "--target", "sm_90")
    assert mixed.verdicts()["unsupported"] == 1
