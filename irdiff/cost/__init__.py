"""An estimate of what a change does to the time of a launch, made without a GPU: head over base.

`launch_time.of_launch` gives the time of one counted launch, `estimate.estimate` compares both sides.
"""

from irdiff.cost.estimate import Confidence, Estimate, NotEstimated, estimate
from irdiff.cost.launch_time import LaunchTime, of_launch
from irdiff.cost.machine import Rates, rates

__all__ = [
    "Confidence", "Estimate", "LaunchTime", "NotEstimated", "Rates", "estimate", "of_launch", "rates",
]  # fmt: skip
