"""Edited sources lead to the passes that their own text defines."""

from __future__ import annotations

import pytest

from irdiff.model import Sides
from irdiff.resolve.toolchains import edited_passes
from irdiff.resolve.toolchains.checkout import Checkout
from tests.unit.resolve.toolchains.trees import CheckoutOf

TABLE = """\
def TritonGPUCoalesce : Pass<"tritongpu-coalesce", "mlir::ModuleOp"> {}
def TritonGPUPipeline : Pass<"tritongpu-pipeline", "mlir::ModuleOp"> {}
"""
TEXTS = {
    "setup.py": "",
    "python/triton/__init__.py": "",
    "include/Passes.td": TABLE,
    "include/Axis.h": "struct Axis;",
    "lib/Coalesce.cpp": "struct P : impl::TritonGPUCoalesceBase<P> {};",
    "lib/Driver.cpp": "struct D : impl::UnknownBase<D> {};",
    "lib/Gone.cpp": "int gone;",
}


@pytest.fixture
def edited(checkout_of: CheckoutOf) -> Sides[Checkout]:
    head = {path: f"{text}// edited" for path, text in TEXTS.items() if path != "lib/Gone.cpp"}
    return Sides(base=checkout_of(TEXTS), head=checkout_of(head))


def test_a_source_has_the_passes_that_it_defines(edited: Sides[Checkout]) -> None:
    assert edited_passes.passes_of_edits(edited) == {
        "include/Axis.h": [],
        "include/Passes.td": ["TritonGPUCoalesce", "TritonGPUPipeline"],
        "lib/Coalesce.cpp": ["TritonGPUCoalesce"],
        "lib/Driver.cpp": [],
        "lib/Gone.cpp": [],
    }


def test_equal_trees_have_no_edited_source(checkout_of: CheckoutOf) -> None:
    assert edited_passes.passes_of_edits(Sides(base=checkout_of(TEXTS), head=checkout_of(TEXTS))) == {}
