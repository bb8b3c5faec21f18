from __future__ import annotations

from dataclasses import dataclass

from irdiff import case_ids
from irdiff.model import Selection, Target
from irdiff.worker import protocol


@dataclass(frozen=True, kw_only=True)
class WorkloadSelection:
    """The frontend runs for the selected launches alone."""

    tiers: tuple[str, ...]
    """None means all."""
    labels: tuple[str, ...]
    """Globs of labels, or of launches below them; none means all."""
    frontend: bool = True
    """True if the frontend runs during capture, which gives launches an input digest."""
    configs: int | None = None
    """The most configs of an autotuner that count, from the first; None means all."""

    @property
    def words(self) -> protocol.SelectionWords:
        return {
            "tiers": list(self.tiers),
            "labels": list(self.labels),
            "frontend": self.frontend,
            "configs": self.configs,
        }


def of_workload(chosen: Selection, workload: str, target: Target, *, frontend: bool) -> WorkloadSelection:
    return WorkloadSelection(
        tiers=chosen.tiers,
        labels=case_ids.labels(chosen.cases, workload, target.name),
        frontend=frontend,
        configs=chosen.configs,
    )
