"""What ranks a case: of the rows of `golden/severity.toml` what `golden/severity.txt` has."""

import itertools

from irdiff.group import severity
from irdiff.group.severity import Severity
from irdiff.model import Bits, EffectClass, Effects, Verdict
from tests.unit import runs
from tests.unit.golden import golden, recorded
from tests.unit.group.edits_of import edit, lines


def held(row):
    """What holds, how far, and what it adds up to. Where a row names no effects it is proved to do the same."""
    base, head = row.get("facts", ({}, {}))
    case = runs.case(
        "matmul/tma:fp16@sm_90",
        Verdict(row.get("verdict", "changed")),
        base=base,
        head=head,
        findings=runs.findings(*row.get("findings", ())),
        nondeterministic=tuple(row.get("nondeterministic", ())),
    )
    of = edit(row["ir"], *lines(row["lines"])) if "ir" in row else None
    kind, *said = row.get("effects", ["motion"]) or [""]
    effects = (
        Effects(kind=EffectClass(kind), stage="ptx", said=tuple(said), bits=Bits.UNKNOWN) if kind else None
    )
    measures = ", ".join(f"{name} {far:.6g}" for name, far in severity.measures(case, of, effects).items())
    ranked = severity.rank(case, of, effects)
    return f"{measures or 'nothing'}: {ranked.severity}, {ranked.score:.6g}, {'; '.join(ranked.reasons)}"


def test_what_ranks_each_case():
    rows = golden("severity")["case"]
    recorded("severity.txt", "".join(f"{row['why']}: {held(row)}\n" for row in rows))


def test_lower_classes_weigh_less():
    weights = {}
    for row in severity.TABLE:
        weights.setdefault(row.severity, []).append(row.weight)
    ordered = [weights[name] for name in Severity if name in weights]
    assert list(weights) == [name for name in Severity if name in weights]
    assert all(min(above) > max(below) for above, below in itertools.pairwise(ordered))
