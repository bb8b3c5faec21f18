"""Which pass began a difference, from logs of made-up pipelines."""

from __future__ import annotations

from irdiff.attribute import llvm_passes, passes
from irdiff.attribute.passes import END, State


def states(*rows: tuple[str, str], options: str | None = "") -> list[State]:
    return [State.of(name, name.lower(), options, text.encode()) for name, text in rows]


def lines(log: str) -> list[bytes]:
    return log.encode().splitlines(keepends=True)


def find(base: list[State], head: list[State]) -> passes.Culprit | None:
    return passes.find_culprit(base, head, lambda a, b: a.text == b.text)


def test_the_log_of_new_and_old_releases() -> None:
    log = (
        "// -----// IR Dump Before TritonGPUPipeline: tritongpu-pipeline{dump-intermediate-steps=true"
        " num-stages=3} ('builtin.module' operation) //----- //\nmodule {\n}\n"
        "// -----// SoftwarePipeliner internal IR Dump After: LowerLoops\nmodule { inner }\n"
        "// -----// IR Dump Before CSE (cse) ('builtin.module' operation: @x) //----- //\nmodule { two }\n"
    )
    found = passes.read_log(lines(log), State.of(END, "", None, b"module { end }"))
    assert [(s.name, s.argument, s.options, s.text) for s in found] == [
        ("TritonGPUPipeline", "tritongpu-pipeline", "num-stages=3", "module {\n}"),
        ("CSE", "cse", None, "module { two }"),
        (END, "", None, "module { end }"),
    ]


def test_a_pass_ends_where_the_next_one_of_the_pipeline_begins() -> None:
    heading = "// -----// IR Dump Before {} ('builtin.module' operation) //----- //\n{}\n"
    names = ("TritonGPUOptimizeDotOperands: a", "CanonicalizerPass: canonicalize", "CSE: cse")
    log = "".join(heading.format(name, text) for name, text in zip(names, "112", strict=True))
    found = passes.read_log(lines(log), None)
    assert [(state.name, state.text) for state in found] == [
        ("TritonGPUOptimizeDotOperands", "1"),
        ("CSE", "2"),
    ]

    alone = "".join(heading.format(name, text) for name, text in zip(names[1:], "12", strict=True))
    assert [state.name for state in passes.read_log(lines(alone), None)] == ["CanonicalizerPass", "CSE"]


def test_the_pass_between_the_last_equal_states() -> None:
    culprit = find(
        states(("A", "1"), ("B", "2"), ("C", "3"), (END, "4")),
        states(("A", "1"), ("B", "2"), ("C", "3x"), (END, "4x")),
    )
    assert culprit is not None
    assert (culprit.name, culprit.note, culprit.masked) == ("B", "", ())
    assert (culprit.entering, culprit.leaving) == ((1, 1), (2, 2))


def test_a_healed_difference_is_listed_and_not_blamed() -> None:
    culprit = find(
        states(("A", "1"), ("B", "2"), ("C", "3"), ("D", "4"), (END, "5")),
        states(("A", "1"), ("B", "2x"), ("C", "3"), ("D", "4"), (END, "5x")),
    )
    assert culprit is not None
    assert (culprit.name, culprit.masked) == ("D", ("A",))


def test_equal_ends_have_no_culprit() -> None:
    assert find(states(("A", "1"), (END, "2")), states(("A", "1"), (END, "2"))) is None
    assert find([], states(("A", "1"))) is None


def test_an_added_and_a_removed_pass_are_named() -> None:
    without = states(("A", "1"), ("C", "2"), (END, "3"))
    with_pass = states(("A", "1"), ("B", "2"), ("C", "2x"), (END, "3x"))
    added, removed = find(without, with_pass), find(with_pass, without)
    assert added is not None
    assert removed is not None
    assert (added.name, added.note) == ("B", "B added")
    assert (removed.name, removed.note) == ("B", "B removed")


