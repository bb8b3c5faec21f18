"""The examples of what people read, under `reports/`, made anew: `python -m tests.programs.examples` (`make examples`).

Three kinds, by what they are made from:

- `recorded`: the run in `tests/data/gate` with the timings of an H200. Needs no compiler: seconds.
- `sample`: Triton 3.8.0 against 3.9.0 over a few launches, with their recorded timings (`_timings_of`). Needs
  both releases: half a minute.
- the comments of three pull requests, by the steps of the workflows: `tests/integration/github`, which is
  started with `IRDIFF_EXAMPLES=1`. Needs 3.9.0: half a minute.

Every text comes from the code that users run. Tests make all of it again and compare; what no two runs have in
common (`settled`) is left out of the comparison, and a file in which nothing else moved is not written.
"""

from __future__ import annotations

import datetime
import gzip
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from irdiff import gate
from irdiff.gate import acceptance, outputs, policy, timings
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Outcome
from irdiff.github import comment
from irdiff.model import Fact, Run
from irdiff.report import html, markdown, terminal, timing_summary
from irdiff.run import run_archive, run_folder
from irdiff.timing import timing_file
from irdiff.timing.results import TimingResults

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "reports" / "examples"
SAMPLES = ROOT / "reports" / "samples"
RECORDED_RUN = ROOT / "tests" / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"
RECORDED_TIMING = SAMPLES / "timing-3.8.0-3.9.0.json"
TODAY = datetime.date(2026, 7, 1)
"""The day on which the gate is asked: the acceptances of the example hold on it."""

SAMPLE = ["--no-recheck", "--target", "sm_90", "--target", "gfx942"]
SAMPLE_CASES = (
    "matmul/pointer:fp16-4096", "matmul/block_pointer", "attention/flash_forward:full-d64",
    "normalization/softmax:bf16-64k-online", "loss/cross_entropy:bf16-smooth-50k",
    "reduction/scan:sort-fp32-256", "elementwise/vector_add:fp32-16m", "activation/rope:bf16-32x128",
)  # fmt: skip

_OF_AN_EARLIER_IRDIFF = """\
> An earlier irdiff timed this run, most cases in 6 processes. Today's irdiff calls a case slower, faster or `same` only
> after 18 processes. The cases that the earlier irdiff called slower or faster keep this answer, and the gate counts them,
> although today's irdiff would call them `unclear`. Those that the earlier irdiff called `same` are shown as `unclear`.

"""
"""irdiff does not write these lines: they stand above the examples for their readers."""

_VOLATILE = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\b"), "TIME"),
    (re.compile(r"\bin( |&#160;)\d+(\.\d+)?( |&#160;)s\b"), "in DURATION"),
    (re.compile(r'textLength="[\d.]+"'), "textLength"),
    (re.compile(r"\b[0-9a-f]{1,64}(?=…)"), "DIGEST"),
    (re.compile(r"(?<!&#)\b[0-9a-f]{10,64}\b"), "DIGEST"),
    (re.compile(r"`irdiff compare [^`]*…`"), "`irdiff compare, cut`"),  # where depends on a folder's length
    (re.compile(r"address-randomization=[^`<]*"), "address-randomization=ANY"),
)


def settled(text: str) -> str:
    """A text without what differs between two machines: times and digests."""
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return text


def recorded() -> dict[Path, str]:
    """What is rendered from the recorded run and its timings."""
    with run_archive.opened(RECORDED_RUN) as folder:
        run, measured = _in_todays_words(run_folder.load(folder)), timing_file.load(folder)
        assert measured is not None
        report = markdown.render(run, folder, timing_summary.of_results(measured), markdown.COMMENT)
        accepted = acceptance.load(ROOT / "tests" / "data" / "gate" / "passing-accepted.toml")
        default = _gated(run, measured, ROOT / "reports" / "irdiff-policy.toml")
        passing = _gated(run, measured, ROOT / "tests" / "data" / "gate" / "passing.toml", accepted)
        part = outputs.ReleaseRun(run=run, folder=folder, timing=measured, outcome=passing)
        document = outputs.render([part])
    return {
        EXAMPLES / "comment-timed.md": comment.body("default", report, "\n"),
        EXAMPLES / "gate-fails.md": f"{_OF_AN_EARLIER_IRDIFF}{outputs.markdown(default)}",
        EXAMPLES / "gate-passes.md": f"{_OF_AN_EARLIER_IRDIFF}{outputs.markdown(passing)}",
        EXAMPLES / "release-report.md": document,
    }


