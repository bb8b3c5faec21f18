"""Runs mutations over artifacts and counts, by kind, how many were judged right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from irdiff.texts import canonicalize, equivalent
from tests.programs.mutation import cosmetic, meaningful
from tests.programs.mutation.artifacts import RealArtifact, of_stage
from tests.programs.mutation.editing import Mutation, dialect

STAGES = ("ttir", "ttgir", "glir", "llir", "ptx", "amdgcn", "sass")


@dataclass
class Tally:
    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str, int]] = field(default_factory=list)
    """Dialect, kind, artifact and seed of each mutant that was misjudged."""

    @property
    def kinds(self) -> set[tuple[str, str]]:
        return {kind for kind, count in self.tried.items() if count}


def mutants(
    table: Mapping[str, Mapping[str, Mutation]], per_kind: int, seed: int
) -> Iterator[tuple[str, str, RealArtifact, str, int]]:
    """`per_kind` mutants of each kind and stage, over artifacts drawn at random; fewer where none fits."""
    for stage in STAGES:
        artifacts = of_stage(stage)
        for kind, mutation in table[dialect(stage)].items():
            random = Random(f"{seed} {stage} {kind}")
            order = random.sample(artifacts, len(artifacts))
            made = 0
            for attempt in range(per_kind + len(artifacts)):
                artifact = order[attempt % len(order)]
                number = random.randrange(10**9)
                mutant = mutation(artifact.text, Random(number))
                if mutant is not None and mutant != artifact.text:
                    made += 1
                    yield stage, kind, artifact, mutant, number
                if made == per_kind:
                    break


def run(name: str, per_kind: int, seed: int = 1) -> Tally:
    """`name` is `meaningful` or `cosmetic`."""
    table = meaningful.BY_DIALECT if name == "meaningful" else cosmetic.BY_DIALECT
    tally = Tally()
    for stage, kind, artifact, mutant, number in mutants(table, per_kind, seed):
        tally.tried[dialect(stage), kind] += 1
        if not _judged_right(name, stage, artifact.text, mutant):
            tally.wrong.append((dialect(stage), kind, artifact.name, number))
    return tally


def _judged_right(name: str, stage: str, text: str, mutant: str) -> bool:
    equal = equivalent(stage, text, mutant).equal
    if name == "cosmetic" and canonicalize(stage, text).lines != canonicalize(stage, mutant).lines:
        return False
    return equal == (name == "cosmetic")
