"""What a recorded test reads of its kernels' results is seen, but for what an assertion checks."""

import os
import sys
import types
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest


@pytest.fixture
def of(load):
    """Makes an array of what a kernel computes."""
    return load("computed_arrays").of


@pytest.fixture
def in_one(load):
    return load("pytest_assertions").in_one


@pytest.fixture
def doubts(load, monkeypatch):
    """A test is recorded, and has launched a kernel."""
    found, noted = [], load("noted")
    monkeypatch.setattr(noted, "listener", found.append)
    monkeypatch.setattr(noted, "has_launched", True)
    return found


def test_an_assertion_is_told_from_other_lines(in_one):
    assert in_one()
    assert (
        numpy.ones(1).all()
        and in_one()
    )  # fmt: skip
    inside = in_one()
    assert not inside


def assert_below(check):
    return check()


def test_a_function_called_assert_is_an_assertion(in_one):
    inside = assert_below(in_one)
    assert inside


@pytest.mark.parametrize(
    "read",
    [
        bool,
        int,
        float,
        lambda value: value.item(),
        lambda value: [10, 20][value],
        lambda value: value.tolist(),
        lambda value: 1 in value.reshape(1),
    ],
)
@pytest.mark.parametrize(
    "calculate",
    [
        lambda array: array[0],
        lambda array: array.max(),
        lambda array: numpy.sum(array * 2) - 1,
        lambda array: numpy.concatenate([numpy.zeros(1), array])[1].astype(int),
        lambda array: (array == 1).all(),
        lambda array: numpy.where(array > 0, array, 0)[0],
    ],
)
def test_a_value_of_a_computed_array_is_noted_as_it_is_read(doubts, of, calculate, read):
    value = calculate(of(numpy.array([1.0])))
    before = [*doubts]
    read(value.astype(int))
    assert before == [] and doubts


def test_no_value_is_noted_in_an_assertion(doubts, of):
    array = of(numpy.array([1.0, 2.0]))
    assert array[0] == 1
    assert numpy.abs(array - [1, 2]).max() < 1e-6
    assert doubts == []


def test_no_value_is_noted_before_the_first_launch(doubts, of, load, monkeypatch):
    monkeypatch.setattr(load("noted"), "has_launched", False)
    if of(numpy.array([1.0]))[0] == 1:
        assert doubts == []


@pytest.fixture
def kernel(load):
    """Its code says whether what asks for it can reach nothing but assertions."""
    assertions = load("pytest_assertions")
    # a function of the worker's, as a kernel's `asm` is one
    code = compile("lambda *_: is_only_asserted()", assertions.__file__, "eval")
    ask = eval(code, {"is_only_asserted": assertions.is_only_asserted})
    asm = type("Asm", (dict,), {"__missing__": ask})
    return types.SimpleNamespace(asm=asm(), seen=[])


def test_code_that_assertions_alone_look_at_is_told_from_other_code(kernel):
    assert kernel.asm["ptx"]
    asserted = kernel.asm["ptx"]
    for _ in range(2):
        assert asserted
    assert all(asserted for _ in range(2))
    returned = kernel.asm["ptx"]
    decides = kernel.asm["ptx"]
    handed_on = kernel.asm["ptx"]
    kernel.seen.append(handed_on)
    if decides:
        raise AssertionError
    lines = str(kernel.asm["ptx"])
    assert lines == "False"
    a = b = kernel.asm["ptx"]
    assert not a and not b
    assert kernel.seen == [False]
    result = [returned]
    assert result == [False]


def test_a_name_that_another_function_reads_is_more_than_asserted(kernel):
    inside = kernel.asm["ptx"]

    def decide():
        return inside

    assert not decide()
    assert not inside


@pytest.fixture
def identity(load, request):
    """That of the test that runs."""
    return load("pytest_recorder").identity_of(request.node).partition("::")[2]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("a", "b"), [(Decimal(1), "x"), (Decimal(2), Fraction(3))])
def test_the_number_of_a_parameter_is_no_part_of_what_a_test_is_known_by(identity, a, b, size):
    assert identity == f"{test_name()}[{a!r}-{b if b == 'x' else repr(b)}-{size}]"


@pytest.mark.parametrize("a", [object()])
def test_a_value_that_has_only_an_address_keeps_its_number(identity, a):
    assert identity == f"{test_name()}[a0]"


def test_a_test_without_parameters_is_known_by_its_name(identity):
    assert identity == test_name()


def test_a_process_that_cannot_write_what_it_saw_ends_with_a_code_of_its_own(load, tmp_path):
    recorder = load("pytest_recorder")
    pid = os.fork()
    if pid == 0:
        recorder.write_line(str(tmp_path / "absent" / "tests.jsonl"), {"test": "t"})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == recorder.CANNOT_WRITE


def test_name():
    return sys._getframe(1).f_code.co_name


test_name.__test__ = False
