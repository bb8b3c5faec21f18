"""A replayer that has its answers ready, for tests of what is concluded from them."""

from dataclasses import dataclass, field

import pytest

from irdiff.attribute.attribution import CaseToReplay
from irdiff.attribute.pass_states import END, State
from irdiff.attribute.replayer import Replay, Replayed
from irdiff.model import Sides, StageStatus, Verdict
from irdiff.store import Store
from tests.unit import runs

ORDER = ("ttir", "ttgir", "llir", "ptx", "amdgcn", "sass")


def states(*rows, options=""):
    return [State.of(name, text.encode(), name.lower(), options) for name, text in rows]


@dataclass
class FakeReplayer:
    """Cases between `base` and `head`, and what their stages make when they run again."""

    store: Store
    answers: dict[tuple[str, str, bytes], Replayed] = field(default_factory=dict)
    replays: list[Replay] = field(default_factory=list)
    versions: Sides[str] = field(default_factory=lambda: Sides(base="3.8.0", head="3.9.0"))

    def run(self, replay):
        self.replays.append(replay)
        return self.answers[
            replay.side.toolchain.spec, replay.stage, self.store.get(replay.input_digest) or b""
        ]

    def makes(self, side, stage, of, output="", *, through=(), final="", **more):
        """A side's stage makes `output` of a text, unless there is an `error`."""
        given, made = (text if isinstance(text, bytes) else text.encode() for text in (of, output))
        row = {"settings": {}, "output": None if "error" in more else self.store.put(made), **more}
        last = State.of(END, final.encode()) if final else None
        self.answers[side, stage, given] = Replayed(states=through, final=last, **row)

    def case(self, base, head, case_id="matmul/tma:fp16@sm_90", **changes):
        """With the statuses of stages that follow from their bytes; the source has none."""
        stages = {
            name.replace("cubin", "sass"): StageStatus.IDENTICAL
            if base[name] == head[name]
            else StageStatus.CHANGED
            for name in base.keys() & head.keys() - {"source", "hsaco"}
        }
        first = next((name for name in ORDER if stages.get(name) is StageStatus.CHANGED), "ttgir")
        row = {
            "stages": stages,
            "origin": runs.origin(first),
            "artifacts": Sides(base=runs.kept(self.store, base), head=runs.kept(self.store, head)),
            "metadata": Sides(base={"of": "base"}, head={"of": "head"}),
            **changes,
        }
        return runs.case(case_id, row.pop("verdict", Verdict.CHANGED), **row)

    def subject(self, case, **of_head):
        base, head = self.versions
        return CaseToReplay(
            case=case,
            sides=Sides(base=runs.side("base", base), head=runs.side("head", head, **of_head)),
            launches=Sides(base=runs.launch(case.renamed_from or case.id, "base"), head=runs.launch(case.id)),
            target=runs.target(case.target),
        )


@pytest.fixture
def replayer(tmp_path):
    return FakeReplayer(Store(tmp_path))
