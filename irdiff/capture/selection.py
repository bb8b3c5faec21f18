"""Which launches count: of one workload, and of all."""

from __future__ import annotations

from dataclasses import dataclass

from irdiff import case_ids
from irdiff.model import Target
from irdiff.worker import protocol


@dataclass(frozen=True, kw_only=True)
class WorkloadSelection:
    """Launches of one workload that count; the frontend is run for these alone."""

    tiers: tuple[str, ...]
    """None means all."""
    labels: tuple[str, ...]
    """Globs of labels, or of launches below them; none means all."""
    frontend: bool = True
    """The frontend runs while launches are captured, and gives them an input digest."""
    configs: int | None = None
    """The most configs of an autotuner that count, from the first; None: all."""

    @property
    def words(self) -> protocol.SelectionWords:
        return {
            "tiers": list(self.tiers),
            "labels": list(self.labels),
            "frontend": self.frontend,
            "configs": self.configs,
        }


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which launches of all workloads count."""

    tiers: tuple[str, ...] = ()
    """None means all."""
    cases: tuple[str, ...] = ()
    """Patterns `family/workload:label@target`; none means all."""
    frontend: bool = True
    """As of `WorkloadSelection`."""
    configs: int | None = None
    """As of `WorkloadSelection`."""

    def selection(self, workload: str, target: Target) -> WorkloadSelection:
        labels = case_ids.labels(self.cases, workload, target.name)
        return WorkloadSelection(
            tiers=self.tiers, labels=labels, frontend=self.frontend, configs=self.configs
        )
