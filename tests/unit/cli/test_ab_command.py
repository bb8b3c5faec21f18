from __future__ import annotations

from typing import Any

from irdiff.cli.ab_command import Candidate, render
from irdiff.model import Run, Verdict

X, Y = "matmul/tma:fp16@sm_90", "moe/x:fp8@sm_90"


def test_what_only_some_candidates_do_comes_first_and_names_are_text(build: Any) -> None:
    def run(*more: str) -> Run:
        moved = build.case(X, Verdict.CHANGED, base={"registers": 10}, head={"registers": 12})
        other = build.case(Y, Verdict.CHANGED if more else Verdict.UNCHANGED)
        groups = [build.group("g-all", X, title="both do `this`")]
        groups += [build.group(name, Y, title=name) for name in more]
        return build.run(moved, other, groups=tuple(groups))

    def rendered(*runs: Run, name: str = "idea", base: str = "main") -> str:
        return render(
            base, [Candidate(name=f"{name}-{n}", run=run, call=f"run{n}") for n, run in enumerate(runs)]
        )

    text = rendered(run(), run("only-one"))
    assert text.startswith("### A is `main`\n")
    assert "| B | `idea-0` | 1 of 2 | 0 | 0 | 1 | registers 1 worse, 0 better | `run0` |" in text
    assert text.index("only-one") < text.index("both do `this`")
    assert f"| `{Y}` | unchanged | changed |" in text
    assert f"`{X}`" not in text
    text = rendered(run(), run(), name="<img src=x>|", base="a|b`<b>")
    assert "Every case has the same verdict with each candidate." in text
    assert "<img" not in text.replace("`<img src=x>\\|-0`", "").replace("`<img src=x>\\|-1`", "")
