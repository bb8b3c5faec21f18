"""One accepted edit, and another of the same kind: one change group to read, two edits to accept."""

from dataclasses import replace

import pytest

from irdiff import gate
from irdiff.attribute.edit_reader import EditReader
from irdiff.compare import cases, edit_digest
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.gate import accepting
from irdiff.group.describer import CaseDescriber
from irdiff.model import Artifact, Sides, StageStatus, Verdict
from irdiff.store import Store
from tests.unit import runs
from tests.unit.compiled import no_llvm
from tests.unit.gate import policies
from tests.unit.gate.policies import CASE, TODAY
from tests.unit.runs import case, findings, launch, run

DECISION = accepting.Decision(owner="jane", reason="looked at it", issue="", on=TODAY, expires=TODAY)
POLICY = policies.of({"kind": "verdict", "verdicts": ["changed"], "action": "review"})


def ttgir(*lines):
    body = "".join(f"    {line} loc(#loc)\n" for line in lines)
    return (
        '#loc = loc(unknown)\nmodule attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {\n'
        '  tt.func public @k(%arg0: !tt.ptr<f32> loc("k.py":3:1), %arg1: i32 loc("k.py":3:9)) {\n'
        f"{body}    tt.return loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n"
    )


def mask(bound):
    return ttgir(f"%c = arith.constant {bound} : i32", "%m = arith.cmpi slt, %arg1, %c : i32")


def vmcnt(number):
    return f"\t.text\nk:\n\ts_load_dwordx2 s[0:1], s[4:5], 0x0\n\ts_waitcnt vmcnt({number})\n\ts_endpgm\n"


def atomic(ordering):
    operation = f"%o = atomicrmw fadd ptr addrspace(1) %p, float %v {ordering}, align 4"
    return f"define void @k(ptr addrspace(1) %p, float %v) {{\n  {operation}\n  ret void\n}}\n"


def accumulator(kind):
    tensor = f"tensor<16x16x{kind}>"
    return ttgir(f"%z = arith.constant dense<0.0> : {tensor}", f"%d = arith.negf %z : {tensor}")


def barrier(before):
    lines = [f"%v{number} = arith.addi %arg1, %arg1 : i32" for number in range(4)]
    return ttgir(*lines[:before], "gpu.barrier", *lines[before:])


PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tfence.sc.sys;\n\tret;\n}\n"
EDITS = {
    "mask bound": ("ttgir", [*map(mask, (100, 96, 120))]),
    "vmcnt": ("amdgcn", [*map(vmcnt, (0, 1, 9))]),
    "memory ordering": ("llir", [*map(atomic, ("acq_rel", "release", "monotonic"))]),
    "accumulator type": ("ttgir", [*map(accumulator, ("f32", "f16", "bf16"))]),
    "barrier moved": ("ttgir", [*map(barrier, (0, 2, 4))]),
}
"""The stage, and the texts of base, of what was accepted at head, and of what comes later."""


@pytest.fixture
def comparator(tmp_path):
    return ArtifactComparator(Store(tmp_path / "store"), no_llvm)


def pair(**of_head):
    base = launch(CASE)
    return runs.pair(CASE, base, replace(base, **of_head))


def changed(comparator, base, head, **changes):
    """A case with these texts, as a comparison files it."""
    differ = [stage for stage in base if base[stage] != head.get(stage)]
    stages = {stage: StageStatus.CHANGED if stage in differ else StageStatus.IDENTICAL for stage in base}
    stages["sass"] = stages.pop("cubin", StageStatus.IDENTICAL)
    artifacts = Sides(base=base, head=head).map(lambda texts: runs.kept(comparator.store, texts))
    changes |= {
        "origin": cases.origin(differ[0]) if differ else None,
        "stages": stages,
        "artifacts": artifacts,
    }
    made = case(CASE, Verdict.CHANGED, **changes)
    return replace(made, edit=edit_digest.of_case(made, made, pair(), comparator))


def run_of(comparator, stage, base, head):
    made = changed(comparator, {stage: base}, {stage: head})
    described = CaseDescriber(EditReader(comparator)).describe(made, None)
    return run(made, groups=runs.change_groups([(made, described)]))


def gated(found, accepted):
    return gate.evaluate(found, POLICY, accepted=accepted, today=TODAY)


