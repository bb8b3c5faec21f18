"""Pairs the launches of both sides' tests, and writes them as two corpora with the same names of launches.

A test that both sides have is followed launch by launch. Each launch of a test that only one side has
(renamed, or with other parameters) is matched to a case whose recording is the same.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from irdiff.errors import NothingComparedError
from irdiff.model import Sides, Target
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.recorded_tests import Recording, TestLaunch
from irdiff.store import key_of, sha256
from irdiff.words import counted

FAMILY = "tests"
Launches = tuple[TestLaunch | None, TestLaunch | None]
Pair = tuple[str | None, str | None]
"""Names of recordings, base's and head's."""
_WORKLOAD = '''"""Launches that the tests of {file} make, as recorded."""

from irdiff_corpus import recorded

LAUNCHES = {{
{rows}}}
'''


@dataclass(frozen=True, kw_only=True)
class TestCases:
    """The launches of the tests for one target, as cases."""

    __test__ = False

    target: Target
    recordings: Sides[Recording]
    collected: int
    """How many tests the sides have. A sample of them was recorded."""
    cases: Mapping[str, tuple[str, ...]]
    """By the identity of a test, the launch ids of its cases."""
    pairs: Mapping[str, Pair]
    """By launch id."""

    @cached_property
    def differing_data(self) -> tuple[str, ...]:
        """Returns the files that differ between the sides, or are on one side alone, but for Python files."""
        base, head = (recording.every_file for recording in self.recordings)
        names = (name for name in base.keys() | head.keys() if base.get(name) != head.get(name))
        return tuple(sorted(name for name in names if not name.endswith(".py")))


def paired(recordings: Sides[Recording], target: Target, collected: int) -> TestCases:
    base, head = (side.tests for side in recordings)
    ids: dict[Pair, str] = {}
    cases: dict[str, tuple[str, ...]] = {}
    for name in sorted(base.keys() & head.keys()):
        launch_pairs = list(_aligned(base[name].launches, head[name].launches))
        cases[name] = tuple(_id(name, place, pair, ids) for place, pair in enumerate(launch_pairs))
    for side, (tests, others) in enumerate(((base, head), (head, base))):
        ids_of_side = {pair[side]: launch_id for pair, launch_id in reversed(ids.items()) if pair[side]}
        on_other_side = {launch.recording for test in others.values() for launch in test.launches}
        for name in sorted(tests.keys() - cases.keys()):
            launch_ids = []
            for place, launch in enumerate(tests[name].launches):
                other = launch if launch.recording in on_other_side else None
                pair = (launch, other) if side == 0 else (other, launch)
                launch_ids.append(ids_of_side.get(launch.recording) or _id(name, place, pair, ids))
            cases[name] = tuple(launch_ids)
    pairs = {launch_id: pair for pair, launch_id in ids.items()}
    return TestCases(target=target, recordings=recordings, collected=collected, cases=cases, pairs=pairs)


def nothing_recorded(cases: Sequence[TestCases]) -> NothingComparedError:
    """Names the most frequent reason why tests that ran give nothing to compare."""
    tests = [test for each in cases for recording in each.recordings for test in recording.tests.values()]
    reasons = Counter(test.reason for test in tests if test.outcome != "passed")
    reasons.update(doubt for test in tests for doubt in test.doubts)
    why = f"; most often: {reasons.most_common(1)[0][0]}" if reasons else ""
    names = {test.name for test in tests}
    return NothingComparedError(
        f"no launch of {counted(len(names), 'test')} could be recorded{why}",
        hint="name tests that launch kernels: --tests tests/test_norm.py",
    )


def _aligned(base: Sequence[TestLaunch], head: Sequence[TestLaunch]) -> Iterator[Launches]:
    """Pairs launches of the same kernels in the same order. Other launches have no partner."""
    ours, theirs = ([launch.kernel for launch in side] for side in (base, head))
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(base[a:b], head[c:d], strict=True)
        else:
            yield from ((launch, None) for launch in base[a:b])
            yield from ((None, launch) for launch in head[c:d])


def _id(test: str, place: int, pair: Launches, ids: dict[Pair, str]) -> str:
    """Names a pair of recordings after the first test that has it."""
    base, head = pair
    key = (base.recording if base else None, head.recording if head else None)
    launch = head or base
    assert launch is not None
    if key not in ids:
        file, _, inner = test.partition("::")
        function = re.sub(r"\W+", "_", inner.partition("[")[0]).strip("_")
        tail = sha256(f"{test} {place}".encode())[:8]
        ids[key] = f"{FAMILY}/{_module(file)}:{function}-{launch.kernel}-{tail}"
    return ids[key]


def _module(file: str) -> str:
    return re.sub(r"\W+", "_", file.removesuffix(".py")).strip("_")


def corpus(cases: Sequence[TestCases], side: str, root: Path, *, copied: bool = False) -> Corpus:
    """Copies the recordings if `copied`, else links to them."""
    workloads: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for target_cases in cases:
        recording = target_cases.recordings.of(side)
        (root / target_cases.target.name).parent.mkdir(parents=True, exist_ok=True)
        if copied:
            names = [name for pair in target_cases.pairs.values() for name in pair if name is not None]
            launches = [path for name in dict.fromkeys(names) for path in recording.folder.glob(f"{name}.*")]
            (root / target_cases.target.name).mkdir()
            for path in launches:
                shutil.copy(path, root / target_cases.target.name)
        else:
            (root / target_cases.target.name).symlink_to(recording.folder)
        for launch_id, pair in target_cases.pairs.items():
            name = pair[0] if side == "base" else pair[1]
            workload, _, label = launch_id.partition(":")
            workloads[workload]
            if name is not None:
                workloads[workload][label][target_cases.target.name] = (
                    f"{target_cases.target.name}/{name}.json"
                )
    (root / FAMILY).mkdir(parents=True, exist_ok=True)
    for workload, labels in workloads.items():
        lines = "".join(f"    {label!r}: recorded(**{paths!r}),\n" for label, paths in sorted(labels.items()))
        lines = lines or "    'none': recorded(),\n"
        text = _WORKLOAD.format(file=workload, rows=lines)
        (root / f"{workload}.py").write_text(text, encoding="utf-8")
    digest = key_of("tests/1", {workload: {**labels} for workload, labels in workloads.items()})
    return Corpus(root=root, workloads=tuple(sorted(workloads)), digest=digest, self_contained=True)
