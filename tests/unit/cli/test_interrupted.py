"""What the last line says where somebody interrupts irdiff."""

from __future__ import annotations

import click
import pytest

from irdiff import cli
from irdiff.errors import BuildInterrupted


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (KeyboardInterrupt(), "interrupted; what was compiled is in the store"),
        (BuildInterrupted("what was built is kept: /x.tree"), "interrupted; what was built is kept: /x.tree"),
    ],
)
def test_it_says_what_is_kept(
    raised: BaseException, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def interrupted() -> None:
        raise raised

    monkeypatch.setattr(cli, "cli", interrupted)
    monkeypatch.setattr("sys.argv", ["irdiff"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err.strip() == told
