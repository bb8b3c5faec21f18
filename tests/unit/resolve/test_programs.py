"""What the workloads and labels of command lines are called."""

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import programs


def named(*commands):
    found = programs.named([programs.words_of(command) for command in commands])
    return {
        workload: {label: " ".join(words) for label, words in rows.items()}
        for workload, rows in found.items()
    }


def test_no_two_programs_and_no_two_command_lines_have_one_name():
    assert named("bench/run.py", "bench/run.py --small") == {
        "run": {"run": "bench/run.py", "small": "bench/run.py --small"}
    }
    assert named("alpha/bench/run.py", "beta/bench/run.py", "other.py") == {
        "alpha_bench_run": {"run": "alpha/bench/run.py"},
        "beta_bench_run": {"run": "beta/bench/run.py"},
        "other": {"run": "other.py"},
    }
    assert set(named("run.py", "bench/run.py")) == {"run", "bench_run"}
    assert set(named("-m pkg.bench", "pkg_bench.py")) == {"m_pkg_bench", "pkg_bench"}
    (labels,) = named("run.py --n 1", "run.py --n=1", "python run.py --n 1").values()
    assert sorted(labels.values()) == ["run.py --n 1", "run.py --n=1"]
    with pytest.raises(UsageError, match="one name"):
        named("a_b.py", "a/b.py", "c/b.py")
