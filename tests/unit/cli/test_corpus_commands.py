"""What `irdiff corpus verify` prints of launches that ran on a GPU."""

from __future__ import annotations

from typing import Any

from irdiff.cli import corpus_commands

RIGHT: dict[str, Any] = {
    "id": "embedding/embedding:bf16@sm_90", "ok": True, "why": None, "rtol": 0.01, "atol": 0.0,
    "max_abs_error": 0.0126, "relative_norm": 2.1e-4, "tolerance_used": 0.256, "median_us": 35.84,
    "tflops": 0.9, "gb_per_s": 3744.4, "peak_percent": 78.12, "peak_of": "memory_tb_per_s",
}  # fmt: skip
PRODUCT = RIGHT | {"id": "matmul/pointer:fp16@sm_90", "tflops": 656.3, "peak_of": "peak_fp16_tflops"}
WRONG = RIGHT | {"id": "a/b:c@sm_90", "ok": False, "why": "result 0: 3 of 4 | outside", "tolerance_used": 1e9}
CRASHED = dict.fromkeys(RIGHT) | {"id": "a/b:d@sm_90", "ok": False, "why": "RuntimeError: no"}


def test_a_line_stands_under_the_heading_and_names_the_rate_that_the_percentage_is_of() -> None:
    line = corpus_commands._verified_line(RIGHT)
    assert len(corpus_commands._verified_heading()) == len(line)
    figures = ("1.3e-02", "2.1e-04", "0.01", "0", "0.26", "35.8", "us", "3744", "GB/s", "78.1", "%", "memory")
    assert line.split()[2:] == [*figures]
    assert "656.3 TFLOP/s" in corpus_commands._verified_line(PRODUCT)
    assert "78.1 % fp16" in corpus_commands._verified_line(PRODUCT)
    assert corpus_commands._verified_line(CRASHED) == "WRONG a/b:d@sm_90: RuntimeError: no"


def test_every_row_of_the_table_has_every_column() -> None:
    text = corpus_commands._verified_markdown([RIGHT, WRONG, CRASHED])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert {line.replace("\\|", "").count("|") for line in rows} == {11}
    assert "1 of 3 launches agree" in text
    assert ">999" in text
