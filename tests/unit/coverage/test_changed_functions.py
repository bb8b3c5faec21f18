"""Which functions an edit of a file changes."""

import textwrap

import pytest

from irdiff.coverage import changed_functions as changes
from irdiff.coverage.file_functions import holds_kernels
from irdiff.model import Sides
from tests.texts import text_of
from tests.unit.golden import golden

TEXT = text_of("changed_files/text.py")
KERNEL = "@triton.jit\ndef dead(x, n):\n    tl.store(x, tl.load(x) * {})\n"
EDITS = golden("changed-functions")["edit"]


def changed_functions(base, head):
    return changes.changed_functions(base.encode(), head.encode())


def text_with_kernels(text, factor):
    """Puts the kernel in place of the word, as far right."""
    lines = text.split("\n")
    kernel = KERNEL.format(factor)
    whole = (
        textwrap.indent(kernel, " " * line.index("KERNEL")) if line.endswith("KERNEL") else line
        for line in lines
    )
    return "\n".join(whole)


@pytest.mark.parametrize("edit", EDITS, ids=[edit["why"] for edit in EDITS])
def test_every_function_counts_wherever_it_stands(edit):
    base, head = text_with_kernels(edit["base"], 1), text_with_kernels(edit["head"], 2)
    assert [function.name for function in changed_functions(base, head)] == edit["functions"]
    assert changed_functions(base, base) == changed_functions(head, head) == []


def test_what_a_function_does_counts():
    for row in golden("kernel-repositories")["edited"]:
        functions = changed_functions(TEXT, TEXT.replace(row["old"], row["new"], 1))
        lines = [
            f"{function.name} {'-'.join(str(max(places, default=(0,))[0]) for places in function.places)}"
            for function in functions
        ]
        assert lines == row["functions"], row


def test_places_are_those_of_each_side():
    (function,) = changed_functions(TEXT, "\n\n" + TEXT.replace("8", "16"))
    assert function.places == Sides(base=((5, "settings"),), head=((7, "settings"),))
    decorated = "@heuristics(\n    lambda: {}\n)\n@triton.jit\ndef kernel(x):\n    pass\n"
    (function,) = changed_functions(decorated.format(1), decorated.format(2))
    assert function.places.head == ((1, "kernel"),)
    (function,) = changed_functions("\nf = g(lambda: 1)", "\nf = g(lambda: 2)")
    assert function.places.head == ((2, "<lambda>"),)
    (function,) = changed_functions("f = lambda: 1; g = lambda: 1", "f = lambda: 1; g = lambda: 2")
    assert (function.name, function.places) == ("g", Sides(base=(), head=())), "nobody can tell which one ran"
    (function,) = changed_functions("f = lambda: lambda: 1", "f = lambda: lambda: 2")
    assert function.places.head == ((1, "<lambda>"),)


def test_where_base_is_no_python_all_of_head_is_new():
    text = "def f(): pass\ndef g(): pass\n"
    assert [function.name for function in changed_functions("def", text)] == ["f", "g"]


@pytest.mark.parametrize("text", ["def", "\0", "1" + " + 1" * 100_000])
def test_what_this_python_cannot_read_is_an_error(text):
    assert not holds_kernels(text.encode())
    with pytest.raises(SyntaxError):
        changed_functions("", text)


def test_a_file_holds_kernels_if_a_function_becomes_one():
    assert holds_kernels(b"if x:\n    def f(x): pass\n    f = triton.jit(f)\n")
    assert not holds_kernels(b"import triton.language as tl\ndef f(x): return tl.float16\n")


@pytest.mark.parametrize("head", ["\ufeff{}", "# coding: latin-1\n{}  # \xe9", "\r\n{}"])
def test_a_file_is_read_as_python_reads_it(head):
    kernel = KERNEL.format(2).rstrip()
    encoding = "latin-1" if "latin" in head else "utf-8"
    content = head.format(kernel).encode(encoding)
    (function,) = changes.changed_functions(KERNEL.format(1).encode(), content)
    assert function.name == "dead"
    assert changes.changed_functions(kernel.encode(), content) == []
