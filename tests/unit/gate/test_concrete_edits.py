"""One accepted edit, and another of the same kind: one change group to read, two edits to accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff import gate
from irdiff.compare import cases, edit_digest
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.gate import acceptance
from irdiff.gate.outcome import Outcome
from irdiff.group import grouping
from irdiff.group.describer import CaseDescriber
from irdiff.model import Artifact, Case, Pair, Run, Sides, StageStatus, Verdict
from irdiff.store import Store
from tests.unit.findings import findings
from tests.unit.gate import policies
from tests.unit.gate.policies import CASE, TODAY
from tests.unit.no_llvm import no_llvm

DECISION = acceptance.Acceptance(owner="jane", reason="looked at it", on=TODAY, expires=TODAY)
CHANGED = StageStatus.CHANGED
POLICY = policies.of({"kind": "verdict", "verdicts": ["changed"], "action": "review"})


@dataclass(frozen=True, kw_only=True)
class Edits:
    """What base has, what was accepted at head, and what comes later."""

    stage: str
    base: str
    accepted: str
    later: str


_TTGIR = """\
#loc = loc(unknown)
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32}} {{
  tt.func public @k(%arg0: !tt.ptr<f32> loc("k.py":{line}:1), %arg1: i32 loc("k.py":{line}:9)) {{
    %c0_i32 = arith.constant 0 : i32 loc(#loc)
    {body}
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""
_AMDGCN = "\t.text\nk:\n\ts_load_dwordx2 s[0:1], s[4:5], 0x0\n{body}\n\ts_endpgm\n"
_LLIR = """\
define void @k(ptr addrspace(1) %p, float %v) {{
  {body}
  ret void
}}
"""
_PTX = """\
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(
	.param .u64 k_param_0
)
{{
	.reg .b32 	%r<9>;
	ld.param.u32 	%r1, [k_param_0];
{body}
	ret;
}}
"""


def _ttgir(*lines: str, line: int = 3) -> str:
    return _TTGIR.format(body="\n    ".join(f"{text} loc(#loc)" for text in lines), line=line)


def _mask(bound: int) -> str:
    return _ttgir(f"%c = arith.constant {bound} : i32", "%m = arith.cmpi slt, %arg1, %c : i32")


def _wait(number: int) -> str:
    return _ttgir(f"ttg.async_wait {{num = {number} : i32}}")


def _vmcnt(number: int) -> str:
    return _AMDGCN.format(body=f"\ts_waitcnt vmcnt({number})")


def _atomic(ordering: str) -> str:
    return _LLIR.format(body=f"%o = atomicrmw fadd ptr addrspace(1) %p, float %v {ordering}, align 4")


def _fence(words: str) -> str:
    return _PTX.format(body=f"\tfence.{words};")


def _accumulator(kind: str) -> str:
    return _ttgir(
        f"%z = arith.constant dense<0.0> : tensor<16x16x{kind}>",
        f"%d = arith.negf %z : tensor<16x16x{kind}>",
    )


def _barrier(before: int) -> str:
    lines = [f"%v{number} = arith.addi %arg1, %arg1 : i32" for number in range(4)]
    return _ttgir(*lines[:before], "gpu.barrier", *lines[before:])


EDITS = {
    "mask bound": Edits(stage="ttgir", base=_mask(100), accepted=_mask(96), later=_mask(120)),
    "async_wait": Edits(stage="ttgir", base=_wait(2), accepted=_wait(1), later=_wait(9)),
    "vmcnt": Edits(stage="amdgcn", base=_vmcnt(0), accepted=_vmcnt(1), later=_vmcnt(9)),
    "memory ordering": Edits(
        stage="llir", base=_atomic("acq_rel"), accepted=_atomic("release"), later=_atomic("monotonic")
    ),
    "memory scope": Edits(
        stage="llir",
        base=_atomic("acq_rel"),
        accepted=_atomic('syncscope("agent") acq_rel'),
        later=_atomic('syncscope("block") acq_rel'),
    ),
    "accumulator type": Edits(
        stage="ttgir", base=_accumulator("f32"), accepted=_accumulator("f16"), later=_accumulator("bf16")
    ),
    "barrier moved": Edits(stage="ttgir", base=_barrier(0), accepted=_barrier(2), later=_barrier(4)),
}


def _pair(build: Any) -> Pair:
    launch, both = build.launch(CASE), Sides(base=True, head=True)
    return Pair(
        id=CASE,
        launch_id=launch.id,
        target=build.target(),
        base=launch,
        head=launch,
        supported=both,
        moved=False,
    )


class Compared:
    """Runs of one case between two texts, as a comparison files them."""

    def __init__(self, build: Any, store: Store) -> None:
        self.build = build
        self.store = store
        self.comparator = ArtifactComparator(store, no_llvm)

    def run(self, stage: str, base: str, head: str) -> Run:
        case, pair = self.case({stage: base}, {stage: head})
        describer = CaseDescriber(self.comparator)
        groups, group_of = grouping.group([case], lambda c: describer.describe(c, None))
        case = replace(case, group=group_of[case.id], edit=edit_digest.of_case(case, pair, self.comparator))
        return self.build.run(case, groups=groups)

    def case(
        self, base: Mapping[str, str | bytes], head: Mapping[str, str | bytes], **changes: Any
    ) -> tuple[Case, Pair]:
        changed = [name for name in base if base[name] != head.get(name)]
        statuses = {name: CHANGED if name in changed else StageStatus.IDENTICAL for name in base}
        statuses["sass"] = statuses.pop("cubin", StageStatus.IDENTICAL)
        case = replace(
            self.build.case(CASE, Verdict.CHANGED),
            origin=cases.origin(changed[0]) if changed else None,
            stages=statuses,
            artifacts=Sides(base=self._artifacts(base), head=self._artifacts(head)),
            **changes,
        )
        return case, _pair(self.build)

    def _artifacts(self, contents: Mapping[str, str | bytes]) -> dict[str, Artifact]:
        rows = {}
        for name, content in contents.items():
            data = content.encode() if isinstance(content, str) else content
            rows[name] = Artifact(stage=name, digest=self.store.put(data), size_bytes=len(data))
        return rows

    def digest(
        self, base: Mapping[str, str | bytes], head: Mapping[str, str | bytes], **changes: Any
    ) -> str | None:
        return edit_digest.of_case(*self.case(base, head, **changes), self.comparator)


@pytest.fixture
def compared(build: Any, tmp_path: Path) -> Compared:
    return Compared(build, Store(tmp_path / "store"))


def _gate(run: Run, accepted: tuple[acceptance.Accepted, ...]) -> Outcome:
    return gate.evaluate(run, POLICY, accepted=accepted, today=TODAY)


@pytest.mark.parametrize("name", EDITS)
def test_accepting_one_edit_does_not_accept_another_of_its_group(name: str, compared: Compared) -> None:
    edits = EDITS[name]
    seen = compared.run(edits.stage, edits.base, edits.accepted)
    later = compared.run(edits.stage, edits.base, edits.later)
    assert seen.groups[0].id == later.groups[0].id, "one group: the edits differ in what it abstracts"
    accepted = acceptance.accept(seen, (seen.groups[0].id,), DECISION)
    assert _gate(seen, accepted).passed
    outcome = _gate(later, accepted)
    assert not outcome.passed
    assert outcome.rules[0].findings[0].not_accepted.startswith("the edit is another: jane accepted")


def test_the_way_back_is_another_edit(compared: Compared) -> None:
    seen = compared.run("ttgir", _wait(2), _wait(1))
    back = compared.run("ttgir", _wait(1), _wait(2))
    assert not _gate(back, acceptance.accept(seen, (seen.cases[0].id,), DECISION)).passed


def test_a_shifted_line_is_no_other_edit(compared: Compared) -> None:
    base, head = _mask(100), _mask(96)
    shifted = [text.replace('"k.py":3:', '"k.py":40:').replace("%c ", "%bound ") for text in (base, head)]
    shifted = [text.replace("%c :", "%bound :") for text in shifted]
    assert shifted != [base, head]
    assert compared.digest({"ttgir": base}, {"ttgir": head}) == compared.digest(
        {"ttgir": shifted[0]}, {"ttgir": shifted[1]}
    )


def test_every_stage_and_both_sides_count(compared: Compared) -> None:
    base, head = {"ttir": _mask(1), "ttgir": _mask(100)}, {"ttir": _mask(1), "ttgir": _mask(96)}
    rows = [
        (base, head),
        ({**base, "ttir": _mask(2)}, {**head, "ttir": _mask(2)}),
        ({**base, "ttgir": _mask(101)}, head),
        (base, {**head, "ttgir": _mask(97)}),
    ]
    assert len({compared.digest(*row) for row in rows}) == len(rows)


def test_machine_code_that_differs_counts(compared: Compared) -> None:
    texts = {"ptx": _fence("sc.sys")}
    codes = [compared.digest({**texts, "cubin": b"one"}, {**texts, "cubin": code}) for code in (b"two", b"3")]
    assert len(set(codes)) == 2


def test_machine_code_that_is_the_same_does_not_have_to_be_there(compared: Compared) -> None:
    base, head = {"ttgir": _mask(100)}, {"ttgir": _mask(96)}
    made = compared.digest({**base, "cubin": b"one"}, {**head, "cubin": b"one"})
    assert made == compared.digest(base, head), "by rule it is not made"


def test_what_the_launcher_is_told_counts_with_its_values(compared: Compared) -> None:
    same = {"ttgir": _mask(100)}
    digests = {
        compared.digest(
            same,
            same,
            findings=findings("launch-differs:shared,num_warps"),
            metadata=Sides(base={"shared": 0, "num_warps": 4}, head={"shared": shared, "num_warps": 8}),
        )
        for shared in (1024, 2048, 4096)
    }
    assert len(digests) == 3


def test_what_the_launch_has_differently_counts(compared: Compared) -> None:
    case, pair = compared.case({"ttgir": _mask(100)}, {"ttgir": _mask(96)})
    head = pair.head
    changes: list[dict[str, Any]] = [
        {},
        {"grid": (2, 1, 1)},
        {"grid": (3, 1, 1)},
        {"constexprs": {"BLOCK": "64"}},
        {"attributes": {"x": "tt.divisibility=16"}},
        {"options": {"num_stages": "3"}},
    ]
    launches = [replace(head, **change) for change in changes]  # type: ignore[type-var]
    digests = {
        edit_digest.of_case(case, replace(pair, head=launch), compared.comparator) for launch in launches
    }
    assert len(digests) == len(changes)


def test_a_text_that_cannot_be_read_counts_with_its_bytes(compared: Compared) -> None:
    damaged = [{"ttgir": f"nothing that is IR, number {number}"} for number in range(2)]
    digests = {compared.digest(damaged[0], damaged[0]), compared.digest(damaged[0], damaged[1])}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("message", "same"),
    [
        ("at 0x7ffd00aa10: failed in /tmp/b/kernel.ttgir", True),
        ("at 0x7ffd00aa10: failed in /tmp/b/other.ttgir", False),
        ("at 0x7ffd00aa10: 4096 bytes too many", False),
    ],
)
def test_how_a_side_failed_counts_without_addresses_and_folders(
    build: Any, tmp_path: Path, message: str, same: bool
) -> None:
    first = "at 0x55d01c2310: failed in /home/a/kernel.ttgir"
    case = build.case(CASE, Verdict.BROKEN)
    digests = [
        edit_digest.of_case(
            replace(case, failures=replace(case.failures, head=replace(case.failures.head, message=text))),
            _pair(build),
            ArtifactComparator(Store(tmp_path), no_llvm),
        )
        for text in (first, message)
    ]
    assert (digests[0] == digests[1]) is same


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.ADDED, Verdict.UNSUPPORTED])
def test_what_is_in_no_group_has_no_edit(build: Any, compared: Compared, verdict: Verdict) -> None:
    _, pair = compared.case({"ttgir": _mask(1)}, {"ttgir": _mask(1)})
    assert edit_digest.of_case(build.case(CASE, verdict), pair, compared.comparator) is None
