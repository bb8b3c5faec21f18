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


def test_every_row_has_every_column_and_names_the_rate_that_the_percentage_is_of() -> None:
    line = corpus_commands._verified_line
    figures = ("1.3e-02", "2.1e-04", "0.01", "0", "0.26", "35.8 us", "3744 GB/s", "78.1 % memory")
    assert [cell.strip() for cell in line(RIGHT).split("|")[3:-1]] == [*figures]
    assert "656.3 TFLOP/s" in line(PRODUCT)
    assert "78.1 % fp16" in line(PRODUCT)
    assert "**wrong**: RuntimeError: no" in line(CRASHED)
    assert ">999" in line(WRONG)
    rows = [*corpus_commands._verified_heading().splitlines(), *map(line, (RIGHT, WRONG, CRASHED))]
    assert {row.replace("\\|", "").count("|") for row in rows} == {11}
    assert len({row.index("|", 1) for row in rows}) == 1
    assert corpus_commands._agreement([RIGHT, WRONG, CRASHED]).startswith("1 of 3 launches agree")
