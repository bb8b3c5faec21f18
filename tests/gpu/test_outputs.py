"""How two buffers are compared; any torch will do, a GPU is not used."""

import pytest

from irdiff.timing import buffers
from irdiff.timing.buffers import Storage

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="no torch here")


def compared(base, head, dtype, tolerance=(0.01, 0.01)):
    size = {"item_bytes": base.element_size(), "elements": base.numel()}
    storage = Storage(number=0, name="out", dtype=dtype, argument={"fill": "empty"}, **size)
    return buffers.difference(torch, storage, base.view(torch.uint8), head.view(torch.uint8), tolerance)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("base", "head", "dtype", "elements", "ulp", "within"),
    [
        ([0.0], [-0.0], "fp32", 0, 0, True),
        *(([1.0, 1.0], [1.0, bad], "fp32", 1, ..., False) for bad in (NAN, INF, 2.0)),
        ([NAN, 1.0], [NAN, 1.001], "fp32", 1, ..., True),
        ([5], [9], "i32", 1, None, False),
    ],
)
def test_values_that_differ(base, head, dtype, elements, ulp, within):
    kind = torch.int32 if dtype == "i32" else torch.float32
    found = compared(torch.tensor(base, dtype=kind), torch.tensor(head, dtype=kind), dtype)
    assert (found.elements, found.within) == (elements, within)
    assert ulp is ... or found.max_ulp == ulp


@pytest.mark.parametrize("name", ["float32 fp32", "float16 fp16", "bfloat16 bf16"])
def test_neighbours_are_one_ulp_apart(name):
    dtype, _, short = name.partition(" ")
    x = torch.tensor([1.0, -1.0, 0.0], dtype=getattr(torch, dtype))
    found = compared(x, torch.nextafter(x, torch.tensor(2.0, dtype=x.dtype)), short)
    assert (found.max_ulp, found.elements, found.within) == (1, 3, True)


def test_equal_bytes_and_the_relative_norm():
    x = torch.tensor([1.0, NAN, -0.0])
    assert compared(x, x.clone(), "fp32") is None
    found = compared(torch.full((100,), 2.0), torch.full((100,), 2.2), "fp32")
    assert found.relative_norm == pytest.approx(0.1, rel=1e-4)
