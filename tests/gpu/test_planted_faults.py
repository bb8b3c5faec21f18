"""Each planted fault is reported for its case, and the others are timed."""

import os

import pytest

from irdiff import timing
from irdiff.timing.results import OutputStatus, Protocol, Speed

from . import compile_here

pytestmark = pytest.mark.gpu

EXPECTED = {
    "good": OutputStatus.EQUAL,
    "wrong_result": OutputStatus.DIFFERENT,
    "unwritten": OutputStatus.DIFFERENT,
    "out_of_bounds": OutputStatus.OUT_OF_BOUNDS,
    "illegal_address": OutputStatus.FAULT,
    "endless": OutputStatus.HANG,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="no torch here")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("no sm_90 GPU here")
    pytest.importorskip("triton", reason="no Triton here to compile the planted kernels with")
    folder = tmp_path_factory.mktemp("planted")
    builder = compile_here.Builder(compile_here.store_in(folder / "store"))
    built = {
        row.split(":")[1]: made
        for row, made in builder.build(compile_here.ROOT / "tests/gpu/workloads", "planted").items()
    }
    builder.close()
    # the same arguments on both sides: only the binary differs
    builder.write(folder / "run", [(name, built["good"], made) for name, made in built.items()])
    protocol = Protocol(
        budget_s=20.0,
        threshold=0.01,
        precision=0.005,
        confidence=0.95,
        processes=3,
        seed=0,
        verify_only=False,
    )
    options = timing.Options(
        patterns=(), every=False, protocol=protocol, environment=dict(os.environ), say=print
    )
    return {row.case.split("@")[0]: row for row in timing.time_run(folder / "run", options).cases}


@pytest.mark.parametrize(("name", "status"), EXPECTED.items())
def test_each_fault_is_reported_for_its_case(found, name, status):
    assert found[name].outputs.status is status


def test_the_side_to_blame_is_named(found):
    assert {found[name].outputs.side for name in ("out_of_bounds", "illegal_address", "endless")} == {"head"}


def test_the_others_are_timed(found):
    assert found["good"].measurement.speed in (Speed.SAME, Speed.UNCLEAR)
    assert found["wrong_result"].measurement is not None
    assert found["illegal_address"].measurement is None
