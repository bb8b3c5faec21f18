"""How good the expected times are: against the measured times of pairs of releases.

    python -m tests.programs.cost_record count RUN PAIR NVDISASM >> COUNTS.tsv   # RUN of triton==A triton==B
    python -m tests.programs.cost_record judge reports/samples/release-times-sm_90.tsv COUNTS.tsv

`count` needs no GPU. `judge` prints what `reports/samples/cost-record.md` shows: each pair with the thresholds that irdiff
has, then each with thresholds that the other pairs choose, and plain baselines with as many cases.
"""

import collections
import csv
import dataclasses
import math
import sys
from pathlib import Path
from unittest import mock

import scipy.stats

from irdiff.cost import expected
from irdiff.cost.launch_time import LaunchTime, of_launch
from irdiff.execution import schedule
from irdiff.model import Expected, Sides, Verdict

_COUNTS = (
    "instructions", "stall cycles", "waits on scoreboards", "waits on global loads", "latency of one warp",
    "shared wavefronts", "global sectors", "spill sectors",
)  # fmt: skip
_SCALARS = ("scheduled_us", "memory_us", "blocks", "warps", "grid", "undecided")
_BASELINES = {"PTX instructions": "ptx.total", "registers": "registers", "code size": "code_bytes"}
COLUMNS = (
    "pair", "case", "not counted", "is least",
    *(f"{side} {name}" for side in ("base", "head") for name in (*_SCALARS, *_COUNTS)),
    *(f"head / base {name}" for name in _BASELINES),
)  # fmt: skip
_WITHIN = math.log(1.01)
_SCALES = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4)
_LIKELY = (0.02, 0.03, 0.05, 0.07, 0.1, 0.2)
_DIRECTIONS = {Expected.SLOWER: 1, Expected.FASTER: -1}


def count(folder: str, pair: str, nvdisasm: str) -> None:
    from irdiff import work
    from irdiff.run import run_folder

    run = run_folder.load(Path(folder))
    changed = [case for case in run.cases if case.verdict is Verdict.CHANGED]
    changed = [case for case in changed if schedule.rates(_target(case.target))]
    readers = work.readers(Path(nvdisasm))
    compiled = {case.id: _compiled(case, run, Path(folder)) for case in changed}
    readers["cuda"].prepare([each for sides in compiled.values() for each in sides if each])
    print(*COLUMNS, sep="\t")
    for case in changed:
        row = _counted(case, compiled[case.id], readers)
        print(pair, case.id, *(row.get(name, "") for name in COLUMNS[2:]), sep="\t", flush=True)


def _target(name):
    from irdiff.resolve import targets

    return targets.load(Path(__file__).parents[2] / "targets" / f"{name}.toml")


def _compiled(case, run, folder):
    """The launches of both sides; None for one without a binary."""
    from irdiff import work
    from irdiff.run import run_folder

    target = _target(case.target)

    def of(side):
        artifact, launch = (
            case.artifacts.of(side).get("cubin"),
            run.launches.get(case.launches.of(side) or ""),
        )
        if artifact is None or launch is None:
            return None
        return work.CompiledLaunch(
            launch=launch, metadata=case.metadata.of(side), backend=target.backend, arch=target.arch,
            binary=run_folder.artifact(folder, artifact.digest),
        )  # fmt: skip

    return of("base"), of("head")


def _counted(case, launches, readers):
    from irdiff import work

    target = _target(case.target)
    rates, row = schedule.rates(target), {}
    for name, fact in _BASELINES.items():
        before, after = (float(facts.get(fact) or 1) for facts in case.facts)
        row[f"head / base {name}"] = f"{after / before:.5f}"
    for side, compiled in zip(("base", "head"), launches, strict=True):
        if compiled is None:
            return row | {"not counted": "no binary"}
        counted = work.count(compiled, readers)
        if isinstance(counted, work.NotCountedWork):
            return row | {"not counted": counted.reason}
        blocks = int(case.facts.of(side).get("blocks_per_multiprocessor") or 1)
        row |= side_of(side, of_launch(counted, compiled.launch, blocks, rates))
        row["is least"] = row.get("is least") or counted.work.is_least or ""
    return row


