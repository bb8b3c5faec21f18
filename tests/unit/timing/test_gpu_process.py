"""How the GPU process answers: what is a refusal and what a fault."""

from types import SimpleNamespace

import pytest

from irdiff.timing import gpu_process
from irdiff.timing.abi import AbiError
from irdiff.timing.open_device import DeviceError, DriverError


def session(synchronize=lambda: None, device="a card"):
    return SimpleNamespace(
        device=device, torch=SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize))
    )


def answer(monkeypatch, operation, **options):
    monkeypatch.setitem(gpu_process._OPERATIONS, "time", operation)
    return gpu_process.answer(session(**options), {"op": "time"}, lambda row: None)


def raises(error):
    def operation(session, request, say):
        raise error

    return operation


@pytest.mark.parametrize(
    "error", [AbiError("takes\nsomething else"), DeviceError("no clusters here"), ValueError("no such fill")]
)
def test_what_does_not_fit_is_refused(monkeypatch, error):
    reply = answer(monkeypatch, raises(error))
    assert reply == {"kind": "refused", "message": " ".join(str(error).split())}


@pytest.mark.parametrize("error", [DriverError("refused a call"), RuntimeError("out of memory")])
def test_what_the_driver_or_torch_ends_in_is_a_fault(monkeypatch, error):
    with pytest.raises(type(error)):
        answer(monkeypatch, raises(error))


def test_a_fault_that_shows_late_is_not_a_reply(monkeypatch):
    def synchronize():
        raise RuntimeError("an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access"):
        answer(monkeypatch, lambda session, request, say: {"kind": "timed"}, synchronize=synchronize)
    reply = answer(monkeypatch, lambda session, request, say: {"kind": "listed"}, device=None)
    assert reply == {"kind": "listed"}
