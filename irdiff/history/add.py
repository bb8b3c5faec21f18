from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from irdiff.compare.cases import not_compared
from irdiff.history import versions
from irdiff.history.database import NOT_CARRIED, Database
from irdiff.history.inventory import Inventory
from irdiff.history.session import Session, parse
from irdiff.history.versions import Version
from irdiff.model import Case, ChangeGroup, Fact, Run, Sides, Target, Verdict
from irdiff.run import run_folder
from irdiff.store import key_of, sha256
from irdiff.timing.results import CaseTiming, GpuRecord, TimingResults, Unclear


def selection_key(
    targets: Iterable[Target], tiers: Iterable[str], cases: Iterable[str], corpus: str, compiler: str = ""
) -> str:
    """Identifies a selection by targets, tiers, cases, the digest of the kernels, and that of the compiler if
    it is not the version's own.
    """
    by_name = sorted(targets, key=lambda target: target.name)
    facts = [
        (target.name, target.backend, target.arch, target.warp_size, dict(target.facts)) for target in by_name
    ]
    return key_of("selection/2", facts, sorted(tiers), sorted(cases), corpus, compiler)[:16]


def add_run(
    database: Database,
    run: Run,
    place: Path | None,
    named: Sides[Version] | None = None,
    selection: str | None = None,
) -> bool:
    """Returns False if the run is in the history already. `named` gives its versions, and `selection` the
    selection, if the caller knows better.
    """
    key = sha256(run_folder.dump(run))[:16]  # of all that it found
    if database.value("SELECT count(*) FROM runs WHERE run = ?", [key]):
        return False
    sides = named or versions.of_run(run)
    sort_key = database.value("SELECT sort_key FROM versions WHERE version = ?", [sides.head.name])
    as_compared = sides.head.series in (versions.COMMITS, versions.OTHERS)  # no run knows their order
    if sort_key and as_compared and sides.base.sort_key > sort_key:
        just_before = f"{sort_key[:-1]}{chr(ord(sort_key[-1]) - 1)}~"
        sides = replace(sides, base=replace(sides.base, sort_key=just_before))
    put_versions(database, sides)
    database.put("cases", [(c.id, c.workload, c.kernel, c.target, c.tier) for c in run.cases if c.kernel])
    chosen = selection or selection_key(run.targets, run.options.tiers, run.options.cases, run.head.corpus)
    names = (key, run.created, sides.base.name, sides.head.name, chosen, not run.options.stages)
    changed = sum(case.verdict is Verdict.CHANGED for case in run.cases)
    where = str(place.absolute()) if place else ""
    database.put("runs", [(*names, run.summary.compared, changed, run.duration_s, where)])
    database.put("verdicts", [_verdict(key, case) for case in run.cases])
    database.put("groups", [_group(key, group) for group in run.groups])
    for which, version in sides.items():
        _add_side(database, run, which, version)
    carry(database)
    return True


def put_versions(database: Database, named: Iterable[Version]) -> None:
    """An existing version keeps its place in its series."""
    present = {name for (name,) in database.rows("SELECT version FROM versions")}
    new_versions = [
        (v.name, v.series, v.sort_key, v.label, v.toolchain, v.corpus) for v in named if v.name not in present
    ]
    database.put("versions", new_versions)


def _verdict(key: str, case: Case) -> tuple[object, ...]:
    origin = (case.origin.stage, case.origin.pass_name) if case.origin else (None, None)
    unknown = case.nondeterministic or (("its code",) if not_compared(case) else ())
    return (key, case.id, str(case.verdict), *origin, case.group, ",".join(unknown))


def _group(key: str, group: ChangeGroup) -> tuple[object, ...]:
    edit = (group.title, group.severity, group.origin_stage, group.pass_name)
    return (key, group.id, *edit, ",".join(group.charged), group.representative, len(group.members))


def _add_side(database: Database, run: Run, which: str, version: Version) -> None:
    """Adds only cases that no inventory of this version has."""
    compiled = database.rows("SELECT case_id FROM compilations WHERE version = ?", [version.name])
    measured = {case_id for (case_id,) in compiled}
    cases = [case for case in run.cases if case.id not in measured]
    compiled = [(case.id, case.facts.of(which), case.compile_s.of(which), {}) for case in cases]
    _put_measured(database, version, compiled)


_Seconds = Mapping[str, float]
"""By stage."""


def _put_measured(
    database: Database, version: Version, cases: Iterable[tuple[str, Mapping[str, Fact], _Seconds, _Seconds]]
) -> None:
    facts, costs = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for case, case_facts, wall_s, cpu_s in cases:
        numbers = ((name, value) for name, value in case_facts.items() if isinstance(value, int | float))
        facts += [(version.name, case, name, float(value), "measured") for name, value in numbers]
        costs += [(version.name, case, stage, wall_s[stage], cpu_s.get(stage)) for stage in wall_s]
    database.put("facts", facts)
    database.put("stage_costs", costs)


