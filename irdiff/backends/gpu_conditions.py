"""Reads what nvidia-smi says of NVIDIA's GPUs and the processes on them. AMD's are not read."""

from __future__ import annotations

import csv
from collections.abc import Mapping

FIELDS = (
    "uuid",
    "clocks.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "clocks_event_reasons.active",
    "ecc.mode.current",
    "mig.mode.current",
    "driver_version",
    "utilization.gpu",
)
PROGRAM = "nvidia-smi"
READINGS = (PROGRAM, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
PROCESSES = (PROGRAM, "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader")
UNFIT = {
    # nvml.h, nvmlClocksEventReason*
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
POWER_CAP = 0x4

Reading = Mapping[str, str]
"""One GPU at one moment, by the names of the fields."""


def parse_readings(text: str) -> list[Reading]:
    """The values that `READINGS` asks for."""
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    return [dict(zip(FIELDS, values, strict=True)) for values in lines if len(values) == len(FIELDS)]


def parse_processes(text: str) -> list[tuple[str, int]]:
    """(GPU UUID, process id) of what `PROCESSES` prints."""
    lines = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    return [(words[0], int(words[1])) for words in lines if len(words) == 2 and words[1].isdigit()]
