"""Which wide tests (`make test-all`) a change touches: `python -m tests.programs.wide FILE…`, its changed files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_SOUNDNESS = (
    *("irdiff/capture/", "irdiff/compare/", "irdiff/compile/", "irdiff/store/", "irdiff/worker", "irdiff/determinism/"),
    *("irdiff/resolve/", "irdiff/pipeline.py", "tests/data/evidence/", "tests/programs/evidence/"),
)  # fmt: skip
FOLDER = "tests/integration/"
WIDE: dict[str, Sequence[str]] = {
    # file below FOLDER: where a path begins that it is for
    "test_evidence.py": _SOUNDNESS,
    "test_false_alarms.py": ("irdiff/ir/", "irdiff/backends/", "irdiff/worker", "corpus/", "targets/"),
    "test_torch_launches.py": ("irdiff/worker/", "irdiff/capture/"),
    "test_tests_as_corpus.py": (
        "irdiff/worker/",
        "irdiff/resolve/test_",
        "irdiff/resolve/recorded_",
        "irdiff/gate/tests",
    ),
    "test_packs.py": ("irdiff/capture/", "irdiff/resolve/packs", "irdiff/worker/", "corpus/packs/"),
    "test_origin.py": ("irdiff/attribute/",),
    "test_runs_made_twice.py": ("irdiff/run/", "irdiff/pipeline.py", "irdiff/cli/", "irdiff/capture/"),
    "test_tools.py": ("irdiff/codegen/", "irdiff/attribute/"),
    "test_identity.py": ("irdiff/resolve/toolchains/", "irdiff/worker/"),
    "test_cluster.py": ("irdiff/cluster/", "tests/dask_machines.py"),
    "commits/test_kernel_authors.py": ("irdiff/capture/", "irdiff/cli/init", "irdiff/worker/"),
    "commits/test_native_builds.py": ("irdiff/resolve/toolchains/",),
    "github/test_workflow_steps.py": ("irdiff/github/", "reports/github/", ".github/actions/"),
}


def touched(changed: Sequence[str]) -> list[str]:
    """Paths of test files, those that changed themselves among them."""
    return [
        FOLDER + name
        for name, starts in WIDE.items()
        if FOLDER + name in changed or any(path.startswith(tuple(starts)) for path in changed)
    ]


def main() -> None:
    if found := touched(sys.argv[1:]):
        print(f"This change touches wide tests: `.venv/bin/pytest -m wide {' '.join(found)}`")
    else:
        print("This change touches no wide test.")


if __name__ == "__main__":
    main()
