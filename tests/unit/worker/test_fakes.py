"""The tensors and launches that workloads are made of, and the real tensors in their place."""

import ast
from pathlib import Path

import pytest

from irdiff.worker import corpus_api, fills
from tests.unit.golden import golden

CORPUS = Path(__file__).parents[3] / "corpus"


def test_views_share_a_storage_and_keep_its_strides():
    qkv = corpus_api.tensor((128, 3 * 8, 64), "bf16")
    q = qkv[:, 8:16]
    assert (q.shape, q.stride(), q.offset) == ((128, 8, 64), (24 * 64, 64, 1), 8 * 64)
    assert q.storage is qkv.storage and not q.is_contiguous()
    assert q.data_ptr() - qkv.data_ptr() == 8 * 64 * 2
    assert q.transpose(0, 1).shape == (8, 128, 64)
    assert qkv.view(128, -1).shape == qkv.view((128, -1)).shape == (128, 24 * 64)
    every_second = corpus_api.tensor((4, 32), "fp16")[:, ::2]
    assert (every_second.shape, every_second.stride()) == ((4, 16), (32, 2))
    last = corpus_api.tensor((4, 32), "fp32")[-1]
    assert (last.shape, last.offset) == ((32,), 3 * 32)
    with pytest.raises(ValueError, match="not contiguous"):
        corpus_api.tensor((4, 8), "fp32").t().view(32)


def test_storages_are_distinct_and_aligned():
    first, second = corpus_api.tensor((3,), "i8"), corpus_api.tensor((3,), "i8")
    assert first.data_ptr() != second.data_ptr()
    assert first.data_ptr() % 256 == second.data_ptr() % 256 == 0
    assert (first.ptr_range(), corpus_api.tensor((0, 4)).ptr_range()) == (3, 0)
    zeros = first.new_zeros((2,)), first.new_zeros((2,), "fp16")
    assert [(row.dtype.short, row.storage.fill) for row in zeros] == [("i8", "zeros"), ("fp16", "zeros")]


def test_dtypes_read_as_torch_prints_them():
    assert str(corpus_api.DType("fp8e4nv")) == "float8_e4m3fn"
    assert corpus_api.dtype_name("torch.bfloat16") == "bf16"
    with pytest.raises(ValueError, match="fp12"):
        corpus_api.tensor((1,), "fp12")


def test_where_a_launch_is_meant_to_compile():
    for row in golden("launches")["expects"]:
        found = corpus_api.launch(print, **row["facts"]).expects(row["target"], row["triton"])
        assert found is row["expected"], row


class Kernel:
    """As Triton's JIT functions and autotuners look from outside."""

    def __init__(self, function):
        self.fn = function

    def run(self): ...

    def __getitem__(self, grid):
        return lambda *_: None

    __call__ = run


def test_what_cannot_be_launched_says_how_to_write_it():
    def rope(q_ptr, k_ptr, n, BLOCK):
        pass

    for kernel in (Kernel(rope), Kernel(Kernel(rope))):
        with pytest.raises(TypeError, match=r"write launch\(rope\[grid\], q_ptr, k_ptr, n, BLOCK\), not"):
            corpus_api.launch(kernel, corpus_api.tensor((1,)))
        assert corpus_api.launch(kernel[(1,)], corpus_api.tensor((1,)))
    with pytest.raises(ValueError, match="one of gate, core, extended"):
        corpus_api.launch(print, tier="nightly")


def test_extent_is_what_the_view_reaches():
    for shape, strides, offset, expected in (
        ((4, 8), (8, 1), 0, 32),
        ((4, 8), (1, 4), 0, 32),
        ((4, 8), (64, 2), 10, 10 + 3 * 64 + 7 * 2 + 1),
        ((0, 8), (8, 1), 5, 5),
    ):
        assert fills.extent({"shape": shape, "strides": strides, "storage_offset": offset}) == expected


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*.py")), ids=lambda path: path.stem)
def test_the_corpus_names_only_known_fills(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "fill" and isinstance(node.value, ast.Constant):
            assert node.value.value.partition(":")[0] in fills.KINDS
