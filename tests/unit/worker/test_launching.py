"""What is launched, as text: a line for each fact that the program gives, and nothing that runs differ in."""

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from irdiff.worker import corpus_api


@pytest.fixture
def described(load):
    launching = load("launching")

    def described(*calls):
        entry = launching.Calls()
        return launching.text([entry.lines(call, call.kernel.__name__) for call in calls])

    return described


def kernel():
    pass


def other():
    pass


@dataclass
class Call:
    """One call of a kernel, as a worker captures it."""

    bound: dict[str, Any]
    grid: list[int] = field(default_factory=lambda: [4, 1, 1])
    given: dict[str, Any] = field(default_factory=dict)
    kernel: Callable[[], None] = kernel

    @property
    def function(self):
        params = [types.SimpleNamespace(name=name, is_constexpr=name.isupper()) for name in self.bound]
        return types.SimpleNamespace(fn=self.kernel, params=params)


@dataclass
class Descriptor:
    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"
    swizzle: int | None = None


def test_each_fact_has_a_line(described, snapshot):
    """Of a descriptor what has no default, and equal calls once."""
    x = corpus_api.tensor((64, 8), "fp16", fill="zeros")
    given = (corpus_api.tensor((64, 8), "fp16"), [64, 8], [8, 1], [16, 8])
    one, two = Call({"n": 1}), Call({"n": 2})
    for calls in (
        [Call({"x": x, "BLOCK": 32, "n": 64, "eps": 0.5, "flag": True}, given={"num_warps": 8})],
        [Call({"d": Descriptor(*given)})],
        [Call({"d": Descriptor(*given, padding="nan")})],
        [one, one, two],
    ):
        assert described(*calls) == snapshot
    assert described(one, two) != described(two, one)


def test_another_object_with_the_same_facts_has_an_equal_text(described):
    """A renamed variable of the program, or another process: storages have other addresses."""
    first, _, second = (corpus_api.tensor((64,), "fp32") for _ in range(3))
    assert first.data_ptr() != second.data_ptr()
    assert described(Call({"x": first})) == described(Call({"x": second}))


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
def test_facts_that_differ_have_other_texts(described, one, another):
    assert described(Call({"x": one})) != described(Call({"x": another}))


def test_tensors_of_one_storage_are_marked(described):
    x, y = (corpus_api.tensor((8,), "fp32") for _ in range(2))
    assert described(Call({"a": x, "b": y})) != described(Call({"a": x, "b": x}))
    first, second = Call({"a": x}), Call({"out": x}, kernel=other)
    assert "storage 0, was argument 1 of an earlier kernel" in described(first, second)
    assert "earlier" not in described(first, Call({"out": y}, kernel=other))
    again = Call({"a": y})
    of_the_last, of_the_first = (described(first, again, Call({"out": out}, kernel=other)) for out in (y, x))
    assert of_the_last != of_the_first and "call 1 before its last" in of_the_first


def test_an_autotuner_shows_what_it_does_around_a_launch(load, snapshot):
    names = {"arg_names": ["x", "M", "N", "out"], "reset_to_zero": ["out"]}
    hooks = {"user_defined_pre_hook": True, "pre_hook": kernel}
    configs = [types.SimpleNamespace(all_kwargs=lambda: {"BLOCK": 8}, pre_hook=other)]

    def lines(**more):
        tuner = types.SimpleNamespace(**names, **more)
        return list(load("launching").tuner_lines(tuner, configs, configs[0]))

    found = lines(keys=["N", "M"], restore_value=None, **hooks)
    assert [line.partition(" function:")[0] for line in found] == snapshot
    assert lines(key_idx=[2, 1])[:3] == lines(keys=["N", "M"])[:3], "before 3.3 keys are numbers"
