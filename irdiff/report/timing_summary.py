"""Measured times as reports show them: one row a case, base ÷ head with its interval and noise floor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TimingRow:
    """One timed case. Ratios are head time ÷ base time: above 1 is slower."""

    case_id: str
    ratio: float
    low: float
    high: float
    noise: float
    """The half-width of the range around 1 in which an identical binary fell."""
    verdict: str
    why: str
    """Why there is no verdict, in words. Empty where there is one."""
    base_us: float
    head_us: float
    outputs: str
    """How the outputs of both sides compare, in words."""

    @property
    def words(self) -> str:
        """`+9.4 % (+9.2 % to +9.5 %), 60.23 → 65.87 µs, outputs bitwise equal`."""
        change, low, high = (f"{100 * (ratio - 1):+.1f} %" for ratio in (self.ratio, self.low, self.high))
        times = f"{self.base_us:.4g} → {self.head_us:.4g} µs"
        return f"{change} ({low} to {high}), {times}, outputs {self.outputs}"


@dataclass(frozen=True, kw_only=True)
class WrongOutput:
    """A case whose sides write different results, or of which a side faults or hangs."""

    case_id: str
    words: str


@dataclass(frozen=True, kw_only=True)
class TimingSummary:
    """The timings of one run."""

    headline: str
    device: str
    rows: tuple[TimingRow, ...]
    wrong: tuple[WrongOutput, ...]
