"""The tensors and launches that workloads are made of."""

from __future__ import annotations

import pytest

from irdiff.worker import corpus_api


def test_views_share_a_storage_and_keep_its_strides() -> None:
    qkv = corpus_api.tensor((128, 3 * 8, 64), "bf16")
    q = qkv[:, 8:16]
    assert q.shape == (128, 8, 64)
    assert q.stride() == (24 * 64, 64, 1)
    assert q.offset == 8 * 64
    assert q.storage is qkv.storage
    assert q.data_ptr() - qkv.data_ptr() == 8 * 64 * 2
    assert not q.is_contiguous()
    assert q.transpose(0, 1).shape == (8, 128, 64)
    assert qkv.view(128, -1).shape == (128, 24 * 64)


def test_a_step_in_the_last_dimension_is_a_stride() -> None:
    every_second = corpus_api.tensor((4, 32), "fp16")[:, ::2]
    assert every_second.shape == (4, 16)
    assert every_second.stride() == (32, 2)


def test_an_integer_index_drops_its_dimension() -> None:
    last = corpus_api.tensor((4, 32), "fp32")[-1]
    assert last.shape == (32,)
    assert last.offset == 3 * 32


def test_storages_are_distinct_and_aligned() -> None:
    first, second = corpus_api.tensor((3,), "i8"), corpus_api.tensor((3,), "i8")
    assert first.data_ptr() != second.data_ptr()
    assert first.data_ptr() % 256 == second.data_ptr() % 256 == 0
    assert first.ptr_range() == 3


def test_a_view_that_would_copy_is_an_error() -> None:
    with pytest.raises(ValueError, match="not contiguous"):
        corpus_api.tensor((4, 8), "fp32").t().view(32)


def test_dtypes_read_as_torch_prints_them() -> None:
    assert str(corpus_api.DType("fp8e4nv")) == "float8_e4m3fn"
    assert corpus_api.dtype_name("torch.bfloat16") == "bf16"
    with pytest.raises(ValueError, match="unknown dtype 'fp12'"):
        corpus_api.tensor((1,), "fp12")


def test_small_inputs_travel_by_value() -> None:
    offsets = corpus_api.values(range(0, 12, 4))
    assert offsets.shape == (3,)
    assert offsets.storage.fill == "values:0,4,8"


@pytest.mark.parametrize(
    ("facts", "target", "version", "expected"),
    [
        ({}, "sm_90", "3.2.0", True),
        ({"targets": "gfx*"}, "sm_90", "3.9.0", False),
        ({"targets": ("sm_100", "gfx9*")}, "gfx950", "3.9.0", True),
        ({"since": "3.4.0"}, "sm_90", "3.3.1", False),
        ({"since": "3.4.0"}, "sm_90", "3.10.0+git1234", True),
        ({"until": "3.9.0"}, "sm_90", "3.8.0", True),
        ({"until": "3.9.0"}, "sm_90", "3.9.0", False),
        ({"since": {"gfx942": "3.8.0", "*": "3.3.0"}}, "gfx942", "3.7.1", False),
        ({"since": {"gfx942": "3.8.0", "*": "3.3.0"}}, "gfx950", "3.7.1", True),
        ({"since": {"gfx942": "3.8.0"}}, "sm_90", "3.2.0", True),
        ({"failing": {"sm_100": "3.6.0"}}, "sm_100", "3.6.0+git1234", False),
        ({"failing": {"sm_100": "3.6.0"}}, "sm_100", "3.6.1", True),
        ({"failing": {"sm_100": "3.6.0"}}, "sm_90", "3.6.0", True),
    ],
)
def test_where_a_launch_is_meant_to_compile(
    facts: dict[str, object], target: str, version: str, expected: bool
) -> None:
    assert corpus_api.launch(print, **facts).expects(target, version) is expected


def test_an_unknown_tier_is_an_error() -> None:
    with pytest.raises(ValueError, match="one of gate, core, extended"):
        corpus_api.launch(print, tier="nightly")


class Kernel:
    """As Triton's JIT functions and autotuners look from outside."""

    def __init__(self, function: object) -> None:
        self.fn = function

    def run(self) -> None: ...

    def __getitem__(self, grid: object) -> object:
        return lambda *_: None

    __call__ = run


def test_a_kernel_without_its_grid_is_told_the_right_call() -> None:
    def rope(q_ptr, k_ptr, n, BLOCK):
        pass

    for kernel in (Kernel(rope), Kernel(Kernel(rope))):
        with pytest.raises(
            TypeError, match=r"write launch\(rope\[grid\], q_ptr, k_ptr, n, BLOCK\), not launch\(rope"
        ):
            corpus_api.launch(kernel, corpus_api.tensor((1,)))
        assert corpus_api.launch(kernel[(1,)], corpus_api.tensor((1,)))


def test_a_grid_goes_by_the_config_and_is_large_enough_for_one_that_was_never_seen() -> None:
    grid = corpus_api.grid_by(("BLOCK_M", "BLOCK_N"), {(64, 64): (8, 2, 1), (128, 32): (4, 4, 1)})
    assert grid({"BLOCK_M": 128, "BLOCK_N": 32, "n": 3}) == (4, 4, 1)
    assert grid({"BLOCK_M": 256, "BLOCK_N": 32}) == (8, 4, 1)


def test_a_program_is_a_row_of_its_own() -> None:
    entry = corpus_api.program("bench/run.py", "--small", tier="gate", configs=2)
    assert isinstance(entry, corpus_api.ProgramEntry)
    assert (entry.args, entry.facts["tier"], entry.facts["configs"]) == (
        ("bench/run.py", "--small"),
        "gate",
        2,
    )
    assert entry.expects("sm_90", "3.9.0")
