"""One accepted edit, and another of the same kind: one change group to read, two edits to accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
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
POLICY = policies.of({"kind": "verdict", "verdicts": ["changed"], "action": "review"})
SAME, CHANGED = StageStatus.IDENTICAL, StageStatus.CHANGED
Texts = Mapping[str, str | bytes]

_TTGIR = """\
#loc = loc(unknown)
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32}} {{
  tt.func public @k(%arg0: !tt.ptr<f32> loc("k.py":3:1), %arg1: i32 loc("k.py":3:9)) {{
    %c0_i32 = arith.constant 0 : i32 loc(#loc)
    {}
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""
_ADD = "%v{} = arith.addi %arg1, %arg1 : i32"


def _ttgir(*lines: str) -> str:
    return _TTGIR.format("\n    ".join(f"{text} loc(#loc)" for text in lines))


def _mask(bound: int) -> str:
    return _ttgir(f"%c = arith.constant {bound} : i32", "%m = arith.cmpi slt, %arg1, %c : i32")


def _wait(number: int) -> str:
    return _ttgir(f"ttg.async_wait {{num = {number} : i32}}")


def _vmcnt(number: int) -> str:
    return f"\t.text\nk:\n\ts_load_dwordx2 s[0:1], s[4:5], 0x0\n\ts_waitcnt vmcnt({number})\n\ts_endpgm\n"


def _atomic(ordering: str) -> str:
    atomic = f"%o = atomicrmw fadd ptr addrspace(1) %p, float %v {ordering}, align 4"
    return f"define void @k(ptr addrspace(1) %p, float %v) {{\n  {atomic}\n  ret void\n}}\n"


def _accumulator(kind: str) -> str:
    tensor = f"tensor<16x16x{kind}>"
    return _ttgir(f"%z = arith.constant dense<0.0> : {tensor}", f"%d = arith.negf %z : {tensor}")


def _barrier(before: int) -> str:
    lines = [_ADD.format(number) for number in range(4)]
    return _ttgir(*lines[:before], "gpu.barrier", *lines[before:])


_PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tfence.sc.sys;\n\tret;\n}\n"
EDITS: dict[str, tuple[str, Callable[[Any], str], tuple[Any, Any, Any]]] = {
    "mask bound": ("ttgir", _mask, (100, 96, 120)),
    "async_wait": ("ttgir", _wait, (2, 1, 9)),
    "vmcnt": ("amdgcn", _vmcnt, (0, 1, 9)),
    "memory ordering": ("llir", _atomic, ("acq_rel", "release", "monotonic")),
    "memory scope": (
        "llir",
        _atomic,
        ("acq_rel", 'syncscope("agent") acq_rel', 'syncscope("block") acq_rel'),
    ),
    "accumulator type": ("ttgir", _accumulator, ("f32", "f16", "bf16")),
    "barrier moved": ("ttgir", _barrier, (0, 2, 4)),
}
"""The stage, how its text is made, and what base has, what was accepted at head, and what comes later."""


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

    def case(self, base: Texts, head: Texts, **changes: Any) -> tuple[Case, Pair]:
        changed = [name for name in base if base[name] != head.get(name)]
        statuses = {name: CHANGED if name in changed else SAME for name in base}
        statuses["sass"] = statuses.pop("cubin", SAME)
        case = replace(
            self.build.case(CASE, Verdict.CHANGED),
            origin=cases.origin(changed[0]) if changed else None,
            stages=statuses,
            artifacts=Sides(base=base, head=head).map(self._artifacts),
            **changes,
        )
        return case, _pair(self.build)

    def _artifacts(self, contents: Texts) -> dict[str, Artifact]:
        found = {name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
        return {
            name: Artifact(stage=name, digest=self.store.put(data), size_bytes=len(data))
            for name, data in found.items()
        }

    def digest(self, base: Texts, head: Texts, **changes: Any) -> str | None:
        return edit_digest.of_case(*self.case(base, head, **changes), self.comparator)


@pytest.fixture
def compared(build: Any, tmp_path: Path) -> Compared:
    return Compared(build, Store(tmp_path / "store"))


def _gate(run: Run, accepted: tuple[acceptance.Accepted, ...]) -> Outcome:
    return gate.evaluate(run, POLICY, accepted=accepted, today=TODAY)


@pytest.mark.parametrize("name", EDITS)
def test_accepting_one_edit_does_not_accept_another_of_its_group(name: str, compared: Compared) -> None:
    stage, make, values = EDITS[name]
    base, accepted_text, later_text = map(make, values)
    seen, later = compared.run(stage, base, accepted_text), compared.run(stage, base, later_text)
    assert seen.groups[0].id == later.groups[0].id, "one group: the edits differ in what it abstracts"
    accepted = acceptance.accept(seen, (seen.groups[0].id,), DECISION)
    assert _gate(seen, accepted).passed
    outcome = _gate(later, accepted)
    assert not outcome.passed
    assert outcome.rules[0].findings[0].not_accepted.startswith("the edit is another: jane accepted")


def test_the_way_back_is_another_edit(compared: Compared) -> None:
    seen, back = compared.run("ttgir", _wait(2), _wait(1)), compared.run("ttgir", _wait(1), _wait(2))
    assert not _gate(back, acceptance.accept(seen, (seen.cases[0].id,), DECISION)).passed


def test_a_shifted_line_and_a_renamed_value_are_no_other_edit(compared: Compared) -> None:
    texts = [_mask(100), _mask(96)]
    shifted = [text.replace('"k.py":3:', '"k.py":40:').replace("%c ", "%bound ") for text in texts]
    digests = [compared.digest({"ttgir": base}, {"ttgir": head}) for base, head in (texts, shifted)]
    assert texts != shifted
    assert digests[0] == digests[1]


def test_every_stage_both_sides_and_machine_code_count(compared: Compared) -> None:
    base, head = {"ttir": _mask(1), "ttgir": _mask(100)}, {"ttir": _mask(1), "ttgir": _mask(96)}
    rows: list[tuple[Texts, Texts]] = [
        (base, head),
        ({**base, "ttir": _mask(2)}, {**head, "ttir": _mask(2)}),
        ({**base, "ttgir": _mask(101)}, head),
        (base, {**head, "ttgir": _mask(97)}),
        *(({"ptx": _PTX, "cubin": b"one"}, {"ptx": _PTX, "cubin": code}) for code in (b"two", b"3")),
    ]
    assert len({compared.digest(*row) for row in rows}) == len(rows)


def test_machine_code_that_is_the_same_does_not_have_to_be_there(compared: Compared) -> None:
    base, head = {"ttgir": _mask(100)}, {"ttgir": _mask(96)}
    made = compared.digest({**base, "cubin": b"one"}, {**head, "cubin": b"one"})
    assert made == compared.digest(base, head), "by rule it is not made"


def test_what_the_launcher_is_handed_counts_with_its_values(compared: Compared) -> None:
    same = {"ttgir": _mask(100)}
    found = findings("launch-differs:shared,num_warps")
    digests = set()
    for shared in (1024, 2048, 4096):
        metadata = Sides(base={"shared": 0, "num_warps": 4}, head={"shared": shared, "num_warps": 8})
        digests.add(compared.digest(same, same, findings=found, metadata=metadata))
    assert len(digests) == 3


def test_what_the_launch_has_differently_counts(compared: Compared) -> None:
    case, pair = compared.case({"ttgir": _mask(100)}, {"ttgir": _mask(96)})
    changes: list[dict[str, Any]] = [
        {},
        {"grid": (2, 1, 1)},
        {"grid": (3, 1, 1)},
        {"constexprs": {"BLOCK": "64"}},
        {"attributes": {"x": "tt.divisibility=16"}},
        {"options": {"num_stages": "3"}},
    ]
    launches = [compared.build.launch(CASE, **change) for change in changes]
    pairs = [replace(pair, head=launch) for launch in launches]
    assert len({edit_digest.of_case(case, row, compared.comparator) for row in pairs}) == len(changes)


def test_a_text_that_cannot_be_read_counts_with_its_bytes(compared: Compared) -> None:
    one, other = ({"ttgir": f"nothing that is IR, number {number}"} for number in range(2))
    assert compared.digest(one, one) != compared.digest(one, other)


@pytest.mark.parametrize(
    ("message", "same"),
    [
        ("at 0x7ffd00aa10: failed in /tmp/b/kernel.ttgir", True),
        ("at 0x7ffd00aa10: failed in /tmp/b/other.ttgir", False),
        ("at 0x7ffd00aa10: 4096 bytes too many", False),
    ],
)
def test_how_a_side_failed_counts_without_addresses_and_folders(
    build: Any, compared: Compared, message: str, same: bool
) -> None:
    case = build.case(CASE, Verdict.BROKEN)
    failures = [
        replace(case.failures.head, message=text)
        for text in ("at 0x55d01c2310: failed in /home/a/kernel.ttgir", message)
    ]
    rows = [replace(case, failures=replace(case.failures, head=failure)) for failure in failures]
    first, second = (edit_digest.of_case(row, _pair(build), compared.comparator) for row in rows)
    assert (first == second) is same


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.ADDED, Verdict.UNSUPPORTED])
def test_what_is_in_no_group_has_no_edit(build: Any, compared: Compared, verdict: Verdict) -> None:
    assert edit_digest.of_case(build.case(CASE, verdict), _pair(build), compared.comparator) is None
