"""Launches that ran on a GPU beside their reference: a line each in a terminal, a row each in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PEAKS = {
    "memory_tb_per_s": "memory",
    "peak_fp16_tflops": "fp16",
    "peak_tf32_tflops": "tf32",
    "peak_fp8_tflops": "fp8",
}
_TITLES = ("max abs err", "rel err", "rtol", "atol", "used", "time", "rate", "of peak")
_LEGEND = (
    "*rel err*: norm of the error over the norm of the reference; *used*: the largest error of an "
    "element over what `atol + rtol × |reference|` allows; *time*: median of 20 calls with a cold L2, "
    "everything that a call launches; *of peak*: the larger share, of the memory's peak or of that of "
    "the multiplied type."
)
_WIDTHS = (11, 8, 6, 6, 6, 12, 13, 16)


def heading() -> str:
    return "      " + f"{'launch':60}" + _columns(_TITLES)


def line(row: Mapping[str, Any]) -> str:
    """One launch: `wrong` with its reason, or `ok` with errors, tolerances and rates."""
    if not row["ok"]:
        return f"WRONG {row['id']}: {str(row.get('why'))[:160]}"
    return f"ok    {row['id']:60}" + _columns(_cells(row))


def last_line(rows: Sequence[Mapping[str, Any]]) -> str:
    right = sum(bool(row["ok"]) for row in rows)
    return f"{right} of {len(rows)} launches agree with their reference"


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of every launch. `used` is the largest error of an element over what its tolerance allows."""
    titles = ("launch", "", *_TITLES)
    lines = [
        f"{last_line(rows)}. {_LEGEND}",
        "",
        "| " + " | ".join(titles) + " |",
        "|---|---|" + "--:|" * len(_TITLES),
    ]
    for row in rows:
        state = "ok" if row["ok"] else f"**wrong**: {str(row.get('why'))[:160]}".replace("|", "\\|")
        lines.append("| " + " | ".join((f"`{row['id']}`", state, *_cells(row))) + " |")
    return "\n".join(lines) + "\n"


def _columns(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>{width + 1}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One text for each column. A `-` stands for what was not measured."""
    used, time_us, percent = row.get("tolerance_used"), row.get("median_us"), row.get("peak_percent")
    return (
        _short(row.get("max_abs_error"), ".1e"),
        _short(row.get("relative_norm"), ".1e"),
        _short(row.get("rtol"), "g"),
        _short(row.get("atol"), "g"),
        "-" if used is None else ">999" if used > 999 else f"{used:.2f}",
        "-" if time_us is None else f"{time_us:.1f} us",
        _rate(row),
        "-" if percent is None else f"{percent:.1f} % {_PEAKS.get(row['peak_of'], row['peak_of'])}",
    )


def _rate(row: Mapping[str, Any]) -> str:
    """The rate that the percentage of the peak is about."""
    if row.get("peak_of") == "memory_tb_per_s" and row.get("gb_per_s") is not None:
        return f"{row['gb_per_s']:.0f} GB/s"
    return "-" if row.get("tflops") is None else f"{row['tflops']:.1f} TFLOP/s"


def _short(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
