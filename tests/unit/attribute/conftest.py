"""A replayer that has its answers ready, for tests of what is concluded from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from irdiff.attribute.attribution import CaseToReplay
from irdiff.attribute.pass_states import END, State
from irdiff.attribute.replayer import Replay, Replayed
from irdiff.model import Artifact, Case, Origin, Sides, StageStatus, Verdict
from irdiff.store import Store

Texts = Mapping[str, str | bytes]


def encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def states(*rows: tuple[str, str], options: str | None = "") -> list[State]:
    return [State.of(name, text.encode(), name.lower(), options) for name, text in rows]


@dataclass
class Bench:
    """Cases between `base` and `head`, and what their stages make when they run again."""

    build: Any
    store: Store
    answers: dict[tuple[str, str, bytes], Replayed] = field(default_factory=dict)
    replays: list[Replay] = field(default_factory=list)
    versions: Sides[str] = field(default_factory=lambda: Sides(base="3.8.0", head="3.9.0"))

    def run(self, replay: Replay) -> Replayed:
        self.replays.append(replay)
        text = self.store.get(replay.input_digest)
        assert text is not None
        return self.answers[replay.side.toolchain.spec, replay.stage, text]

    def makes(
        self,
        side: str,
        stage: str,
        of: str | bytes,
        output: str | bytes = "",
        *,
        through: Sequence[State] = (),
        final: str = "",
        **more: Any,
    ) -> None:
        last = State.of(END, final.encode()) if final else None
        made = None if "error" in more else self.store.put(encoded(output))
        row = {"settings": {}, "output": made, "states": through, "final": last, **more}
        self.answers[side, stage, encoded(of)] = Replayed(**row)

    def artifacts(self, texts: Texts) -> dict[str, Artifact]:
        return {
            stage: Artifact(stage=stage, digest=self.store.put(encoded(text)), size_bytes=len(text))
            for stage, text in texts.items()
        }

    def case(self, base: Texts, head: Texts, case_id: str = "matmul/tma:fp16@sm_90", **changes: Any) -> Case:
        """With the statuses of stages that follow from their bytes; the source has none."""
        stages = {
            {"cubin": "sass"}.get(name, name): StageStatus.IDENTICAL
            if base[name] == head[name]
            else StageStatus.CHANGED
            for name in base.keys() & head.keys()
            if name not in ("source", "hsaco")
        }
        order = [name for name in ("ttir", "ttgir", "llir", "ptx", "amdgcn", "sass") if name in stages]
        first = next((name for name in order if stages[name] is StageStatus.CHANGED), "ttgir")
        row = {
            "stages": stages,
            "origin": Origin(stage=first, pass_name=None, masked=(), charged=(), note=""),
            "artifacts": Sides(base=self.artifacts(base), head=self.artifacts(head)),
            "metadata": Sides(base={"of": "base"}, head={"of": "head"}),
            **changes,
        }
        made: Case = self.build.case(case_id, row.pop("verdict", Verdict.CHANGED), **row)
        return made

    def subject(self, case: Case, **of_head: Any) -> CaseToReplay:
        return CaseToReplay(
            case=case,
            sides=Sides(
                base=self.build.side("base", self.versions.base),
                head=self.build.side("head", self.versions.head, **of_head),
            ),
            launches=Sides(
                base=self.build.launch(case.renamed_from or case.id, "base"),
                head=self.build.launch(case.id),
            ),
            target=self.build.target(case.target),
        )


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(build, Store(tmp_path))
