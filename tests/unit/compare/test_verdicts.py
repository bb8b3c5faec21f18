"""A verdict of sameness rests on evidence: without it no case is unchanged."""

import itertools
from dataclasses import replace
from operator import itemgetter

import pytest

from irdiff.capture import pairing
from irdiff.compare import cases, verdicts
from irdiff.compare.cases import MAX_REASON, reason
from irdiff.findings import Finding, FindingKind
from irdiff.ir.canonical import TextEquality
from irdiff.model import Artifact, Assembler, FailureKind, Sides, StageStatus, Verdict
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.runs import told

IDENTICAL, EQUIVALENT, CHANGED, ABSENT = StageStatus
GOLDEN = golden("verdicts")


def side(notes=(), assembler=None, **digests):
    made = {name: Artifact(stage=name, digest=digest, size_bytes=1) for name, digest in digests.items()}
    return runs.compiled(made, assembler=assembler, notes=tuple(notes))


def statuses(row):
    return {stage: StageStatus(status) for stage, status in row.items()}


def compare(stage, ours, theirs):
    assert ours != theirs, "equal bytes are not compared as texts"
    found = (Finding(FindingKind.NOT_NORMALIZED, stage),) * 2
    return TextEquality(equal=stage == "ttgir", header_equal=True, findings=found)


@pytest.mark.parametrize("row", GOLDEN["last_texts"], ids=str)
def test_what_there_is_to_compare_without_binaries(row):
    base, head, finding = side(**row["base"]), side(**row["head"]), row["finding"]
    assert verdicts.shared_binary(base, head) is None
    evidence = verdicts.of_last_texts(base, head, {"asm": EQUIVALENT, "amdgcn": EQUIVALENT})
    assert told(evidence.findings) == (finding,)
    assert evidence.same is (None if finding.startswith("not-compared") else True)


_PTXAS, _UNHASHED = (Assembler(digest=digest, flags=("-v",)) for digest in ("x", None))
_OTHERS = (Assembler(digest="y", flags=("-v",)), Assembler(digest="x", flags=("-v", "-O1")), _UNHASHED, None)


def test_the_same_assembler():
    assert verdicts.same_assembler(side(assembler=_PTXAS), side(assembler=_PTXAS))
    for one, other in [*((_PTXAS, other) for other in _OTHERS), (None, _PTXAS), (_UNHASHED, _UNHASHED)]:
        assert not verdicts.same_assembler(side(assembler=one), side(assembler=other))


@pytest.mark.parametrize("row", GOLDEN["machine_code"], ids=str)
def test_machine_code_has_the_last_word(row):
    stages, same = statuses(row["stages"]), row["same"]
    evidence = verdicts.of_binaries("cubin", stages, (), same=same)
    found = verdicts.judge(stages, evidence, launcher_args_differ=row["launcher_args_differ"])
    assert (found[0], found[2]) == (row["verdict"], row.get("first"))
    assert found[1]["sass"] is (EQUIVALENT if same else CHANGED)


@pytest.mark.parametrize("row", GOLDEN["not_compared"], ids=str)
def test_what_was_not_compared_is_not_the_same(row):
    stages, ends = statuses(row["stages"]), row["ends"]
    base, head = (side(**{end: "1"}) for end in ends) if ends else (side(), side())
    evidence = verdicts.of_last_texts(base, head, stages)
    found = verdicts.judge(stages, evidence, launcher_args_differ=False)
    assert (found[0], found[2]) == (Verdict.CHANGED, row["first"])
    assert {**stages, **statuses(row["machine"])} == found[1], "no machine stage is called identical"


STAGES = ("ttir", "ptx", "cubin", "amdgcn", "hsaco", "asm")


@pytest.mark.parametrize("wanted", [(), ("ttir",), ("ptx",), ("sass",), ("llir", "npuasm")])
def test_absence_is_never_sameness_whatever_stages_are_selected(wanted):
    """All sets of stages that two sides can have, each stage the same on both sides where both have it."""
    sets = [chosen for n in range(4) for chosen in itertools.combinations(STAGES, n)]
    for ours, theirs in itertools.product(sets, sets):
        base, head = (side(**dict.fromkeys(names, "1")) for names in (ours, theirs))
        if wanted:
            base, head = verdicts.with_stages(base, head, wanted), verdicts.with_stages(head, base, wanted)
        stages, _ = verdicts.compare_texts(base, head, compare)
        if binary := verdicts.shared_binary(base, head):
            assert binary in ours and binary in theirs
            continue
        evidence = verdicts.of_last_texts(base, head, stages)
        verdict, _, first = verdicts.judge(stages, evidence, launcher_args_differ=False)
        ends = (ours[-1:], theirs[-1:])
        assert (verdict is Verdict.UNCHANGED) == (
            ends[0] == ends[1] != () and ends[0][0] not in {"cubin", "hsaco"}
        )
        assert first is not None or verdict is Verdict.UNCHANGED


