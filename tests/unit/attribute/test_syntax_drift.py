"""Spellings that are the same operation, and neighbours that are not: `tests/golden/pairs/mlir-spellings.toml`."""

import tomllib
from pathlib import Path

import pytest

from irdiff.attribute.syntax_drift import translated, undone

GOLDEN = tomllib.loads((Path(__file__).parents[2] / "golden/pairs/mlir-spellings.toml").read_text())
CONSTANT = "%1 = llvm.mlir.constant(0 : i32) : i32"
USE = "llvm.return %1"


@pytest.mark.parametrize("row", GOLDEN["spelling"], ids=lambda row: row["old"])
def test_the_newer_spelling_is_the_older_one(row):
    assert undone(row["new"]) == undone(row["old"]) == row["old"]


def test_everything_else_stays():
    assert [undone(line) for line in GOLDEN["stays"]] == GOLDEN["stays"]


@pytest.mark.parametrize("row", GOLDEN["lowered"], ids=lambda row: row["base"][-1])
def test_what_is_the_same_in_llvms_dialects(row):
    assert (list(translated(row["base"])) == list(translated(row["head"]))) is row["same"]


def test_what_stays_of_llvms_dialects():
    pair = ["%1 = builtin.unrealized_conversion_cast %0, %2 : i32, i32 to vector<2xi32>"]
    assert len(list(translated(pair))) == 1
    kernel = "llvm.func @k(%0: i32 {tt.divisibility = 16 : i32}) {"
    module = ["module {", "module attribute ttg.shared = 0 : i32", kernel]
    assert list(translated(module)) == ["llvm.func @k(%0: i32) {"], "LLVM IR has no place for the others"
    assert list(translated(["%0 = llvm.load %1 {tt.x = 1}"])) == ["%0 = llvm.load %1 {tt.x = 1}"]
    two = ["llvm.func @a() {", CONSTANT, USE, "llvm.func @b(%1: i32) {", USE]
    assert list(translated(two))[-2:] == ["llvm.func @b(%0: i32) {", "llvm.return %0"]
