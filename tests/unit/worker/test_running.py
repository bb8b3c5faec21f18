"""A program that runs while its launches are captured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from irdiff.worker import called, running


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "beside.py").write_text("def idle(): pass\n\n\ndef busy():\n    return 3\n")
    path = tmp_path / "bench" / "run.py"
    path.write_text(
        "import sys\nimport beside\n\nassert __name__ == '__main__'\nbeside.busy()\nsys.stdout.write(str(sys.argv))\n"
    )
    return path


def test_it_has_its_arguments_and_the_modules_beside_it(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.argv[:], sys.path[:]
    running.run("bench/run.py", "--small")
    assert capsys.readouterr().out == "['bench/run.py', '--small']"
    assert (sys.argv, sys.path) == before
    del sys.modules["beside"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("raise ValueError('wrong')", "ValueError: wrong"),
        ("sys.exit(3)", "ended with 3"),
        ("sys.exit('no')", "no"),
    ],
)
def test_whatever_ends_it_early_is_said(program: Path, line: str, said: str) -> None:
    program.write_text(f"import sys\n{line}\n")
    with pytest.raises(running.EndedEarly, match=said):
        running.run("bench/run.py")


@pytest.mark.parametrize("line", ["sys.exit()", "sys.exit(0)"])
def test_an_end_that_it_chose_is_no_failure(program: Path, line: str) -> None:
    program.write_text(f"import sys\n{line}\n")
    running.run("bench/run.py")


def test_functions_that_ran_are_known_by_file_and_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(called, "_codes", {})
    namespace: dict[str, object] = {}
    text = "def idle(): pass\n\n\n@property\ndef busy(self):\n    return 3\n\n\ndef hidden(): pass\n"
    exec(compile(text, "pkg/ops.py", "exec"), namespace)
    with called.watched():
        namespace["busy"].fget(None)  # type: ignore[attr-defined]
        with called.paused():
            namespace["hidden"]()  # type: ignore[operator]
    namespace["idle"]()  # type: ignore[operator]
    assert called.report() == ["pkg/ops.py:4"]