def _in_todays_words(run: Run) -> Run:
    """Groups of the recording with titles that irdiff would give them now: an earlier one wrote
    `llir: +vector shuffles, -float, registers 61 → 50`, with signs that did not say how many.
    """
    return replace(run, groups=tuple(replace(group, title=_todays(group.title)) for group in run.groups))


def _todays(title: str) -> str:
    words = re.sub(r"\bbarriers (?=\d)", "PTX barriers ", title)
    if not words.startswith("llir: "):
        return words
    parts = words.removeprefix("llir: ").split(", ")
    differing = dict.fromkeys(part[1:] for part in parts if part[:1] in ("+", "-"))
    figures = [part for part in parts if part[:1] not in ("+", "-")]
    return "; ".join(filter(None, (f"LLVM IR differs in {', '.join(differing)}", ", ".join(figures))))


def _gated(run: Run, measured: TimingResults, rules: Path, accepted: tuple[Accepted, ...] = ()) -> Outcome:
    return gate.evaluate(
        run,
        policy.load(rules),
        timings=timings.of_results(measured),
        notes=timings.reasons_not_timed(measured),
        accepted=accepted,
        today=TODAY,
    )


def sample(folder: Path) -> dict[Path, str]:
    """Compares over the sample's cases, in a run folder at `folder`, and renders every form of the report."""
    selected = [word for case in SAMPLE_CASES for word in ("--case", case)]
    sides = ["triton==3.8.0", "triton==3.9.0"]
    subprocess.run(
        [sys.executable, "-m", "irdiff", "compare", *sides, *SAMPLE, *selected, "--out", folder.name],
        check=True,
        capture_output=True,
        cwd=folder.parent,  # the report shows the command, cut to a length: no folder of this machine in it
    )
    run = _of_any_machine(run_folder.load(folder))
    timing = timing_summary.of_results(_timings_of(run))
    return {
        SAMPLES / "triton-3.8.0-3.9.0.md": markdown.render(run, folder, timing),
        SAMPLES / "triton-3.8.0-3.9.0.html.gz": html.render(run, folder, timing),
        ROOT / "reports" / "terminal.svg": terminal.svg(run, timing),
    }


def _of_any_machine(run: Run) -> Run:
    """Without how long the binaries are: debug information in them names folders of this machine."""
    cases = (
        replace(case, facts=case.facts.map(lambda facts: dict(facts, binary_bytes=0))) for case in run.cases
    )
    return replace(run, cases=tuple(cases))


def _timings_of(run: Run) -> TimingResults:
    """The recorded timings of the run's cases, where both binaries have the code size, the instructions and the
    resources of those that were timed. The binaries themselves were not recorded, and debug information in them
    has other paths today.
    """
    with run_archive.opened(RECORDED_RUN) as folder:
        timed_cases = {case.id: case.facts.map(_of_the_binary) for case in run_folder.load(folder).cases}
    same = {case.id for case in run.cases if timed_cases.get(case.id) == case.facts.map(_of_the_binary)}
    assert same, "no case of the sample is one that was timed"
    measured = timing_file.parse(RECORDED_TIMING.read_bytes(), str(RECORDED_TIMING))
    return replace(measured, cases=tuple(row for row in measured.cases if row.case in same))


def _of_the_binary(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {
        name: value
        for name, value in facts.items()
        if name.startswith("ptx.") or name in ("code_bytes", "registers", "stack_bytes")
    }


def read(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def keep(path: Path, text: str) -> bool:
    """Writes the text where it says anything that the file does not say; returns whether it did."""
    if path.exists() and settled(read(path)) == settled(text):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content, 9, mtime=0) if path.suffix == ".gz" else content)
    return True


def main() -> None:
    made = recorded()
    with tempfile.TemporaryDirectory() as folder:
        made |= sample(Path(folder) / "run")
    for path, text in made.items():
        print("made anew" if keep(path, text) else "as it was", path.relative_to(ROOT))
    stories = "tests/integration/github/test_workflow_steps.py::test_from_a_bare_clone_to_the_comment"
    subprocess.run(
        [sys.executable, "-m", "pytest", stories],
        check=True,
        cwd=ROOT,
        env={**os.environ, "IRDIFF_EXAMPLES": "1"},
    )


if __name__ == "__main__":
    main()