def test_selected_stages_keep_those_that_the_verdict_rests_on():
    """The text that an assembler reads among them: with it, other machine code may be the assembler's own."""
    base, head = side(ttir="1", llir="1", ptx="2", asm="1"), side(ttir="1", llir="1", asm="2", npuasm="1")
    assert list(verdicts.with_stages(base, head, ("llir",)).artifacts) == ["llir", "ptx", "asm"]
    assert list(verdicts.with_stages(head, base, ("llir",)).artifacts) == ["llir", "asm", "npuasm"]
    both = side(ttir="1", llir="1", amdgcn="1", hsaco="1")
    assert list(verdicts.with_stages(both, both, ("ttir",)).artifacts) == ["ttir", "amdgcn", "hsaco"]


TARGET = runs.target()
PAIR = runs.pair("a/b:c@sm_90")
COMPILES = Sides(base=None, head=None)


def shown(pair, found):
    """The case that is made of it."""
    return cases.compared(pair, found, cases.made(pair, COMPILES, found.verdict), None)


def failure(kind=FailureKind.ERROR, **of_failure):
    return runs.failed(kind, **of_failure).failure


@pytest.fixture
def pair(launch):
    return replace(PAIR, base=launch, head=launch)


@pytest.mark.parametrize("row", GOLDEN["failures"], ids=str)
def test_failures(pair, row):
    kinds = Sides(base=row.get("base"), head=row.get("head"))
    failures = kinds.map(lambda kind: failure(FailureKind(kind)) if kind else None)
    case = shown(pair, cases.failed(pair, failures))
    assert case.verdict == row["verdict"]
    assert (case.origin is not None) == (case.verdict in (Verdict.BROKEN, Verdict.FIXED))
    assert (case.error or "").count("it failed") == sum(kind is not None for kind in kinds)


def test_what_a_side_does_not_support(launch):
    new = replace(PAIR, head=launch, supported=Sides(base=False, head=True))
    case = shown(new, cases.one_sided(new, COMPILES, {}))
    assert (case.verdict, case.error) == (Verdict.FIXED, "base: the toolchain has no backend 'cuda'")
    assert cases.one_sided(new, replace(COMPILES, head=failure()), {}).verdict is Verdict.FAILING
    unknown = pairing.unsupported("a/b", TARGET)
    case = shown(unknown, cases.one_sided(unknown, COMPILES, {}))
    assert (case.id, case.verdict, case.kernel) == ("a/b:*@sm_90", Verdict.UNSUPPORTED, "")


@pytest.mark.parametrize("differs", ["", "grid", "order"])
def test_equal_inputs_are_compared_by_their_launch_alone(pair, launch, differs):
    other = replace(launch, launched=Artifact(stage="launch", digest="2" * 64, size_bytes=9))
    pair = replace(pair, head=other if differs == "grid" else launch, moved=differs == "order")
    case = shown(pair, cases.same_input(pair))
    assert case.verdict is (Verdict.CHANGED if differs else Verdict.UNCHANGED)
    assert case.stages.pop("launch") is (StageStatus.CHANGED if differs else StageStatus.IDENTICAL)
    assert {*case.stages.values()} == {StageStatus.ABSENT}
    assert (case.origin and case.origin.stage) == ("launch" if differs else None)
    order = ("called-in-another-order",) if differs == "order" else ()
    assert told(case.findings) == ("not-compiled:same-input", *order)
    assert case.artifacts.head["launch"] == pair.head.launched


@pytest.mark.parametrize("row", golden("reasons")["reason"], ids=itemgetter("expected"))
def test_the_reason_is_without_the_source_that_the_message_quotes(row):
    said = {"message": row["message"], "stderr": row["stderr"]}
    assert reason(failure(**said)) == row["expected"]
    assert reason(failure(FailureKind.CRASH, **said)) == row["message"][:MAX_REASON]
