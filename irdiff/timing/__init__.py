"""Times changed cases on real GPUs. It loads the very binaries that were compared, and needs no compiler and
no workload code.

`time_run` is the entry point; `schedule` has the protocol, `decision` the verdicts. torch, numpy, scipy and
the drivers' bindings are imported only where they are used.
"""

from __future__ import annotations

import datetime
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from irdiff import __version__, case_ids
from irdiff.backends.stages import BINARIES
from irdiff.errors import ExitCode, IrdiffError
from irdiff.model import Case, Expected, Run, Verdict
from irdiff.run import run_folder
from irdiff.timing import results, schedule, timing_file
from irdiff.timing.isolate import GpuProcess, GpuProcessError
from irdiff.timing.results import (
    CaseTiming,
    NotTimed,
    OutputCheck,
    OutputStatus,
    Sample,
    TimingProtocol,
    TimingResults,
)
from irdiff.timing.schedule import GpuWork, Start, TimingOptions


class NothingTimedError(IrdiffError):
    exit_code = ExitCode.NOT_COMPARED


class NoGpuError(NothingTimedError): ...


def chosen_cases(run: Run, patterns: Sequence[str], every: bool) -> list[Case]:
    """Returns changed cases, or all that compiled on both sides if `every`."""
    wanted = [
        case for case in run.cases if case.verdict is Verdict.CHANGED or (every and _has_binaries(case))
    ]
    wanted.sort(key=_place)
    if not patterns:
        return wanted
    names = [case.id for case in wanted]
    selected = {name for pattern in patterns for name in case_ids.meant(pattern, names)}
    return [case for case in wanted if case.id in selected]


def _place(case: Case) -> int:
    """Puts cases that may move first, because a GPU may be lost on the way."""
    return list(Expected).index(case.expected.expected if case.expected else Expected.UNKNOWN)


def _has_binaries(case: Case) -> bool:
    sides = (case.artifacts.base or {}, case.artifacts.head or {})
    return all(any(stage in side for stage in BINARIES) for side in sides)


def time_run(folder: Path, options: TimingOptions) -> TimingResults:
    """Writes `timing.json` and the samples into the run's folder. Raises NothingTimedError if the run has
    nothing for these GPUs.
    """
    from irdiff.timing import decision, host

    begin = time.monotonic()
    cases = chosen_cases(run_folder.load(folder), options.patterns, options.every)
    if not cases:
        raise NothingTimedError(
            "the run has no case to time", hint="`--all` also takes cases whose code did not change"
        )
    with (
        tempfile.TemporaryDirectory(prefix="irdiff-time-", ignore_cleanup_errors=True) as logs,
        host.Monitor(options.environment) as monitor,
    ):
        start = partial(GpuProcess, folder.absolute(), options.environment, Path(logs) / "gpu.log")
        works, not_timed, versions = on_all_gpus(start, cases, options)
        gpus = [work.record(monitor.conditions(work.card["uuid"])) for work in works]
    timings = [
        timing
        for work in works
        for timing in decision.case_timings(work.card["uuid"], work, options.protocol)
    ]
    timed = replace(
        _results({platform.node() or "host": f"{platform.release()}, {versions}"}, options.protocol, timings),
        gpus=tuple(gpus),
        not_timed=tuple(not_timed),
        duration_s=time.monotonic() - begin,
    )
    samples = [sample for work in works for part in work.samples.values() for sample in part]
    timing_file.write_samples(folder, samples, {(timing.case, timing.gpu) for timing in timings})
    return _as_stored(timed, timing_file.write(folder, timed), options.say)


def _results(
    host: Mapping[str, str], protocol: TimingProtocol, timings: Sequence[CaseTiming]
) -> TimingResults:
    return TimingResults(
        schema=results.SCHEMA,
        irdiff_version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        host=host,
        protocol=protocol,
        gpus=(),
        cases=tuple(timings),
        not_timed=(),
        duration_s=0.0,
    )