def test_added_passes_that_do_nothing_are_not_named() -> None:
    base = states(("A", "1"), ("D", "2"), (END, "3"))
    head = states(("A", "1"), ("B", "2"), ("C", "2"), ("D", "2x"), (END, "3x"))
    culprit = find(base, head)
    assert culprit is not None
    assert culprit.note == "C added"


def test_a_pass_at_another_place_is_moved() -> None:
    base = states(("B", "1"), ("A", "2"), ("C", "3"), (END, "4"))
    head = states(("A", "1"), ("B", "2x"), ("C", "3x"), (END, "4x"))
    culprit = find(base, head)
    assert culprit is not None
    assert "B moved" in culprit.note or "A moved" in culprit.note


def test_a_large_state_is_read_in_parts() -> None:
    rows = [f"%{n} = arith.addi %0, %{n} : i32" for n in range(60_000)]
    state = State.of("A", "a", None, "\n".join(rows).encode())
    parts = list(state.parts())
    assert len(parts) > 2
    assert "\n".join(parts) == state.text == "\n".join(rows)
    assert list(passes.operations(state)) == ["arith.addi"] * len(rows)


def test_other_options_of_the_same_pass_are_told() -> None:
    base = states(("A", "1"), (END, "2"), options="num-stages=2 x=1")
    head = states(("A", "1"), (END, "3"), options="num-stages=3 x=1")
    culprit = find(base, head)
    assert culprit is not None
    assert culprit.note == "other options: num-stages=2 → num-stages=3"


def test_llvms_log_becomes_states_without_debug_numbers() -> None:
    log = (
        "; *** IR Dump After SROAPass on k ***\n"
        "define void @k() #0 !dbg !4 {\n  ret void, !dbg !9 ; x\n}\n"
        "; *** IR Dump After PostOrderFunctionAttrsPass on (k) ***\n"
        "define void @k() #1 !dbg !5 {\n  ret void, !dbg !7\n}\n"
    )
    found = llvm_passes.read_log(lines(log))
    assert [state.name for state in found] == ["PostOrderFunctionAttrsPass", END]
    assert found[0].text == found[1].text == "define void @k() {\n  ret void\n}"
    assert llvm_passes.read_log(lines(log.replace("}\n; ***", "}\ndefine void @d() {\n}\n; ***"))) == []


INSERTED = "%a = op.a\nttg.barrier local\n%b = op.b"
LOWERED = "%a = llvm.a\nnvvm.barrier\n%b = llvm.b"


def synchronized_by(lowered_base: str, lowered_head: str) -> passes.Culprit | None:
    """Base synchronizes while it lowers, head in a pass of its own before that."""
    plain = "%a = op.a\n%b = op.b"
    base = states(("Lower", plain), ("Clean", lowered_base), (END, lowered_base))
    head = states(("Membar", plain), ("Lower", INSERTED), ("Clean", lowered_head), (END, lowered_head))
    return find(base, head)


def test_synchronization_that_moved_to_another_pass_is_not_blamed() -> None:
    found = synchronized_by(LOWERED, LOWERED.replace("llvm.b", "llvm.other"))
    assert found is not None
    assert found.name == "Lower"
    assert "Membar added: the barriers and fences that Lower inserts on the other side" in found.note
    assert (found.entering, found.leaving) == ((0, 1), (1, 2))


def test_synchronization_that_only_moved_is_healed() -> None:
    assert synchronized_by(LOWERED, LOWERED) is None


def test_synchronization_that_stays_another_is_blamed() -> None:
    found = synchronized_by(LOWERED, LOWERED + "\nnvvm.barrier")
    assert found is not None
    assert found.name == "Membar"


def test_a_pass_that_does_more_than_synchronize_is_blamed() -> None:
    plain = "%a = op.a\n%b = op.b"
    base = states(("Lower", plain), (END, LOWERED))
    head = states(("Membar", plain), ("Lower", INSERTED + "\n%c = op.c"), (END, LOWERED + "\n%c = llvm.c"))
    found = find(base, head)
    assert found is not None
    assert found.name == "Membar"
