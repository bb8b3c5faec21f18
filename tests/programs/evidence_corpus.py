"""Real edits of the corpus, one at a time: no miss and no alarm, judged against the compiler's own frontend.

    python -m tests.programs.evidence_corpus [--kind KIND …] [--every N] [--write]

`tests/data/evidence/edits.toml` lists the edits: file, launch, kind, old text, new text, and whether the IR of
the launch changes. That prediction comes from `tests/programs/evidence/frontend.py`, which shares nothing with irdiff but
the tensors that workloads are called with; it is made anew here, and `--write` puts it into the list.

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
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Compared, Repository

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
    """One edit with what was predicted and said of it now."""

    edit: Edit
    prediction: str
    default: str
    without_shortcut: str

    @property
    def missed(self) -> bool:
        return "changed" in self.without_shortcut.split("+") and self.default != self.without_shortcut

    @property
    def alarmed(self) -> bool:
        return self.prediction == "same" and set(self.default.split("+")) != {"unchanged"}


def load() -> list[Edit]:
    tables = tomllib.loads(LIST.read_text(encoding="utf-8"))["edit"]
    return [Edit(number=number, **table) for number, table in enumerate(tables, 1)]


def write(predictions: Sequence[str]) -> None:
    """Puts the predictions into the list, in its order."""
    head, *rest = LIST.read_text(encoding="utf-8").split(_PREDICTION)
    assert len(rest) == len(predictions)
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
        predictions = predict(edits, sides["base"], sides["head"], folder, shared)
        words = [word for edit in edits for word in ("--case", f"{edit.workload}:{edit.launch}")]
        compared = [
            comparing.compare_commits(
                repo, "base", "head", *words, *more, cache=comparing.new_cache(place, shared)
            )
            for place, more in ((folder / "default", []), (folder / "anew", ["--no-cache"]))
        ]
        return [
            CaseResult(
                edit=edit,
                prediction=prediction,
                default=_verdict(compared[0], edit),
                without_shortcut=_verdict(compared[1], edit),
            )
            for edit, prediction in zip(edits, predictions, strict=True)
        ]


def _verdict(compared: Compared, edit: Edit) -> str:
    return "+".join(compared.verdicts_of(edit.workload))


def predict(
    edits: Sequence[Edit], base: dict[str, str], head: dict[str, str], folder: Path, shared: Path
) -> list[str]:
    """`changed` or `same` of each edit, by what the frontend makes of its launch before and after."""
    request = []
    for name, files in (("base", base), ("head", head)):
        root = folder / f"frontend-{name}"
        for path, text in files.items():
            comparing.write(root / path.removeprefix("bench/"), text)
        request += [[str(root), edit.workload, edit.launch] for edit in edits]
    python = comparing.toolchain_python(shared)
    done = subprocess.run(
        [python, FRONTEND, _corpus_api(), str(ARCH)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TRITON_DEFAULT_FP_FUSION": "1"},
    )
    reply = json.loads(done.stdout)
    errors = [row["error"] for row in reply if "error" in row]
    assert not errors, errors[0]
    half = len(edits)
    return ["same" if reply[index] == reply[index + half] else "changed" for index in range(half)]


def _corpus_api() -> str:
    """The file of the module that workloads import, of the irdiff that is judged."""
    code = "import importlib.util as u; print(*u.find_spec('irdiff').submodule_search_locations)"
    done = subprocess.run([*comparing.PYTHON, "-c", code], capture_output=True, text=True, check=True)
    return str(Path(done.stdout.strip(), "worker", "corpus_api.py"))


def table(judged: Sequence[CaseResult]) -> list[str]:
    """One line a kind, and one for all."""
    columns = ("edits", "IR changed", "default", "no-shortcut", "misses", "alarms")
    counts: dict[str, Counter[str]] = {}
    for row in judged:
        for kind in (row.edit.kind, "all"):
            counted = counts.setdefault(kind, Counter())
            counted["edits"] += 1
            counted["IR changed"] += row.prediction == "changed"
            counted["default"] += "changed" in row.default.split("+")
            counted["no-shortcut"] += "changed" in row.without_shortcut.split("+")
            counted["misses"] += row.missed
            counted["alarms"] += row.alarmed
    order = sorted(counts, key=lambda kind: (kind == "all", kind))
    return [
        f"{'kind':12}" + "".join(f"{name:>13}" for name in columns),
        *(f"{kind:12}" + "".join(f"{counts[kind][name]:13}" for name in columns) for kind in order),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", action="append", help="only edits of this kind")
    parser.add_argument("--every", type=int, default=1, help="only every N-th edit")
    parser.add_argument("--write", action="store_true", help="put the predictions into the list")
    words = parser.parse_args()
    begin = time.monotonic()
    edits = [edit for edit in load() if not words.kind or edit.kind in words.kind][:: words.every]
    judged = judge(edits, comparing.shared_cache())
    if words.write:
        made = {row.edit.number: row.prediction for row in judged}
        write([made.get(edit.number, edit.prediction) for edit in load()])
    for row in judged:
        edit = row.edit
        stale = row.prediction != edit.prediction and not words.write
        if row.missed or row.alarmed or stale or row.default != row.without_shortcut:
            why = [
                word
                for word, is_so in (("miss", row.missed), ("alarm", row.alarmed), ("stale", stale))
                if is_so
            ]
            print(
                f"{edit.workload}:{edit.launch} ({edit.kind} in {edit.file}): IR {row.prediction}, {row.default} by "
                f"default, {row.without_shortcut} without shortcut: {', '.join(why) or 'no miss'}"
            )
    print("\n".join(table(judged)))
    print(f"{len(judged)} edits in {time.monotonic() - begin:.0f} s")
    stale = any(row.prediction != row.edit.prediction for row in judged) and not words.write
    return 1 if stale or any(row.missed or row.alarmed for row in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