def _as_stored(timed: TimingResults, stored: TimingResults, say: Callable[[str], None]) -> TimingResults:
    """Keeps a case's earlier fault as its result."""
    kept = {(timing.case, timing.gpu): timing for timing in stored.cases}
    for timing in timed.cases:
        if kept[timing.case, timing.gpu] != timing:
            say(
                f"{timing.case}: a fault of an earlier time stays its result; "
                f"remove {results.TIMING_FILE} to begin anew"
            )
    return replace(timed, cases=tuple(kept[timing.case, timing.gpu] for timing in timed.cases))


def on_all_gpus(
    start: Start, cases: Sequence[Case], options: TimingOptions
) -> tuple[list[GpuWork], list[NotTimed], str]:
    """Returns the work of each GPU, the cases that were not timed, and the versions of the packages used."""
    process = start()
    try:
        reply = process.ask_first({"op": "list"}, 120.0, "the GPUs here cannot be listed")
    finally:
        process.close()
    lanes, not_timed = assign(cases, reply["targets"])
    if not lanes:
        here = ", ".join(sorted(set(reply["targets"]))) or "none"
        wanted = ", ".join(sorted({case.target for case in cases}))
        raise NoGpuError(
            f"no GPU here runs a case of the run: GPUs here are {here}, its cases are for {wanted}",
            hint="run `irdiff time` on a host with such a GPU",
        )
    works, failures = _side_by_side(start, lanes, options)
    for error in failures.values():
        if not works or not isinstance(error, GpuProcessError):
            raise error
    for index, names in lanes.items():
        done = works[index].outputs if index in works else {}
        reason = works[index].stopped if index in works else str(failures[index])
        not_timed += [NotTimed(case=name, reason=reason) for name in names if name not in done]
    versions = ", ".join(f"{name} {version}" for name, version in reply["versions"].items())
    return [works[index] for index in lanes if index in works], not_timed, versions


def assign(cases: Sequence[Case], cards: Sequence[str]) -> tuple[dict[int, list[str]], list[NotTimed]]:
    """Assigns cases to GPUs by index, and lists those that no GPU here can run. `cards`: the target of each
    GPU.
    """
    lanes: dict[int, list[str]] = {}
    not_timed = []
    for case in cases:
        fitting = [index for index, target in enumerate(cards) if target == case.target]
        if fitting:
            index = min(fitting, key=lambda index: len(lanes.get(index, ())))
            lanes.setdefault(index, []).append(case.id)
        else:
            not_timed.append(NotTimed(case=case.id, reason=f"{results.NO_SUCH_GPU}: {case.target}"))
    return lanes, not_timed


def _side_by_side(
    start: Start, lanes: Mapping[int, list[str]], options: TimingOptions
) -> tuple[dict[int, GpuWork], dict[int, Exception]]:
    """Runs each GPU in a thread of its own. Returns by index the measurements, or the error."""
    works: dict[int, GpuWork] = {}
    failures: dict[int, Exception] = {}

    def work_on(index: int, names: Sequence[str]) -> None:
        try:
            works[index] = schedule.run_gpu(start, index, names, options)
        except Exception as error:  # raised again in the caller's thread
            failures[index] = error

    # daemons: Ctrl-C ends them, and with them the GPU processes that they started
    threads = [threading.Thread(target=work_on, args=lane, daemon=True) for lane in lanes.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return works, failures


def simulate(samples: Sequence[Sample], protocol: TimingProtocol) -> TimingResults:
    """Computes the results of `time_run` from recorded samples. Outputs are not checked; nothing is
    written.
    """
    from irdiff.timing import decision

    timings = []
    not_checked = OutputCheck(status=OutputStatus.NOT_CHECKED, message="recorded samples: nothing ran")
    for gpu in sorted({sample.gpu for sample in samples}):
        work = GpuWork()
        for sample in samples:
            if sample.gpu == gpu:
                work.samples.setdefault(sample.case, []).append(sample)
        work.outputs = dict.fromkeys(sorted(work.samples), not_checked)
        timings += decision.case_timings(gpu, work, protocol)
    return _results({"simulated": "recorded samples"}, protocol, timings)
