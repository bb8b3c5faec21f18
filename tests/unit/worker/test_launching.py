"""What is launched, as text: a line for each fact that the program gives, and nothing that runs differ in."""

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from irdiff.worker import corpus_api, storages


@pytest.fixture
def described(load):
    launching = load("launching")

    def described(*calls):
        entry = launching.Calls()
        for call in calls:
            call.arguments = launching.seen(call)
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
    call_options: dict[str, Any] = field(default_factory=dict)
    kernel: Callable[[], None] = kernel
    queue: dict[str, int] = field(default_factory=lambda: {"device": 0, "stream": 0})
    arguments: list[Any] = field(default_factory=list)

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
    """Of a descriptor what has its default too, and equal calls once."""
    storages.begin_entry([])
    x = corpus_api.tensor((64, 8), "fp16", fill="zeros")
    given = (corpus_api.tensor((64, 8), "fp16"), [64, 8], [8, 1], [16, 8])
    one, two = Call({"n": 1}), Call({"n": 2})
    for calls in (
        [Call({"x": x, "BLOCK": 32, "n": 64, "eps": 0.5, "flag": True}, call_options={"num_warps": 8})],
        [Call({"d": Descriptor(*given)})],
        [Call({"d": Descriptor(*given, padding="nan")})],
        [one, one, two],
    ):
        assert described(*calls) == snapshot
    assert described(one, two) != described(two, one)


def test_a_storage_is_named_by_where_it_came_from(described):
    """Never by its place among the arguments of one kernel; and the same in another process."""
    texts = []
    for _ in range(2):
        x, y = (corpus_api.tensor((64,), "fp32") for _ in range(2))
        storages.begin_entry([x, y])
        one, two = (corpus_api.empty((64,), "fp32") for _ in range(2))
        pairs = ((x, y), (y, x), (x, x), (x, one), (x, two), (one, x))
        texts.append([described(Call({"a": a, "b": b})) for a, b in pairs])
    assert texts[0] == texts[1] and len(set(texts[0])) == len(pairs)


def test_an_address_lies_in_the_storage_that_holds_it(described):
    """Of an object that has nothing but an address, or a number that is one."""
    x, y = (corpus_api.tensor((64,), "fp32") for _ in range(2))
    storages.begin_entry([x, y])
    views = (
        types.SimpleNamespace(data_ptr=lambda at=at: at, dtype=x.dtype, shape=(8,))
        for at in (x.data_ptr(), x.data_ptr() + 4, y.data_ptr())
    )
    numbers = (x.data_ptr() + 4, y.data_ptr())
    assert len({described(Call({"a": value})) for value in (*views, *numbers)}) == 5


def test_what_a_storage_was_filled_with_last_is_said(described):
    out = corpus_api.empty((64,), "fp32")
    storages.begin_entry([out])
    made = described(Call({"out": out}))
    assert "filled with empty" in made
    zeroed, half = described(Call({"out": out.zero_()})), described(Call({"out": out[:32].zero_()}))
    assert "filled with zeros" in zeroed and len({made, zeroed, half}) == 3


def test_a_kernel_may_write_to_what_a_table_leads_to(load):
    launching = load("launching")
    table, out = (storages.StorageOrigin("made", "zeros") for _ in range(2))
    held = [("0", storages.Place(out, 0))]
    launching.launched(Call({}, arguments=[("t", launching.TensorArgument("", table, "zeros", held))]))
    assert (table.state, out.state) == ("", "")


def test_a_number_is_what_it_is_and_not_what_it_prints(described):
    size = type("Size", (int,), {"__repr__": lambda self: "Size"})
    assert described(Call({"n": size(3)})) == described(Call({"n": 3}))


def test_stream_and_device_are_said_where_they_are_not_the_default(described):
    call = Call({"n": 1})
    plain = described(call)
    call.queue = {"device": 1, "stream": 2}
    assert "device" not in plain and "  device: 1\n  stream: 2\n" in described(call)


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
    assert "was argument 1 of an earlier kernel" in described(first, second)
    assert "earlier" not in described(first, Call({"out": y}, kernel=other))
    again = Call({"a": y})
    of_the_last, of_the_first = (described(first, again, Call({"out": out}, kernel=other)) for out in (y, x))
    assert of_the_last != of_the_first and "call 1 before its last" in of_the_first


def test_an_autotuner_shows_what_it_does_around_a_launch(load, snapshot):
    names = {"arg_names": ["x", "M", "N", "out"], "reset_to_zero": ["out"]}
    configs = [types.SimpleNamespace(all_kwargs=lambda: {"BLOCK": 8})]

    def lines(**more):
        return list(load("launching").tuner_lines(types.SimpleNamespace(**names, **more), configs))

    assert lines(keys=["N", "M"], restore_value=None) == snapshot
    assert lines(key_idx=[2, 1])[:3] == lines(keys=["N", "M"])[:3], "before 3.3 keys are numbers"


def test_hooks_of_an_autotuner_count_by_what_they_do_to_arguments(load):
    names = ["x", "out"]
    functions = types.SimpleNamespace(fn=kernel, src="", params=[])

    def lines(hook):
        arguments = {name: corpus_api.empty((8,), "fp32") for name in names}
        tuner = types.SimpleNamespace(
            fn=functions, arg_names=names, user_defined_pre_hook=True, pre_hook=hook
        )
        return list(load("launching").measuring_lines(tuner, arguments))

    class Zeros:
        def __call__(self, arguments):
            arguments["out"].zero_()

    assert lines(Zeros()) == lines(lambda arguments: arguments["out"].fill_(0))
    assert lines(Zeros()) == ["autotuner's pre_hook: argument 2 filled with zeros"]
    assert lines(lambda arguments: arguments["x"].zero_()) != lines(Zeros()) and lines(len) == []
