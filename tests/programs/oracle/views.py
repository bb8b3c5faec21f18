"""What irdiff writes of a run, without what may differ from one comparison to the next."""

from __future__ import annotations

import json
import re
from typing import Any

from irdiff.run import run_folder
from tests.programs.oracle.scenarios import ROOT, Place

_SHOWN_CASES = 2
_VOLATILE = ("created", "command", "duration_s", "irdiff_version", "normalizer_version", "environment")
_TIMES = re.compile(
    r"\b\d+(?:\.\d+)? ?(?:ms|s|min)\b|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\+\d\d:\d\d|Z)?)?"
)
_TRACE = re.compile(r"(ROOT/irdiff/worker/\w+\.py(?:\"|\\\\\"|&#34;)), line \d+, in")
"""Of irdiff's own code in a traceback."""
_LONG_HEX = re.compile(r"\b[0-9a-f]{7,64}\b")


def of(place: Place, *, noisy: bool) -> dict[str, str]:
    """By name. Of a compiler that disagrees with itself no digest can be compared."""
    run = place.run
    gate = ("gate", run, "--policy", "policy.toml")
    views = {
        "run.json": _run_json(place, noisy=noisy),
        "terminal.txt": place.irdiff("report", run),
        "report.md": place.irdiff("report", run, "--markdown", "-"),
        "gate.txt": place.irdiff(*gate),
        "gate.md": place.irdiff(*gate, "--markdown", "-"),
        "gate.json": place.irdiff(*gate, "--json", "-"),
        "gate.xml": place.irdiff(*gate, "--junit", "-"),
    }
    place.irdiff("report", run, "--html", "report.html")
    views["report.html"] = (place.folder / "report.html").read_text()
    changed = [case.id for case in run_folder.load(run).cases if case.verdict == "changed"]
    with_texts = (run / "artifacts").is_dir()
    for number, case in enumerate(changed[:_SHOWN_CASES] if with_texts else [], 1):
        views[f"diff-{number}.txt"] = place.irdiff("diff", run, case)
        views[f"explain-{number}.txt"] = place.irdiff("explain", run, case)
    return {name: _settled(text, place, noisy=noisy) for name, text in views.items()}


def _settled(text: str, place: Place, *, noisy: bool) -> str:
    text = _TIMES.sub("TIME", text.replace(str(place.folder), "FOLDER").replace(str(ROOT), "ROOT"))
    text = _TRACE.sub(r"\1, line N, in", text)
    return _LONG_HEX.sub("HEX", re.sub(r"nanosleep\.u32 \d+", "nanosleep.u32 N", text)) if noisy else text


def _run_json(place: Place, *, noisy: bool) -> str:
    row: dict[str, Any] = json.loads(run_folder.dump(run_folder.load(place.run)))
    for name in _VOLATILE:
        row.pop(name, None)
    for case in row["cases"]:
        case.pop("compile_s")
        if noisy:
            for name in ("edit", "artifacts", "metadata", "facts"):
                case.pop(name)
    return json.dumps(row, indent=1, sort_keys=True)
