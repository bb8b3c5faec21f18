"""Pairs that no compiler prints: what is judged of them does not depend on how a text is cut into blocks."""

from __future__ import annotations

from itertools import permutations

import pytest

from irdiff.normalize import canonicalize, equivalent, mlir


def _mlir(head: str, *code: str) -> str:
    lines = "\n".join(f"    {line}" for line in code)
    return f"{head}\nmodule {{\n  tt.func public @f(%p: i32) {{\n{lines}\n    tt.return\n  }}\n}}\n"


def _plain(*code: str) -> str:
    return _mlir("", *code)


PAIRS = {
    "location before an operation": ("ttir", _plain('loc("x") op.a'), _plain("op.a")),
    "comment made by a location that goes": (
        "ttir",
        _plain('op.a / loc("a")/ b'),
        _plain('op.a / loc("a")/ c'),
    ),
    "block comment made by a location that goes": (
        "ttir",
        _plain("op.a / loc(#loc1)* x", "op.b %q", "op.c */"),
        _plain("op.a / loc(#loc1)* x", "op.b %q2 q", "op.c */"),
    ),
    "name made by a location that goes": (
        "ttir",
        _plain("%ab = op.x", "op.b %a loc(#loc1)b"),
        _plain("%cd = op.x", "op.b %a loc(#loc1)b"),
    ),
    "alias made by a location that goes": (
        "ttir",
        _mlir("#blocked = #p", "op.b #bl loc(#loc1)ocked"),
        _mlir("#blocked = #q", "op.b #bl loc(#loc1)ocked"),
    ),
    "alias defined again in the code": (
        "ttir",
        _mlir("#y = #p", "op.a {x = #y}", "#y = #q"),
        _mlir("#y = #p", "op.a {x = #p}", "#y = #q"),
    ),
    "alias of an alias defined again in the code": (
        "ttir",
        _mlir("#x = #y\n#y = #p", "op.a {x = #x}", "#y = #q"),
        _mlir("#x = #p\n#y = #p", "op.a {x = #x}", "#y = #q"),
    ),
    "alias defined again in the first line": (
        "ttir",
        "#y = #p\nmodule {\n#y = #q\n op.a {x = #y}\n}\n",
        "#y = #p\nmodule {\n#y = #q\n op.a {x = #q}\n}\n",
    ),
    "alias defined again behind a location": (
        "ttir",
        _mlir("#y = #p", "op.a {x = #y}", 'loc("x")#y = #q'),
        _mlir("#y = #p", "op.a {x = #q}", 'loc("x")#y = #q'),
    ),
    "alias of itself defined again": (
        "ttir",
        _mlir("#y = #y", "op.a {x = #y}", "#y = #q"),
        _mlir("#y = #y", "op.a {x = #q}", "#y = #q"),
    ),
    "name in the line of the module": (
        "ttir",
        "module attributes {a = %a} {\n  op.b %a\n}\n",
        "module attributes {a = %a} {\n  op.b %c\n}\n",
    ),
    "attribute of an inner module": (
        "ttir",
        'module {\n  module attributes {"ttng.two-ctas" = false} {\n  }\n}\n',
        "module {\n  module {\n  }\n}\n",
    ),
    "attribute of one of two modules": (
        "ttir",
        'module attributes {"ttng.two-ctas" = false} {\n  op.a\n}\n'
        'module attributes {"ttng.two-ctas" = false} {\n}\n',
        'module {\n  op.a\n}\nmodule attributes {"ttng.two-ctas" = false} {\n}\n',
    ),
    "key given twice": (
        "ttir",
        _plain("%x = op.a", "%y = op.a", "op.b {k = %x, k = %y}"),
        _plain("%z = op.a", "%b = op.a", "op.b {k = %z, k = %b}"),
    ),
    "names of sibling regions": (
        "ttir",
        _plain("scf.if %p {", "  %u = op.a", "  op.b %u", "}", "scf.if %p {", "  %u = op.a", "}"),
        _plain("scf.if %p {", "  %u = op.a", "  op.b %u", "}", "scf.if %p {", "  %v = op.a", "}"),
    ),
}


@pytest.mark.parametrize("block", [1, 60, mlir.BLOCK])
@pytest.mark.parametrize(("ir", "base", "head"), PAIRS.values(), ids=PAIRS.keys())
def test_the_answer_is_that_of_the_canonical_forms(
    ir: str, base: str, head: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {text: canonicalize(ir, text) for text in (base, head)}
    monkeypatch.setattr(mlir, "BLOCK", block)
    for one, other in permutations((base, head)):
        assert canonicalize(ir, one) == whole[one]
        found = equivalent(ir, one, other)
        assert found.equal == (whole[one].lines == whole[other].lines)
        assert not found.equal or found.header_equal == (whole[one].header == whole[other].header)
