"""How two buffers are compared; any torch will do, a GPU is not used."""

import pytest

from irdiff.timing import buffers
from irdiff.timing.buffers import Storage

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="no torch here")


def compared(base, head, dtype, tolerance=(1e-2, 1e-2)):
    storage = Storage(
        number=0,
        name="out",
        dtype=dtype,
        item_bytes=base.element_size(),
        elements=base.numel(),
        row={"fill": "empty"},
    )
    return buffers.difference(torch, storage, base.view(torch.uint8), head.view(torch.uint8), tolerance)


def test_equal_bytes():
    x = torch.tensor([1.0, float("nan"), -0.0])
    assert compared(x, x.clone(), "fp32") is None


@pytest.mark.parametrize(
    ("dtype", "name"), [(torch.float32, "fp32"), (torch.float16, "fp16"), (torch.bfloat16, "bf16")]
)
def test_neighbours_are_one_ulp_apart(dtype, name):
    x = torch.tensor([1.0, -1.0, 0.0], dtype=dtype)
    y = torch.nextafter(x, torch.tensor(2.0, dtype=dtype))
    found = compared(x, y, name)
    assert found.max_ulp == 1
    assert found.within
    assert found.elements == 3


def test_zero_and_minus_zero_differ_in_bytes_only():
    found = compared(torch.tensor([0.0]), torch.tensor([-0.0]), "fp32")
    assert (found.elements, found.max_ulp, found.within) == (0, 0, True)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 2.0])
def test_a_wrong_value_is_not_within(bad):
    found = compared(torch.tensor([1.0, 1.0]), torch.tensor([1.0, bad]), "fp32")
    assert not found.within
    assert found.elements == 1


def test_nan_on_both_sides_agrees():
    base = torch.tensor([float("nan"), 1.0])
    assert compared(base, torch.tensor([float("nan"), 1.001]), "fp32").within


def test_integers_have_no_ulp():
    found = compared(torch.tensor([5], dtype=torch.int32), torch.tensor([9], dtype=torch.int32), "i32")
    assert found.max_ulp is None
    assert not found.within


def test_relative_norm():
    found = compared(torch.full((100,), 2.0), torch.full((100,), 2.2), "fp32")
    assert found.relative_norm == pytest.approx(0.1, rel=1e-4)
