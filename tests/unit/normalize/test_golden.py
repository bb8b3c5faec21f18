"""Every rule: texts that must become equal, and nearest neighbours that must stay different.

A case is a folder `tests/golden/normalize/IR/RULE` with `base.IR` and any number of `equal-WHY.IR` and
`differ-WHY.IR`. Adding one needs no Python.
"""

from pathlib import Path

import pytest

from irdiff.normalize import canonicalize, equivalent

GOLDEN = Path(__file__).parents[2] / "golden" / "normalize"
NEIGHBOURS = sorted(path for path in GOLDEN.glob("*/*/*") if not path.name.startswith("base."))
BASES = sorted(GOLDEN.glob("*/*/base.*"))


def _name(path):
    return str(path.relative_to(GOLDEN))


@pytest.mark.parametrize("path", NEIGHBOURS, ids=_name)
def test_neighbour(path):
    ir = path.suffix[1:]
    base, other = path.with_name(f"base.{ir}").read_text(), path.read_text()
    wanted = path.name.startswith("equal-")
    assert (canonicalize(ir, base).lines == canonicalize(ir, other).lines) == wanted
    assert equivalent(ir, base, other).equal == wanted
    assert equivalent(ir, other, base).equal == wanted


@pytest.mark.parametrize("path", BASES, ids=_name)
def test_each_rule_has_both_kinds_of_neighbour(path):
    names = {sibling.name.split("-")[0] for sibling in path.parent.iterdir() if sibling != path}
    assert names == {"equal", "differ"}


@pytest.mark.parametrize("path", [*BASES, *NEIGHBOURS], ids=_name)
def test_normalizing_twice_changes_nothing(path):
    ir, text = path.suffix[1:], path.read_text()
    canonical = canonicalize(ir, text)
    assert canonicalize(ir, canonical.text).lines == canonical.lines
    assert len(canonicalize(ir, text).numbers) == len(canonical.lines)
