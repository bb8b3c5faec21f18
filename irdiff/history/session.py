"""Collects the binaries of many versions as one run, to be timed in one session on one GPU against one
reference.

Each case has one entry for each machine code, `family/workload:label~3.7.0`, whose base is the reference and
whose head is that version. So `irdiff time` needs no compiler and no history, only this folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from irdiff.backends.stages import BINARIES, reported
from irdiff.compare import radius
from irdiff.errors import RunFolderError
from irdiff.history.database import HistoryError
from irdiff.history.lines import SeriesLines
from irdiff.model import Artifact, Case, Launch, Run, Sides, StageStatus, Target, Verdict
from irdiff.run import run_folder, run_place

FILE = "session.json"
_SEPARATOR = "~"
_SAME_CODE = frozenset({Verdict.UNCHANGED, Verdict.IR_ONLY})


@dataclass(frozen=True, kw_only=True)
class Session:
    """The content of `session.json`."""

    reference: str
    """The name of the version that all others are compared with."""
    versions: Mapping[str, str]
    """Names by label."""
    same: Mapping[str, Mapping[str, str]]
    """By case: the label of each version, and that of the version whose binary it shares."""


_session = TypeAdapter(Session)


@dataclass(frozen=True, kw_only=True)
class _Code:
    case: Case
    launch: Launch
    metadata: Mapping[str, object]
    binary: Artifact
    folder: Path


def entry(case_id: str, label: str) -> str:
    launch, _, target = case_id.rpartition("@")
    return f"{launch}{_SEPARATOR}{label}@{target}"


def parse(case_id: str) -> tuple[str, str]:
    launch, _, target = case_id.rpartition("@")
    name, _, label = launch.rpartition(_SEPARATOR)
    return f"{name}@{target}", label


def write(series: SeriesLines, targets: Sequence[Target], out: Path) -> Session:
    """Writes the run folder of a session, with the newest version as reference. Raises HistoryError if a
    run's folder is gone, or no case has two versions to be timed.
    """
    names = {target.name for target in targets}
    loaded = [
        (pair.base, pair.head, _loaded(series, Path(place)))
        for pair in series.pairs
        for place in pair.places or ("",)
    ]
    runs = [
        loaded_run for loaded_run in loaded if names & {target.name for target in loaded_run[2][1].targets}
    ]
    labels = [version.label for version in series.versions]
    cases: list[Case] = []
    launches: dict[str, Launch] = {}
    files: dict[str, Path] = {}
    same: dict[str, dict[str, str]] = {}
    for case_id in sorted({case.id for _, _, (_, run) in runs for case in run.cases if case.target in names}):
        codes, alike = _codes(case_id, runs, len(labels))
        reference = codes.get(alike[-1])
        if reference is None:
            continue
        same[case_id] = {labels[place]: labels[kind] for place, kind in enumerate(alike) if kind in codes}
        for place, code in codes.items():
            files[code.binary.digest] = code.folder
            launches[code.launch.key] = code.launch
            if place != alike[-1]:
                cases.append(_entry(case_id, labels[place], reference, code))
    if not cases:
        raise HistoryError(
            "no case has two versions to be timed", hint="is there a run of the target? --target"
        )
    run = _as_run(runs[-1][2][1], labels, targets, cases, launches)
    session = Session(
        reference=series.versions[-1].name,
        versions={version.label: version.name for version in series.versions},
        same=same,
    )
    _write(out, run, session, files)
    return session


def _as_run(
    newest: Run,
    labels: Sequence[str],
    targets: Sequence[Target],
    cases: Sequence[Case],
    launches: Mapping[str, Launch],
) -> Run:
    """Copies the form of the newest run."""
    names = {target.name for target in targets}
    return replace(
        newest,
        command=("history", "session"),
        targets=tuple(target for target in newest.targets if target.name in names),
        summary=radius.summarize(cases, targets),
        cases=tuple(cases),
        launches=launches,
        groups=(),
        reach=None,
        notes=(f"not a comparison: {', '.join(labels)}, each against {labels[-1]}",),
    )


def _loaded(series: SeriesLines, folder: Path) -> tuple[Path, Run]:
    try:
        return folder, run_folder.load(folder)
    except RunFolderError as error:
        raise HistoryError(
            f"a run of {series.name} is not where it was written: {error.what}",
            hint="compare both again, and add the run: irdiff compare, irdiff history add",
        ) from error


def _codes(
    case_id: str, runs: Iterable[tuple[int, int, tuple[Path, Run]]], count: int
) -> tuple[dict[int, _Code], list[int]]:
    """Returns the launchable code of a case by version place, one for each machine code, and for each version
    the place of its code.
    """
    alike = list(range(count))
    by_place: dict[int, _Code] = {}
    for base, head, (folder, run) in runs:
        case = next((case for case in run.cases if case.id == case_id), None)
        if case is None:
            continue
        if case.verdict in _SAME_CODE:
            alike[head] = alike[base]
        for place, which in ((base, "base"), (head, "head")):
            code = _code(case, which, run, folder)
            if code is not None:
                by_place.setdefault(alike[place], code)
    return {kind: code for kind, code in by_place.items() if kind in alike}, alike


def _code(case: Case, which: str, run: Run, folder: Path) -> _Code | None:
    artifacts, metadata = case.artifacts.of(which), case.metadata.of(which)
    binary = next((artifacts[stage] for stage in BINARIES if stage in artifacts), None)
    launch = run.launches.get(case.launches.of(which) or "")
    if binary is None or launch is None or not metadata or not _file(folder, binary.digest).is_file():
        return None
    return _Code(case=case, launch=launch, metadata=metadata, binary=binary, folder=folder)


def _entry(case_id: str, label: str, reference: _Code, code: _Code) -> Case:
    stage = reported(code.binary.stage)
    return replace(
        code.case,
        id=entry(case_id, label),
        verdict=Verdict.CHANGED,
        origin=None,
        stages={stage: StageStatus.CHANGED},
        facts=Sides(base={}, head={}),
        findings=(),
        nondeterministic=(),
        error=None,
        failures=Sides(base=None, head=None),
        artifacts=Sides(base=_only(reference.binary), head=_only(code.binary)),
        launches=Sides(base=reference.launch.key, head=code.launch.key),
        metadata=Sides(base=reference.metadata, head=code.metadata),
        compile_s=Sides(base={}, head={}),
        group=None,
        edit=None,
    )


def _only(binary: Artifact) -> dict[str, Artifact]:
    return {binary.stage: binary}


def _file(folder: Path, digest: str) -> Path:
    return folder / "artifacts" / digest[:2] / digest[2:]


def _write(out: Path, run: Run, session: Session, files: Mapping[str, Path]) -> None:
    try:
        with run_place.replaced(out) as part:
            for digest, folder in sorted(files.items()):
                place = _file(part, digest)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(_file(folder, digest), place)
            with (part / "run.json").open("wb") as file:
                file.writelines(run_folder.stored(run))
            (part / FILE).write_bytes(_session.dump_json(session, indent=1) + b"\n")
    except OSError as error:
        raise HistoryError(
            f"{out} cannot be written: {error.strerror}", hint="name another folder"
        ) from error


def load(folder: Path) -> Session | None:
    """Returns None for an ordinary run. Raises HistoryError."""
    try:
        return _session.validate_json((folder / FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise HistoryError(
            f"{folder / FILE} is not what `irdiff history session` wrote: {error}",
            hint="write it again: irdiff history session OUT",
        ) from error
