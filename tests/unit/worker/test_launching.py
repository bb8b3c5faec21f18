"""What is launched, as text: a line for each fact that the program gives, and nothing that runs differ in."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from irdiff.worker import corpus_api


@pytest.fixture
def launching(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The worker's module, with nothing in place of the compiler."""
    stub = types.ModuleType("triton")
    stub.__file__ = "/triton/__init__.py"
    monkeypatch.setitem(sys.modules, "triton", stub)
    names = ("irdiff.worker.describe", "irdiff.worker.launching")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("irdiff.worker.launching")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)


def kernel() -> None:
    pass


def other() -> None:
    pass


@dataclass
class Call:
    """One call of a kernel, as a worker captures it."""

    bound: dict[str, Any]
    grid: list[int] = field(default_factory=lambda: [4, 1, 1])
    given: dict[str, Any] = field(default_factory=dict)
    kernel: Callable[[], None] = kernel

    @property
    def function(self) -> Any:
        return types.SimpleNamespace(fn=self.kernel)


def described(launching: Any, *calls: Call) -> str:
    entry = launching.Calls()
    text: str = launching.text([entry.lines(call, "scale") for call in calls])
    return text


@dataclass
class Descriptor:
    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"
    swizzle: int | None = None


def test_each_fact_has_a_line(launching: Any) -> None:
    x = corpus_api.tensor((64, 8), "fp16", fill="zeros")
    call = Call({"x": x, "n": 64, "eps": 0.5, "flag": True, "BLOCK": 32}, given={"num_warps": 8})
    assert described(launching, call).splitlines() == [
        "call 1",
        "  grid: [4, 1, 1]",
        "  option num_warps: 8",
        "  argument 1: fp16 [64, 8], strides [8, 1], offset 0, aligned to 16 bytes, storage 0, filled with zeros",
        "  argument 2: 64",
        "  argument 3: 0.5",
        "  argument 4: True",
        "  argument 5: 32",
    ]


def test_another_object_with_the_same_facts_has_an_equal_text(launching: Any) -> None:
    """A renamed variable of the program, or another process: storages have other addresses."""
    first, _, second = (corpus_api.tensor((64,), "fp32") for _ in range(3))
    assert first.data_ptr() != second.data_ptr()
    assert described(launching, Call({"x": first})) == described(launching, Call({"x": second}))


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (corpus_api.tensor((8,), "i32"), corpus_api.tensor((8,), "u32")),
        (corpus_api.tensor((8,), "i32"), corpus_api.tensor((9,), "i32")),
        (corpus_api.tensor((8, 8), "i32"), corpus_api.tensor((8, 8), "i32").t()),
        (corpus_api.tensor((8,), "i32"), corpus_api.tensor((8,), "i32", offset=1)),
        (corpus_api.tensor((8,), "i32"), corpus_api.tensor((8,), "i32", fill="ones")),
        ((1, 2), (2, 1)),
    ],
    ids=["value", "bool", "float", "sign", "signedness", "shape", "strides", "offset", "fill", "tuple"],
)
def test_facts_that_differ_have_other_texts(launching: Any, one: Any, another: Any) -> None:
    assert described(launching, Call({"x": one})) != described(launching, Call({"x": another}))


def test_tensors_of_one_storage_are_told(launching: Any) -> None:
    x, y = (corpus_api.tensor((8,), "fp32") for _ in range(2))
    assert described(launching, Call({"a": x, "b": y})) != described(launching, Call({"a": x, "b": x}))
    first, second = Call({"a": x}), Call({"out": x}, kernel=other)
    assert "storage 0, argument 1 of an earlier kernel" in described(launching, first, second)
    apart = described(launching, first, Call({"out": y}, kernel=other))
    assert "earlier" not in apart


def test_of_a_descriptor_only_what_has_no_default_is_told(launching: Any) -> None:
    base = corpus_api.tensor((64, 8), "fp16")
    plain = Descriptor(base, [64, 8], [8, 1], [16, 8])
    text = described(launching, Call({"d": plain}))
    assert "argument 1: descriptor of block [16, 8], shape [64, 8], strides [8, 1]\n" in text
    padded = described(launching, Call({"d": Descriptor(base, [64, 8], [8, 1], [16, 8], padding="nan")}))
    assert "strides [8, 1], padding 'nan'\n" in padded
    assert "swizzle" not in padded


def test_calls_come_in_their_order_and_equal_ones_are_said_once(launching: Any) -> None:
    one, two = Call({"n": 1}), Call({"n": 2})
    assert described(launching, one, one, two).splitlines() == [
        "call 1, 2 times", "  grid: [4, 1, 1]", "  argument 1: 1", "call 2", "  grid: [4, 1, 1]", "  argument 1: 2",
    ]  # fmt: skip
    assert described(launching, one, two) != described(launching, two, one)


def test_an_autotuner_is_told_by_what_it_does_around_a_launch(launching: Any) -> None:
    tuner = types.SimpleNamespace(
        arg_names=["x", "M", "N", "out"],
        keys=["N", "M"],
        reset_to_zero=["out"],
        restore_value=None,
        user_defined_pre_hook=True,
        pre_hook=kernel,
    )
    *rows, hook = launching.tuner_lines(tuner)
    assert rows == [
        "autotuner's key: [3, 2]",
        "autotuner's reset_to_zero: [4]",
        "autotuner's restore_value: []",
    ]
    assert hook.startswith("autotuner's pre_hook: function:kernel ")
    by_number = types.SimpleNamespace(arg_names=["x", "M", "N", "out"], key_idx=[2, 1], reset_to_zero=["out"])
    assert list(launching.tuner_lines(by_number))[:3] == list(launching.tuner_lines(tuner))[:3]
