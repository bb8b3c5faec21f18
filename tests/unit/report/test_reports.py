"""What every report keeps to, whatever the run: its size, its honesty, no markup of a stranger's; what it says of timings."""

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from irdiff import gate
from irdiff.cli import time_command as command
from irdiff.compare import runtime
from irdiff.gate import outputs
from irdiff.github import comment
from irdiff.model import RuntimeEdit, Verdict
from irdiff.report import html, markdown, terminal, timing_summary
from irdiff.run import run_folder
from irdiff.timing.results import Measurement, NotTimed, OutputStatus, Speed, Unclear
from tests.unit import runs
from tests.unit.gate import policies
from tests.unit.runs import large_run
from tests.unit.timing.test_timing_file import check, found, gpu

NOWHERE = Path("nowhere")
HOSTILE = (
    "x`</details>|@octocat #1 <script>alert(1)</script> [a](javascript:b) https://evil.example\x1b[2J\u202e"
)


def hostile(text=HOSTILE):
    """A run whose every word is this one."""
    names = {"id": text, "target": text, "workload": text, "kernel": text, "error": text}
    case = runs.numbered(0, Verdict.CHANGED, **names)
    broken = runs.numbered(1, Verdict.BROKEN, id=text + "2", error=text)
    words = {"title": f"`{text}` {text}", "origin_stage": text, "pass_name": text, "reasons": (text,)}
    words["edit"] = ("+ ```" + text, "-" + text)
    groups = (
        runs.group(name, text, severity=text + word, **words) for name, word in (("g", " risk"), ("h", ""))
    )
    run = runs.run(case, broken, groups=tuple(groups), notes=(text,), command=(text,))
    base = replace(run.base, spec=text, version=text, note=text, ptxas={text: text})
    return replace(run, base=base, environment={text: text})


def printed(run, *, is_terminal=False, width=80, **more):
    file = io.StringIO()
    terminal.show(run, Path("run"), Console(file=file, force_terminal=is_terminal, width=width, **more))
    return file.getvalue()


FORMS = {
    "markdown": lambda run: markdown.render(run, NOWHERE),
    "html": lambda run: html.render(run, NOWHERE),
    "terminal": lambda run: printed(run, is_terminal=True),
    "pipe": printed,
    "svg": terminal.svg,
}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_a_stranger_reaches_a_screen(form):
    text = FORMS[form](hostile())
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert form not in ("html", "svg") or "<script>alert" not in text


def test_hostile_strings_make_no_markup():
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(FORMS["markdown"](hostile()))
    assert "<script" not in page
    assert 'href="' not in page
    assert page.count("<details") == page.count("</details>")


# Markdown


@pytest.mark.parametrize("limit", [1_000, 2_000, 4_000, 8_000, 60_000])
@pytest.mark.parametrize("run", [runs.large_run(600, 200, broken=40), runs.large_run(400, 0), hostile()])
def test_never_above_the_limit_and_never_without_the_verdict(run, limit):
    text = markdown.render(run, NOWHERE, limit=limit)
    assert len(text) <= limit
    assert re.match("### (✅|❌|⚠️) irdiff: ", text)


def test_a_comment_uses_its_room_and_counts_what_it_leaves_out():
    run = runs.large_run(600, 200)
    text = markdown.render(run, NOWHERE, limit=markdown.COMMENT)
    assert len(text) > markdown.COMMENT / 2
    shown = len(re.findall(r"^\| \d+ \|", text, re.MULTILINE))
    (left,) = re.findall(r"… (\d+) more groups: ", text)
    assert shown + int(left) == len(run.groups)


# terminal


def test_the_picture_is_whole_and_fetches_nothing():
    picture = terminal.svg(runs.large_run(60, 6))
    assert ET.fromstring(picture).tag.endswith("svg")
    assert "url(http" not in picture.replace(" ", "")
    assert "@font-face" not in picture


(NOTE,) = runtime.notes([RuntimeEdit(path="triton/runtime/jit.py", diff=())])
POLICY = policies.of({"kind": "verdict", "verdicts": ["broken"]})


def as_gate(form):
    return lambda run: form(gate.evaluate(run, POLICY, today=policies.TODAY))


REPORTS = {
    "terminal": printed,
    "html": lambda run: html.render(run, NOWHERE),
    "json": lambda run: run_folder.dump(run).decode(),
    "gate": as_gate(outputs.text),
    "gate as markdown": as_gate(outputs.markdown),
    "gate as json": as_gate(outputs.as_json),
    **{
        f"markdown of {limit}": (lambda run, limit=limit: markdown.render(run, NOWHERE, limit=limit))
        for limit in (1_000, *comment._LIMITS, markdown.LIMIT)
    },
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("run", [runs.run(), runs.large_run(200, 40)], ids=["empty", "large"])
def test_no_report_hides_that_the_runtime_differs(report, run):
    run = replace(run, notes=(NOTE, *(f"note {number} of many" for number in range(30))))
    assert NOTE.partition(";")[0] in REPORTS[report](run)


WHY = "only 3 processes measured it, any other timing verdict needs 18"
MESSAGE = "while timing, in process 3 of 18: did not end within its limit"


def measurement(speed, why="", ratio=1.0):
    fields = dict.fromkeys(Measurement.__dataclass_fields__, 1.0)
    unclear = Unclear.FEW_PROCESSES if why else None
    return Measurement(**fields | {"speed": speed, "unclear": unclear, "why": why, "ratio": ratio})


@pytest.fixture
def timings():
    hung, slow, unclear = found(cases=("hung", "slow", "unclear")).cases
    hung = replace(hung, outputs=check(OutputStatus.HANG, "head", MESSAGE))
    slow = replace(slow, measurement=measurement(Speed.SLOWER, ratio=1.1))
    unclear = replace(unclear, measurement=measurement(Speed.UNCLEAR, WHY))
    ended = "measuring ended early: GPU 0 cannot be opened"
    left = (NotTimed(case="left", reason=ended),)
    return replace(found(), cases=(hung, slow, unclear), gpus=(gpu("GPU-1", stopped=ended),), not_timed=left)


def test_a_report_has_faults_slow_cases_and_those_without_a_verdict(timings, snapshot):
    assert markdown.render(large_run(4, 0), NOWHERE, timing_summary.of_results(timings)) == snapshot


def test_the_terminal_says_why(timings, snapshot):
    stream = io.StringIO()
    command.show(timings, Console(file=stream, width=200))
    assert "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) == snapshot


@pytest.mark.parametrize(("form", "places"), [("markdown", 1), ("html", 2), ("pipe", 1)])
def test_a_long_first_line_is_never_cut(form, places):
    files = tuple(f"file {n} is behind a pointer of git-lfs" for n in range(20))
    run = runs.run(runs.numbered(0, Verdict.CHANGED), runs.numbered(1, Verdict.REMOVED), unexamined=files)
    assert FORMS[form](run).count("1 more case is launched at base only") == places
