"""Blocks that go, and blocks that must stay."""

from __future__ import annotations

from irdiff.attribute import lit_flow

LOOP = """module {
  tt.func public @k(%p: i1, %n: i32) {
    %c = arith.constant 1 : i32
    cf.cond_br %p, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    tt.return
  ^bb2:  // pred: ^bb0
    cf.br ^bb3(%c, %n : i32, i32)
  ^bb3(%0: i32, %1: i32):  // 2 preds: ^bb2, ^bb4
    cf.cond_br %p, ^bb4, ^bb5
  ^bb4:  // pred: ^bb3
    %x = "tt.reduce"(%1) ({
    ^bb0(%a: f32, %b: f32):
      tt.reduce.return %a : f32
    }) : (i32) -> i32
    cf.br ^bb3(%x, %0 : i32, i32)
  ^bb5:  // pred: ^bb3
    tt.print %0, %1
    tt.return
  }
}""".splitlines()


def test_an_early_return_goes_and_its_block_is_joined() -> None:
    texts = ["\n".join(text) for text in lit_flow.straightened(LOOP)]
    assert len(texts) == 4
    always = next(text for text in texts if "^bb1" not in text and "^bb4" in text)
    assert "cf.cond_br %p, ^bb4, ^bb5" in always
    assert (
        "%c = arith.constant 1 : i32\n    cf.br ^bb3(%c, %n : i32, i32)\n  ^bb3(%0: i32, %1: i32):\n"
        in always
    )
    assert "    ^bb0(%a: f32, %b: f32):" in always, "blocks of inner regions are no blocks of the function"


def test_a_loop_that_is_left_at_once_is_straight_and_its_arguments_are_what_it_was_given() -> None:
    texts = ["\n".join(text) for text in lit_flow.straightened(LOOP)]
    without_loop = next(text for text in texts if "^bb4" not in text and "^bb1" in text)
    assert "tt.print %c, %n" in without_loop
    assert "tt.reduce" not in without_loop
    smallest = lit_flow.straightened(without_loop.splitlines())
    assert [len(text) for text in smallest] == [6, 7]
    assert smallest[1][2:5] == ["    %c = arith.constant 1 : i32", "    tt.print %c, %n", "    tt.return"]


def test_a_block_with_two_ways_in_stays() -> None:
    kept = lit_flow.without_idle_blocks(LOOP)
    assert "  ^bb3(%0: i32, %1: i32):" in kept
    assert lit_flow.without_idle_blocks(kept) == kept


def test_text_without_a_function_stays() -> None:
    assert lit_flow.without_idle_blocks(["module {", "}"]) == ["module {", "}"]
    assert lit_flow.straightened(["module {", "}"]) == []
