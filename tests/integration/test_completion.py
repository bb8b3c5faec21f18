"""The completion of bash in a real bash: words that it takes apart are completed, and no part is said twice."""

import os
import pty
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from irdiff.cli.completion import completion_command
from tests.texts import text_of

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

IRDIFF = text_of("completion/irdiff.sh")


class Bash:
    """An interactive bash on a terminal of its own."""

    def __init__(self, folder):
        self._terminal, own = pty.openpty()
        env = {"PATH": f"{folder}:{os.environ['PATH']}", "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""}
        streams = {"stdin": own, "stdout": own, "stderr": own, "start_new_session": True}
        self._process = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], env=env, **streams)
        os.close(own)

    def type(self, text, until):
        """What the terminal shows from then on, until it shows a text."""
        os.write(self._terminal, text.encode())
        shown = ""
        while until not in shown:
            shown += os.read(self._terminal, 65536).decode(errors="replace")
        return shown

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


@pytest.fixture
def bash(tmp_path):
    (tmp_path / "irdiff").write_text(IRDIFF)
    (tmp_path / "irdiff").chmod(0o755)
    made = CliRunner().invoke(completion_command, ["bash"], standalone_mode=False)
    (tmp_path / "completion").write_text(made.output)
    shell = Bash(tmp_path)
    shell.type(f"source {tmp_path}/completion; echo re''ady\n", "ready")
    yield shell
    shell.close()


TYPED = text_of("completion/typed.txt").splitlines()
"""What is typed behind `irdiff`, and what the key Tab makes of it."""


def test_a_word_is_completed_as_a_whole(bash):
    for row in TYPED:
        typed, shown = (f"irdiff {words}" for words in row.split(" | "))
        assert bash.type(f"{typed}\t", shown).endswith(shown)
        bash.type("\x15echo cle''ared\n", "cleared")