@pytest.mark.parametrize("name", EDITS)
def test_accepting_an_edit_accepts_neither_another_of_its_group_nor_the_way_back(name, comparator):
    stage, (base, seen_text, later_text) = EDITS[name]
    seen, later = (run_of(comparator, stage, base, text) for text in (seen_text, later_text))
    assert seen.groups[0].id == later.groups[0].id, "one group: the edits differ in what it abstracts"
    accepted = accepting.accept_groups(seen, gated(seen, ()), (seen.groups[0].id,), DECISION)
    assert gated(seen, accepted).passed
    outcome = gated(later, accepted)
    assert not outcome.passed
    assert outcome.rules[0].findings[0].not_accepted.partition(" changes in another way ")[1]
    assert not gated(run_of(comparator, stage, seen_text, base), accepted).passed


def test_what_cannot_reach_the_code_is_no_other_edit(comparator):
    texts = [mask(100), mask(96)]
    shifted = [text.replace('"k.py":3:', '"k.py":40:').replace("%c ", "%bound ") for text in texts]
    base, head = ({"ttgir": text} for text in texts)
    same = [
        changed(comparator, base, head),
        changed(comparator, *({"ttgir": text} for text in shifted)),
        changed(comparator, {**base, "cubin": b"one"}, {**head, "cubin": b"one"}),  # by rule it is not made
    ]
    assert texts != shifted
    assert len({row.edit for row in same}) == 1


def test_every_stage_both_sides_machine_code_launcher_and_unreadable_bytes_count(comparator):
    base, head = {"ttir": mask(1), "ttgir": mask(100)}, {"ttir": mask(1), "ttgir": mask(96)}
    odd = {"ttgir": "nothing that is IR"}
    texts = [
        (base, head),
        ({**base, "ttir": mask(2)}, {**head, "ttir": mask(2)}),
        ({**base, "ttgir": mask(101)}, head),
        (base, {**head, "ttgir": mask(97)}),
        *(({"ptx": PTX, "cubin": b"one"}, {"ptx": PTX, "cubin": code}) for code in (b"two", b"3")),
        (odd, odd),
        (odd, {"ttgir": "nothing that is IR, either"}),
    ]
    rows = [changed(comparator, *both) for both in texts]
    for shared in (1024, 2048, 4096):
        metadata = Sides(base={"shared": 0, "num_warps": 4}, head={"shared": shared, "num_warps": 8})
        differs = findings("launch-differs:shared,num_warps")
        rows.append(changed(comparator, base, base, findings=differs, metadata=metadata))
    assert len({row.edit for row in rows}) == len(rows)


def test_what_the_launch_has_differently_counts(comparator):
    changes = [{}, {"grid": (2, 1, 1)}, {"grid": (3, 1, 1)}, {"options": {"num_stages": "3"}}]
    changes += [{"constexprs": {"BLOCK": "64"}}, {"attributes": {"x": "tt.divisibility=16"}}]
    changes += [{"launched": Artifact(stage="launch", digest="1" * 64, size_bytes=1)}]
    row = changed(comparator, {"ttgir": mask(100)}, {"ttgir": mask(96)})
    assert len({edit_digest.of_case(row, row, pair(**change), comparator) for change in changes}) == len(
        changes
    )


def test_how_a_side_failed_counts_without_addresses_and_folders(comparator):
    broken = case(CASE, Verdict.BROKEN)

    def edit(message):
        failure = replace(broken.failures.head, message=message)
        failed = replace(broken, failures=replace(broken.failures, head=failure))
        return edit_digest.of_case(failed, failed, pair(), comparator)

    first = edit("at 0x55d01c2310: failed in /home/a/kernel.ttgir")
    assert first == edit("at 0x7ffd00aa10: failed in /tmp/b/kernel.ttgir")
    assert first != edit("at 0x7ffd00aa10: failed in /tmp/b/other.ttgir")
    assert first != edit("at 0x7ffd00aa10: 4096 bytes too many")
    for verdict in (Verdict.UNCHANGED, Verdict.ADDED, Verdict.UNSUPPORTED):
        alone = case(CASE, verdict)
        assert edit_digest.of_case(alone, alone, pair(), comparator) is None, "it is in no group"