def add_inventory(database: Database, version: Version, selection: str, inventory: Inventory) -> None:
    """Replaces earlier facts of the same cases of that version."""
    put_versions(database, [version])
    name = version.name
    kernels = [case for case in inventory.cases if case.kernel]
    database.put("cases", [(c.id, c.workload, c.kernel, c.target, c.tier) for c in kernels])
    outcomes = [
        (name, case.id, str(case.failure.kind), case.failure.message[:300])
        if case.failure
        else (name, case.id, "compiled", None)
        for case in inventory.cases
    ]
    database.put("compilations", outcomes)
    _put_measured(
        database, version, ((case.id, case.facts, case.wall_s, case.cpu_s) for case in inventory.cases)
    )
    size = (len(inventory.cases), inventory.wall_s, inventory.cpu_s, inventory.compiled)
    database.put("inventories", [(name, selection, *size)])


def carry(database: Database) -> None:
    """Copies facts between neighbouring versions if a run says that the code is the same.

    A case is `unchanged` if its machine code and every compared stage above are the same, so all counts in
    them are the same. Other figures of a file are not copied (`NOT_CARRIED`), nor is anything from a run that
    compared only some stages.
    """
    before, now = -1, 0
    while before != now:  # a version may give on what it was given
        before, now = now, _carried(database)


def _carried(database: Database) -> int:
    """Copies one step along every run. Returns the number of facts."""
    left_out = ", ".join(f"'{name}'" for name in sorted(NOT_CARRIED))
    for giver, taker in (("base", "head"), ("head", "base")):
        database.run(
            f"""
            INSERT INTO facts
            SELECT runs.{taker}, given.case_id, given.fact, given.value, 'carried'
            FROM runs JOIN verdicts USING (run)
            JOIN facts given ON given.version = runs.{giver} AND given.case_id = verdicts.case_id
            WHERE runs.whole AND verdicts.verdict = 'unchanged' AND given.fact NOT IN ({left_out})
            AND NOT EXISTS (SELECT 1 FROM facts own
                            WHERE own.version = runs.{taker} AND own.case_id = verdicts.case_id)
            """,  # noqa: S608 - the names are this module's own
        )
    return int(database.value("SELECT count(*) FROM facts"))


def add_timings(database: Database, session: Session, results: TimingResults) -> int:
    """Replaces timings of the same session. Returns how many it added.

    A version with the same machine code as another gets its time. The reference gets its own time, and how
    far off its binary was when loaded a second time.
    """
    return _put_timings(database, session.reference, results, lambda timing: _of_entry(timing, session))


def add_run_timings(database: Database, run: Run, results: TimingResults) -> int:
    """Takes base as the reference of head. Returns how many timings it added; 0 if both sides are one version
    of the history.
    """
    sides = versions.of_run(run)
    if sides.base.name == sides.head.name:
        return 0
    return _put_timings(database, sides.base.name, results, lambda timing: _of_case(timing, sides))


_Figures = tuple[object, ...]
_CaseTimings = Iterator[tuple[str, str, _Figures]]


def _put_timings(
    database: Database,
    reference: str,
    results: TimingResults,
    timings_of: Callable[[CaseTiming], _CaseTimings],
) -> int:
    count = 0
    for gpu in results.gpus:
        key = key_of("session/1", results.created, gpu.uuid, reference)[:16]
        database.put("sessions", [_session(key, reference, results, gpu)])
        measured = {
            (version, case_id): (key, version, case_id, *figures)
            for timing in results.cases
            if timing.gpu == gpu.uuid and (timing.measurement or timing.outputs.same_result is False)
            for case_id, version, figures in timings_of(timing)
        }
        count += database.put("timings", measured.values())
    return count


def _of_entry(timing: CaseTiming, session: Session) -> _CaseTimings:
    """An entry of a session stands for each version with the same machine code."""
    case_id, label = parse(timing.case)
    labels = session.same.get(case_id, {})
    control, head = _figures(timing)
    reference = next(other for other, name in session.versions.items() if name == session.reference)
    for other, standing in labels.items():
        if standing == label:
            yield case_id, session.versions[other], head
        if standing == labels.get(reference):
            yield case_id, session.versions[other], control


def _of_case(timing: CaseTiming, sides: Sides[Version]) -> _CaseTimings:
    for side, figures in zip(sides, _figures(timing), strict=True):
        yield timing.case, side.name, figures


def _figures(timing: CaseTiming) -> tuple[_Figures, _Figures]:
    """Returns figures of the control (the second copy of base), and of head. They are 0 after a fault, or if
    fewer processes measured the case than a verdict needs.
    """
    outputs, measured = str(timing.outputs.status), timing.measurement
    if measured is None or measured.unclear is Unclear.FEW_PROCESSES:
        nothing = (0.0,) * 5
        return (*nothing, "equal"), (*nothing, outputs)
    head = (measured.head_us, measured.ratio, measured.ratio_low, measured.ratio_high)
    control = (measured.base_us, 1.0, measured.control_low, measured.control_high)
    return (*control, measured.noise_floor, "equal"), (*head, measured.noise_floor, outputs)


def _session(key: str, reference: str, results: TimingResults, gpu: GpuRecord) -> tuple[object, ...]:
    ranges = (gpu.sm_clock_mhz, gpu.memory_clock_mhz, gpu.temperature_c, gpu.power_w)
    middles = [bounds[1] if bounds else None for bounds in ranges]
    names = (results.created, gpu.uuid, gpu.name, gpu.target, gpu.driver, reference)
    return (key, *names, *middles, ",".join(gpu.throttled), gpu.trustworthy, results.protocol.processes)