def side_of(side, time):
    """The columns of one side."""
    scalars = {f"{side} {name}": f"{getattr(time, name):.6g}" for name in _SCALARS}
    return scalars | {f"{side} {name}": f"{time.counts[name]:.9g}" for name in _COUNTS}


def _time(row, side):
    scalars = {name: float(row[f"{side} {name}"]) for name in _SCALARS}
    return LaunchTime(**scalars, counts={name: float(row[f"{side} {name}"]) for name in _COUNTS})


@dataclasses.dataclass
class _Judged:
    row: dict
    truth: float
    """Logarithm of head's time over base's, as measured."""

    def expected(self):
        if self.row["not counted"] or self.row["is least"]:
            return Expected.UNKNOWN
        times = Sides(base=_time(self.row, "base"), head=_time(self.row, "head"))
        works = Sides(base=mock.Mock(is_least=False), head=mock.Mock(is_least=False))
        return expected.expected_time(times, works).expected


def judge(measured_file: str, counts_file: str) -> None:
    measured = {(row["pair"], row["case"]): math.log(float(row["ratio"])) for row in _rows(measured_file)}
    pairs = collections.defaultdict(list)
    for row in _rows(counts_file):
        if (row["pair"], row["case"]) in measured:
            pairs[row["pair"]].append(_Judged(row, measured[row["pair"], row["case"]]))
    print("the thresholds of irdiff")
    _print(pairs, {pair: _told(cases, 1, 0.05) for pair, cases in pairs.items()})
    print(
        "thresholds that the other pairs choose: at least 99 % within 1 %; 95 % of directions, 90 % beyond 1 %"
    )
    told = {}
    for left_out in pairs:
        others = [case for pair, cases in pairs.items() if pair != left_out for case in cases]
        scale = max((scale for scale in _SCALES if _is_steady(_told(others, scale, 9.0))), default=0)
        likely = min((likely for likely in _LIKELY if _is_right(_told(others, 1, likely))), default=9.0)
        print(f"  {left_out}: {scale} times the bounds of `no change expected`, a direction from {likely} on")
        told[left_out] = [
            row for row in _told(pairs[left_out], scale, 9.0) if row[0] is Expected.NO_CHANGE
        ] + [row for row in _told(pairs[left_out], 1, likely) if row[0] in _DIRECTIONS]
    _print(pairs, told)
    _baselines(pairs)
    _orders(pairs)


def _orders(pairs):
    """How well figures order the counted cases by their measured time. Nothing in them is fitted."""
    cases = [case for rows in pairs.values() for case in rows if not case.row["not counted"]]
    truths = [case.truth for case in cases]
    for name in ("simulated time", "latency of one warp", "instructions executed", *_BASELINES):
        scores = [_score(case, name) for case in cases]
        areas = ", ".join(f"{_area(scores, truths, percent):.2f}" for percent in (1, 2, 3))
        correlation = scipy.stats.spearmanr(scores, truths).statistic
        slow = [_slower(truth, 3) for truth in truths]
        print(
            f"order by {name}: AUC for slower by 1, 2, 3 % {areas}; rank correlation {correlation:+.2f}; the "
            f"first quarter has {_in_first_quarter(scores, slow):.0f} of {sum(slow)} slower by 3 %"
        )


def _slower(truth, percent):
    return truth > math.log(1 + percent / 100)


def _score(case, name):
    def of(side):
        if name == "simulated time":
            return max(float(case.row[f"{side} scheduled_us"]), float(case.row[f"{side} memory_us"]))
        return float(case.row[f"{side} {name}"])

    if name not in ("simulated time", "latency of one warp"):
        return _plain(case, name)
    return math.log(of("head") / of("base")) if of("base") and of("head") else 0.0


def _area(scores, truths, percent):
    """Area under the ROC curve: how often a slower case has the greater score, ties counted half."""
    sides = {True: [], False: []}
    for score, truth in zip(scores, truths, strict=True):
        sides[_slower(truth, percent)].append(score)
    pairs = len(sides[True]) * len(sides[False])
    return scipy.stats.mannwhitneyu(sides[True], sides[False]).statistic / pairs


def _in_first_quarter(scores, slow):
    """How many slow ones are in the first quarter by score, on average over the orders of equal scores."""
    room = len(scores) // 4
    least = sorted(scores, reverse=True)[room - 1]
    equal = sum(score == least for score in scores)
    share = (room - sum(score > least for score in scores)) / equal
    return sum(
        1 if score > least else share
        for score, is_slow in zip(scores, slow, strict=True)
        if is_slow and score >= least
    )


