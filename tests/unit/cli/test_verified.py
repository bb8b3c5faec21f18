from irdiff.cli import corpus_commands

RIGHT = {
    "id": "embedding/embedding:bf16@sm_90",
    "ok": True,
    "why": None,
    "rtol": 0.01,
    "atol": 0.0,
    "max_abs_error": 0.0126,
    "relative_norm": 2.1e-4,
    "tolerance_used": 0.256,
    "median_us": 35.84,
    "tflops": 0.9,
    "gb_per_s": 3744.4,
    "peak_percent": 78.12,
    "peak_of": "memory_tb_per_s",
}
PRODUCT = RIGHT | {"id": "matmul/pointer:fp16@sm_90", "tflops": 656.3, "peak_of": "peak_fp16_tflops"}
WRONG = RIGHT | {
    "id": "a/b:c@sm_90",
    "ok": False,
    "why": "result 0: 3 of 4 | outside",
    "tolerance_used": 1e300,
}
CRASHED = dict.fromkeys(RIGHT) | {"id": "a/b:d@sm_90", "ok": False, "why": "RuntimeError: no"}


def test_a_line_stands_under_the_heading():
    assert len(corpus_commands._verified_heading()) == len(corpus_commands._verified_line(RIGHT))
    assert corpus_commands._verified_line(RIGHT).split()[2:] == [
        *("1.3e-02", "2.1e-04", "0.01", "0", "0.26", "35.8", "us", "3744", "GB/s", "78.1", "%", "memory")
    ]


def test_the_rate_is_the_one_that_the_percentage_is_of():
    assert "656.3 TFLOP/s" in corpus_commands._verified_line(PRODUCT)
    assert "78.1 % fp16" in corpus_commands._verified_line(PRODUCT)


def test_a_wrong_launch_says_why():
    assert corpus_commands._verified_line(CRASHED) == "WRONG a/b:d@sm_90: RuntimeError: no"


def test_every_row_of_the_table_has_every_column():
    text = corpus_commands._verified_markdown([RIGHT, WRONG, CRASHED])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert {line.replace("\\|", "").count("|") for line in rows} == {11}
    assert "1 of 3 launches agree" in text
    assert ">999" in text
