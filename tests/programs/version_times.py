"""Times many versions of each case together on a GPU host, and writes a table for each pair of neighbours.

    irdiff compare triton==A triton==B --target sm_90 --no-attribute --no-recheck --out RUN   # each pair
    irdiff history add RUN… && irdiff history session FOLDER --target sm_90
    python -m tests.programs.version_times time FOLDER OUT.jsonl SECONDS   # on the GPU host, no compiler there
    python -m tests.programs.version_times table BASE HEAD FOLDER OUT.jsonl >> TABLE.tsv

All versions of a case, and a second copy of the newest (the control), run interleaved in random order in one
process, as `irdiff time` does with `--versions`; L2 is cold before each sample. Unlike `irdiff time` it does not
compare outputs, and goes on with new processes until the time is spent. Only medians of a process are kept.
"""

import collections
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time as clock
from pathlib import Path

_SLICE_S = 0.025
"""For each arm, warm-up included."""
_LIMIT_S = 30.0
_AHEAD = 2
_LEAST_PROCESSES = 4


class _Processes:
    """The current process, and the next ones, which import while it works."""

    def __init__(self, folder: Path, logs: Path) -> None:
        from irdiff.timing.isolate import GpuProcess

        self._new = lambda: GpuProcess(folder.absolute(), dict(os.environ), logs / "gpu.log")
        self.waiting: collections.deque[GpuProcess] = collections.deque()
        self.card: dict[str, object] = {}

    def begin(self):
        if self.waiting:
            self.waiting.popleft().close()
        while len(self.waiting) <= _AHEAD:
            self.waiting.append(self._new())
        reply = self.waiting[0].ask_first({"op": "open", "index": 0}, 120.0, "the GPU cannot be opened")
        self.card = reply["card"]
        return self.waiting[0]

    def close(self) -> None:
        while self.waiting:
            self.waiting.popleft().close()


def time(folder: str, out: str, seconds: str) -> None:
    from irdiff.history import session
    from irdiff.run import run_folder
    from irdiff.timing.isolate import GpuProcessGone

    begin, deadline = clock.monotonic(), clock.monotonic() + float(seconds)
    bundles: dict[str, dict[str, str]] = {}
    for case in run_folder.load(Path(folder)).cases:
        name, label = session.parse(case.id)
        bundles.setdefault(name, {})[label] = case.id
    lines = Path(out).open("a")  # noqa: SIM115 - what was measured must outlive a crash
    seed = int(clock.time())
    with tempfile.TemporaryDirectory() as logs:
        processes = _Processes(Path(folder), Path(logs))
        number = 0
        while clock.monotonic() < deadline:
            process = processes.begin()
            if number == 0:
                print(json.dumps({"card": processes.card, "date": clock.strftime("%Y-%m-%d")}), file=lines)
            names = sorted(bundles)
            random.Random(seed + number).shuffle(names)
            for place, name in enumerate(names):
                if clock.monotonic() > deadline:
                    break
                heads = bundles[name]
                request = {
                    "op": "time", "heads": heads, "slice_s": _SLICE_S * (2 + len(heads)),
                    "reverse": number % 4 in (1, 2), "seed": seed + number * 10_007 + place,
                }  # fmt: skip
                try:
                    reply = process.ask(request, _LIMIT_S)
                    line = {"case": name, "process": f"{seed}-{number}", **_medians(reply)}
                    print(json.dumps(line), file=lines, flush=True)
                except GpuProcessGone as ended:
                    line = {"case": name, "side": ended.side, "fault": str(ended)[:200]}
                    print(json.dumps(line), file=lines, flush=True)
                    guilty = {ended.side} if ended.side in heads else set(heads)
                    bundles[name] = {arm: case for arm, case in heads.items() if arm not in guilty}
                    if not bundles[name]:
                        del bundles[name]
                    process = processes.begin()
            number += 1
            print(f"process {number}: {clock.monotonic() - begin:.0f} s", flush=True)
        processes.close()


def _medians(reply):
    if reply["kind"] != "timed":
        return {"refused": reply.get("message", reply["kind"])}
    times = collections.defaultdict(list)
    for _, _, arm, launches, elapsed_us in reply["samples"]:
        times[arm].append(elapsed_us / launches)
    return {"times": {arm: [round(statistics.median(us), 4), len(us)] for arm, us in times.items()}}


COLUMNS = (
    "pair",
    "case",
    "base_us",
    "head_us",
    "ratio",
    "low",
    "high",
    "control",
    "processes",
    "gpu",
    "date",
)


def table(base: str, head: str, folder: str, out: str) -> None:
    """Prints a line for each case whose machine code differs between the two versions: medians over processes,
    the geometric mean of head / base, its interval of 95 % (Student's t over processes), and the control / base.
    """
    from irdiff.history import session

    content = session.load(Path(folder))
    assert content is not None
    reference = content.reference.rpartition("=")[2]
    lines = [json.loads(line) for line in Path(out).read_text().splitlines()]
    card, date = lines[0]["card"]["name"], lines[0]["date"]
    measured = collections.defaultdict(list)
    for line in lines:
        if "times" in line:
            measured[line["case"]].append({arm: us for arm, (us, _) in line["times"].items()})
    for case, same in sorted(content.same.items()):
        labels = [same.get(base), same.get(head)]
        if None in labels or labels[0] == labels[1]:
            continue
        arms = ["base" if label == reference else label for label in labels]
        rows = [times for times in measured[case] if all(arm in times for arm in arms)]
        if len(rows) < _LEAST_PROCESSES:
            continue
        sides = [[times[arm] for times in rows] for arm in arms]
        ratio, low, high = _interval([y / x for x, y in zip(*sides, strict=True)])
        control, _, _ = _interval([times["control"] / times["base"] for times in rows])
        print(f"{base}-{head}", case, *(f"{statistics.median(us):.3f}" for us in sides), f"{ratio:.5f}", f"{low:.5f}",
              f"{high:.5f}", f"{control:.5f}", len(rows), card, date, sep="\t")  # fmt: skip


def _interval(ratios):
    from scipy import stats

    logs = [math.log(ratio) for ratio in ratios]
    reach = statistics.stdev(logs) / math.sqrt(len(logs)) * stats.t.ppf(0.975, len(logs) - 1)
    return [math.exp(statistics.fmean(logs) + far) for far in (0.0, -reach, reach)]


if __name__ == "__main__":
    {"time": time, "table": table}[sys.argv[1]](*sys.argv[2:])