def _told(cases, scale, likely):
    """(word, truth, case) of all cases, with other thresholds."""
    bounds = {
        name: dataclasses.replace(bound, most={what: most * scale for what, most in bound.most.items()})
        for name, bound in expected._STEADY.items()
    }
    with mock.patch.object(expected, "_STEADY", bounds), mock.patch.object(expected, "_LIKELY", likely):
        return [(case.expected(), case.truth, case) for case in cases]


def _steady(told):
    chosen = [truth for word, truth, _ in told if word is Expected.NO_CHANGE]
    return sum(abs(truth) < _WITHIN for truth in chosen), len(chosen)


def _directions(told):
    """With the right sign, beyond 1 % with it, beyond 1 % with the other, all."""
    moves = [_DIRECTIONS[word] * truth for word, truth, _ in told if word in _DIRECTIONS]
    return (
        sum(move > 0 for move in moves),
        sum(move > _WITHIN for move in moves),
        sum(move < -_WITHIN for move in moves),
        len(moves),
    )


def _is_steady(told):
    within, chosen = _steady(told)
    return chosen and within >= 0.99 * chosen


def _is_right(told):
    right, beyond, _, chosen = _directions(told)
    return chosen and right >= 0.95 * chosen and beyond >= 0.9 * chosen


def _print(pairs, told):
    everything = [row for rows in told.values() for row in rows]
    for pair, rows in [*told.items(), ("all", everything)]:
        cases = pairs[pair] if pair in pairs else [case for cases in pairs.values() for case in cases]
        within, steady = _steady(rows)
        right, beyond, wrong, chosen = _directions(rows)
        slow = [case for case in cases if case.truth > math.log(1.03)]
        words = {id(case): word for word, _, case in rows}
        named = sum(words.get(id(case)) is Expected.SLOWER for case in slow)
        counted = sum(not case.row["not counted"] for case in cases)
        print(
            f"  {pair}: {len(cases)} timed, {counted} counted; no change: {within} of {steady} within 1 % "
            f"({steady / len(cases):.1%} of the timed); directions: {right} of {chosen} right, {beyond} beyond 1 %, "
            f"{wrong} wrong beyond 1 %; of {len(slow)} slower by 3 %, {named} were likely slower"
        )
    for word, truth, case in everything:
        off = word is Expected.NO_CHANGE and abs(truth) >= _WITHIN
        if off or _DIRECTIONS.get(word, 0) * truth < 0:
            print(f"    not so: {case.row['pair']} {case.row['case']}: {word}, {math.expm1(truth):+.1%}")


def _baselines(pairs):
    """The cases of each pair that moved farthest by a plain figure, as many as have a direction."""
    for name in (*_BASELINES, "instructions executed"):
        sums = [0, 0, 0]
        for cases in pairs.values():
            most = sorted(((_plain(case, name), case.truth) for case in cases), key=lambda row: -abs(row[0]))
            chosen = most[: _directions(_told(cases, 1, 0.05))[3]]
            moves = [truth if move > 0 else -truth for move, truth in chosen if move]
            for n, figure in enumerate(
                (sum(m > 0 for m in moves), sum(m > _WITHIN for m in moves), len(chosen))
            ):
                sums[n] += figure
        print(f"baseline {name}: {sums[0]} of {sums[2]} right, {sums[1]} beyond 1 %")
    for name in _BASELINES:
        same = [case.truth for cases in pairs.values() for case in cases if not _plain(case, name)]
        print(f"baseline, equal {name}: {sum(abs(t) < _WITHIN for t in same)} of {len(same)} within 1 %")


def _plain(case, name):
    if name in _BASELINES:
        return math.log(float(case.row[f"head / base {name}"]))
    if case.row["not counted"]:
        return 0.0
    return math.log(float(case.row["head instructions"]) / float(case.row["base instructions"]))


def _rows(file):
    with Path(file).open(newline="") as lines:
        yield from (row for row in csv.DictReader(lines, delimiter="\t") if row["pair"] != "pair")


if __name__ == "__main__":
    {"count": count, "judge": judge}[sys.argv[1]](*sys.argv[2:])
