"""Which units of compilation hold code of an edited file."""

from __future__ import annotations

from irdiff.resolve.toolchains import counting

TEXTS = {
    "include/triton/Analysis/Axis.h": "#pragma once\n",
    "include/triton/Analysis/Uses.h": '#include "triton/Analysis/Axis.h"\n',
    "lib/Analysis/Axis.cpp": '#include "triton/Analysis/Axis.h"\n',
    "lib/Fence.cpp": "  #  include <triton/Analysis/Uses.h>\n",
    "lib/Near.cpp": '#include "../include/triton/Analysis/Axis.h"\n',
    "lib/Alone.cpp": '#include "llvm/ADT/Axis.h.inc"\n// #include "triton/Analysis/Axis.h"\n',
}


def test_a_header_is_followed_to_all_that_include_it() -> None:
    found = counting.units_with(["include/triton/Analysis/Axis.h"], TEXTS)
    assert found == ["lib/Analysis/Axis.cpp", "lib/Fence.cpp", "lib/Near.cpp"]


def test_a_unit_is_its_own() -> None:
    assert counting.units_with(["lib/Alone.cpp", "gone.cpp"], TEXTS) == ["lib/Alone.cpp"]
