from __future__ import annotations

from irdiff.cli import ab_command
from irdiff.cli.ab_command import Candidate
from irdiff.model import Verdict

X, Y = "matmul/tma:fp16@sm_90", "moe/x:fp8@sm_90"


def told(build, *runs) -> str:
    return ab_command.render(
        "main", [Candidate(name=f"idea-{n}", run=run, call=f"run{n}") for n, run in enumerate(runs)]
    )


def test_what_only_some_candidates_do_comes_first(build) -> None:
    def run(*more):
        moved = build.case(X, Verdict.CHANGED, base={"registers": 10}, head={"registers": 12})
        rest = [build.case(Y, Verdict.CHANGED if more else Verdict.UNCHANGED)]
        groups = [
            build.group("g-all", X, title="both do `this`"),
            *(build.group(name, Y, title=name) for name in more),
        ]
        return build.run(moved, *rest, groups=tuple(groups))

    text = told(build, run(), run("only-one"))
    assert text.startswith("### A is `main`\n")
    assert "| B | `idea-0` | 1 of 2 | 0 | 0 | 1 | registers 1 worse, 0 better | `run0` |" in text
    assert text.index("only-one") < text.index("both do `this`")
    assert "| only-one | wrong-result risk |  | 1 |" in text
    assert f"| `{Y}` | unchanged | changed |" in text
    assert f"`{X}`" not in text


def test_candidates_that_agree_say_so(build) -> None:
    run = build.run(build.case(X))
    text = told(build, run, run)
    assert "Every case has the same verdict with each candidate." in text
    assert "none moved" in text


def test_names_are_text(build) -> None:
    text = ab_command.render(
        "a|b`<b>", [Candidate(name="<img src=x>|", run=build.run(build.case(X)), call="r")]
    )
    assert "<img" not in text.replace("`<img src=x>\\|`", "").replace("`<img src=x>&#124;`", "")
    assert (
        len({line.count("|") - line.count("\\|") for line in text.splitlines() if line.startswith("| B")})
        == 1
    )
