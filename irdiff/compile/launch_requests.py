"""Builds requests about one launch for any worker, and the inputs that decide the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from irdiff.capture.selection import WorkloadSelection, of_workload
from irdiff.model import Launch, Selection, Target
from irdiff.store import Store
from irdiff.worker.protocol import Assembled, LaunchRequest, LaunchWords, Request
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import EndedChild

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side


class LaunchRequests:
    def __init__(
        self, requests: Requests, store: Store, wanted: Selection, *, reuse: bool, frontend: bool = True
    ) -> None:
        """`frontend`: whether it runs during capture, which gives launches an input digest."""
        self.requests = requests
        self.store = store
        self.wanted = wanted
        self.frontend = frontend
        self.reuse = reuse
        self._selections: dict[tuple[str, ...], WorkloadSelection] = {}
        """The selection with which a workload was captured under an interpreter, for a target: its host gets
        the same.
        """

    def select(self, side: Side, workload: str, target: Target, captured: WorkloadSelection) -> None:
        self._selections[place(side, workload, target)] = captured

    def selection(self, side: Side, workload: str, target: Target) -> WorkloadSelection:
        """Returns which launches a host must capture, and whether it runs the frontend."""
        captured = self._selections.get(place(side, workload, target))
        return captured or self.chosen(workload, target)

    def chosen(self, workload: str, target: Target) -> WorkloadSelection:
        return of_workload(self.wanted, workload, target, frontend=self.frontend)

    def inputs(self, side: Side, launch: Launch, target: Target) -> Sequence[object] | None:
        """Returns None if the results of the launch are not cached."""
        if launch.digest is None:
            return None
        extra = side.corpus.extra_packages(launch.id, target)
        packages = extra.packages.digest if extra and extra.packages else extra is not None
        return [self.requests.environment_digest, launch.digest, side.toolchain.digest, packages]

    def ask(
        self,
        words: LaunchWords,
        side: Side,
        launch: Launch,
        target: Target,
        folder: Path,
        *,
        randomized: bool = False,
    ) -> EndedChild:
        """Leaves the results of `words` with one launch in `folder`. The worker may reuse an assembler's
        result for the same input.
        """
        about: LaunchRequest = {
            **side.corpus.place,
            "launch": launch.id,
            "target": asdict(target),
            "select": self.selection(side, launch.workload, target).words,
        }
        assembled: Assembled = {}
        if self.reuse and not randomized:
            assembled["assembled"] = str(self.store.assembled)
            assembled["programs"] = dict(side.toolchain.programs)
        request = cast("Request", {**words, **about, **assembled})
        extra = side.corpus.extra_packages(launch.id, target)
        return self.requests.ask(side.toolchain, extra, request, folder, randomized=randomized)


def place(side: Side, workload: str, target: Target) -> tuple[str, ...]:
    toolchain = side.toolchain  # two sides may be one interpreter with other settings
    return toolchain.digest, toolchain.python, str(side.corpus.root), workload, target.name
