"""Real edits of the corpus, one at a time: no miss and no alarm, judged against the compiler's own frontend.

    python -m tests.programs.evidence_corpus [--kind KIND …] [--every N] [--write]

`tests/data/evidence/edits.toml` lists the edits: file, launch, kind, old text, new text, and whether the IR of
the launch changes. That prediction comes from `tests/programs/evidence/frontend.py`, which shares nothing with
irdiff but the tensors that workloads are called with; it is made anew here, and `--write` puts it into the list.

Each edit has a copy of its file in one repository; base has them all as they are, head has them all edited.
Their launches are compared by default, with an empty store, and with `--no-cache`. A *miss* is a launch that
the default does not call changed although its machine code differs; an *alarm* is one whose IR is the same and
that the default does not call unchanged. Judges the irdiff of the interpreter that runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Repository

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "data" / "evidence" / "edits.toml"
FRONTEND = ROOT / "tests" / "programs" / "evidence" / "frontend.py"
ARCH = 90
_PREDICTION = "prediction = "


@dataclass(frozen=True, kw_only=True)
class Edit:
    number: int
    file: str
    """Of the corpus, without the suffix."""
    launch: str
    """Label of the launch that is compared."""
    kind: str
    """`elsewhere` is an edit of another kernel of the file than the launch has."""
    old: str
    new: str
    prediction: str
    """`changed` or `same`: the IR that the frontend makes of the launch."""

    @property
    def workload(self) -> str:
        return f"e{self.number:03}/{self.file.rpartition('/')[2]}"

    def texts(self) -> tuple[str, str]:
        """The file at base and at head."""
        base = (ROOT / "corpus" / f"{self.file}.py").read_text(encoding="utf-8")
        assert base.count(self.old) == 1, f"edit {self.number}: its old text is not once in {self.file}"
        return base, base.replace(self.old, self.new)


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One edit, and its prediction and verdicts now."""

    edit: Edit
    prediction: str
    default: str
    without_cache: str

    @property
    def missed(self) -> bool:
        return "changed" in self.without_cache.split("+") and self.default != self.without_cache

    @property
    def alarmed(self) -> bool:
        return self.prediction == "same" and set(self.default.split("+")) != {"unchanged"}

    @property
    def stale(self) -> bool:
        return self.prediction != self.edit.prediction

    def __str__(self) -> str:
        edit, why = self.edit, [word for word in ("missed", "alarmed", "stale") if getattr(self, word)]
        return (
            f"{edit.workload}:{edit.launch} ({edit.kind} in {edit.file}): IR {self.prediction}, {self.default} by "
            f"default, {self.without_cache} with --no-cache: {', '.join(why) or 'no miss'}"
        )


def load() -> list[Edit]:
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))["edit"]
    return [Edit(number=number, **table) for number, table in enumerate(tables, 1)]


def write(predictions: Sequence[str]) -> None:
    """Puts the predictions into the list, in its order."""
    head, *rest = LIST.read_text(encoding="utf-8").split(_PREDICTION)
    parts = [
        f'{_PREDICTION}"{prediction}"' + text[text.index("\n") :]
        for prediction, text in zip(predictions, rest, strict=True)
    ]
    LIST.write_text(head + "".join(parts), encoding="utf-8")


def judge(edits: Sequence[Edit], shared: Path) -> list[CaseResult]:
    """Predicts and compares all of them at once."""
    with comparing.workplace() as folder:
        repo = Repository.new(folder / "kernels")
        sides = {}
        for index, name in enumerate(("base", "head")):
            sides[name] = {f"bench/{edit.workload}.py": edit.texts()[index] for edit in edits}
            repo.commit(name, sides[name])
        predictions = predict(edits, sides, folder, shared)
        words = [word for edit in edits for word in ("--case", f"{edit.workload}:{edit.launch}")]
        default, anew = (
            comparing.compare_commits(
                repo, "base", "head", *words, *more, cache=comparing.new_cache(place, shared)
            )
            for place, more in ((folder / "default", []), (folder / "anew", ["--no-cache"]))
        )
        return [
            CaseResult(
                edit=edit,
                prediction=prediction,
                default=default.verdict_of(edit.workload),
                without_cache=anew.verdict_of(edit.workload),
            )
            for edit, prediction in zip(edits, predictions, strict=True)
        ]


def predict(edits: Sequence[Edit], sides: dict[str, dict[str, str]], folder: Path, shared: Path) -> list[str]:
    """`changed` or `same` of each edit, by what the frontend makes of its launch before and after."""
    request = []
    for name, files in sides.items():
        root = folder / f"frontend-{name}"
        for path, text in files.items():
            comparing.write(root / path.removeprefix("bench/"), text)
        request += [[str(root), edit.workload, edit.launch] for edit in edits]
    code = "import importlib.util as u; print(*u.find_spec('irdiff').submodule_search_locations)"
    found = subprocess.run([*comparing.PYTHON, "-c", code], capture_output=True, text=True, check=True)
    corpus_api = Path(found.stdout.strip(), "worker", "corpus_api.py")  # of the irdiff that is judged
    done = subprocess.run(
        [comparing.toolchain_python(shared), FRONTEND, corpus_api, str(ARCH)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TRITON_DEFAULT_FP_FUSION": "1"},
    )
    reply = json.loads(done.stdout)
    errors = [row["error"] for row in reply if "error" in row]
    assert not errors, errors[0]
    base, head = reply[: len(edits)], reply[len(edits) :]
    return ["same" if one == other else "changed" for one, other in zip(base, head, strict=True)]


def table(judged: Sequence[CaseResult]) -> list[str]:
    """One line a kind, and one for all."""
    counts: dict[str, Counter[str]] = {}
    for row in judged:
        found = {
            "edits": 1,
            "IR changed": row.prediction == "changed",
            "default": "changed" in row.default.split("+"),
            "--no-cache": "changed" in row.without_cache.split("+"),
            "misses": row.missed,
            "alarms": row.alarmed,
        }
        for kind in (row.edit.kind, "all"):
            counts.setdefault(kind, Counter()).update({name: int(value) for name, value in found.items()})
    order = sorted(counts, key=lambda kind: (kind == "all", kind))
    lines = [f"{kind:12}" + "".join(f"{count:13}" for count in counts[kind].values()) for kind in order]
    return [f"{'kind':12}" + "".join(f"{name:>13}" for name in counts["all"]), *lines]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", action="append", help="only edits of this kind")
    parser.add_argument("--every", type=int, default=1, help="only every N-th edit")
    parser.add_argument("--write", action="store_true", help="put the predictions into the list")
    words = parser.parse_args()
    edits = [edit for edit in load() if not words.kind or edit.kind in words.kind][:: words.every]
    judged = judge(edits, comparing.shared_cache())
    if words.write:
        made = {row.edit.number: row.prediction for row in judged}
        write([made.get(edit.number, edit.prediction) for edit in load()])
    wrong = [row for row in judged if row.missed or row.alarmed or (row.stale and not words.write)]
    for row in judged:
        if row in wrong or row.default != row.without_cache:
            print(row)
    print("\n".join(table(judged)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
