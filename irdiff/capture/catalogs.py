"""Catalogs: the launches of one workload for one target on one side, traced each time by its worker.

Only the catalog of a corpus that imports nothing outside of itself, its packages and Triton is cached
(`Corpus.self_contained`: irdiff's own corpus, packs, recorded tests). Its key is the corpus, the toolchain,
the worker's code and the environment. Failures that may be temporary are not cached: a missing module,
exhausted time or memory, a capture that died and was repeated without the frontend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irdiff import case_ids
from irdiff.adapters import adapter
from irdiff.capture import opened_files
from irdiff.capture.catalog import Catalog
from irdiff.capture.selection import WorkloadSelection
from irdiff.config import Config
from irdiff.model import CaptureFailure, Failure, FailureKind, Target
from irdiff.stages import Stage
from irdiff.store import Store, disk_space, sha256
from irdiff.store.memo import MemoStep
from irdiff.worker import protocol
from irdiff.worker.protocol import CatalogRequest, FailedLabel
from irdiff.worker_client import diagnosis
from irdiff.worker_client.diagnosis import Diagnosis
from irdiff.worker_client.worker_requests import Requests, read_result
from irdiff.worker_client.workers import EndedChild

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

STEP: MemoStep[dict[str, Any]] = MemoStep("catalog", __name__, dict[str, Any])


_NOTED = ("called", "left_out", "read", "missing", "caveats", "uncompared", "absent_variables")


class Capturer:
    def __init__(self, requests: Requests, store: Store, *, reuse: bool) -> None:
        self._requests = requests
        self._store = store
        self._reuse = reuse

    def again(self, side: Side, workload: str, target: Target, selection: WorkloadSelection) -> Catalog:
        """Captures in another process, with random addresses and hashes."""
        request = _request(side, workload, target, selection, self._requests.config)
        extra = side.corpus.extra_packages(workload, target)
        ask = partial(self._requests.ask, side.toolchain, extra, randomized=True)
        return adapter(Catalog).validate_python(self._with_texts(self._captured(request, ask)))

    def catalog(self, side: Side, workload: str, target: Target, selection: WorkloadSelection) -> Catalog:
        toolchain, corpus = side.toolchain, side.corpus
        request = _request(side, workload, target, selection, self._requests.config)
        is_kept = corpus.self_contained and self._reuse
        sources = [self._requests.environment_digest, toolchain.digest, corpus.digest]
        memo = self._store.memo(STEP, [sources, workload, target, selection])
        record = memo.get() if is_kept else None
        if record is not None and not opened_files.hold(record["opened"], corpus.root):
            record = None
        if record is None:
            ask = partial(self._requests.ask, toolchain, corpus.extra_packages(workload, target))
            record = self._captured(request, ask)
            if is_kept and not record["transient"]:
                memo.keep(record)
        return adapter(Catalog).validate_python(self._with_texts(record))

    def _with_texts(self, record: dict[str, Any]) -> dict[str, Any]:
        """Stores the texts of launches as artifacts."""
        launches = []
        for launch in record["launches"]:
            content = launch["launched"].encode()
            digest = sha256(content)
            if not self._store.has(digest):
                self._store.put(content)
            text = {"stage": Stage.LAUNCH, "digest": digest, "size_bytes": len(content)}
            launches.append({**launch, "launched": text})
        return {**record, "launches": launches}

    def _captured(
        self, request: CatalogRequest, ask: Callable[[CatalogRequest, Path], EndedChild]
    ) -> dict[str, Any]:
        with self._store.scratch() as folder:
            self._requests.config.changed_files.mkdir(parents=True, exist_ok=True)
            ended = ask(request, folder)
            result = read_result(folder)
            if result is None and request["select"]["frontend"]:
                # The frontend may have died of one launch: without it each has a child of its own to die in.
                without: CatalogRequest = {**request, "select": {**request["select"], "frontend": False}}
                why = self._requests.failure(ended, result, folder).message
                return {**self._captured(without, ask), "undigested": why, "transient": True}
            opened = opened_files.of_request(folder, Path(request["root"]))
            outcome = result["outcome"] if result else "died"
            if result and outcome in ("captured", "unsupported"):
                printed = diagnosis.of_file(folder / protocol.ERRORS)
                failed = result.get("failures", ())
                if failed:
                    disk_space.check(folder, self._requests.config.temporary_folder)
                root = f"{request['root']}/"  # of a copy of the repository, in the cache
                failures = [
                    _failure(
                        each["id"],
                        _message(each, failed, printed).replace(root, ""),
                        printed.excerpt.replace(root, ""),
                        expected=each["expected"],
                    )
                    for each in failed
                ]
                transient = any(each.get("transient") for each in failed)
            else:
                failure = replace(self._requests.failure(ended, result, folder), stage="capture")
                whole = case_ids.whole(request["workload"])
                failures = [CaptureFailure(id=whole, expected=True, failure=failure)]
                ran_out = failure.kind in (FailureKind.TIMEOUT, FailureKind.MEMORY)
                transient = result is None or ran_out or bool(result.get("transient"))
        noted: dict[str, Any] = {**result} if result and outcome == "captured" else {}
        return {
            "launches": noted.get("launches", []),
            "failures": list(map(asdict, failures)),
            "supported": outcome != "unsupported",
            "selection": request["select"],
            **{name: noted[name] for name in _NOTED if name in noted},
            "transient": transient,
            "opened": opened,
        }


def _request(
    side: Side, workload: str, target: Target, selection: WorkloadSelection, config: Config
) -> CatalogRequest:
    corpus = side.corpus
    return {
        "op": "catalog",
        "workload": workload,
        **corpus.place,
        "target": asdict(target),
        "select": selection.words,
        "note_calls": corpus.files is not None,
        "below": str(corpus.root) if corpus.kept else None,
        "changed": str(config.changed_files),
    }


def _message(failed: FailedLabel, all_failed: Sequence[object], printed: Diagnosis) -> str:
    """The compiler's own reason leads if the output is of this launch alone."""
    message = failed["message"]
    is_its_own = len(all_failed) == 1 and not message.startswith("EndedEarly")
    return printed.explained(message) if is_its_own else message


def _failure(name: str, message: str, stderr: str, *, expected: bool) -> CaptureFailure:
    failure = Failure(kind=FailureKind.ERROR, stage="capture", message=message, stderr=stderr)
    return CaptureFailure(id=name, expected=expected, failure=failure)
