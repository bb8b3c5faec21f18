"""The completion of bash in a real bash: words that it takes apart are completed, and no part is said twice."""

import os
import pty
import select
import shutil
import subprocess
import time

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
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=own,
            stdout=own,
            stderr=own,
            env={"PATH": f"{folder}:{os.environ['PATH']}", "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""},
            start_new_session=True,
        )
        os.close(own)

    def type(self, text, until):
        """What the terminal shows from then on, until it shows a text."""
        os.write(self._terminal, text.encode())
        shown, end = "", time.monotonic() + 20
        while until not in shown and time.monotonic() < end:
            if select.select([self._terminal], [], [], 0.1)[0]:
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


TYPED = {
    "irdiff expl": "irdiff explain ",
    "irdiff compare triton==3.8": "irdiff compare triton==3.8.0 ",
    "irdiff compare triton=": "irdiff compare triton==3.8.0 ",
    "irdiff compare triton==3.8.0 tri": "irdiff compare triton==3.8.0 triton==3.8.0 ",
    "irdiff compare --triton=triton==3": "irdiff compare --triton=triton==3.8.0 ",
    "irdiff diff last g:": "irdiff diff last g:08df ",
    "irdiff diff  last   g:0": "irdiff diff  last   g:08df ",
    "irdiff diff last norm/rms:fp16/k#1@s": "irdiff diff last norm/rms:fp16/k#1@sm_90 ",
}


def test_a_word_is_completed_as_a_whole(bash):
    for typed, shown in TYPED.items():
        assert bash.type(f"{typed}\t", shown).endswith(shown)
        bash.type("\x15echo cle''ared\n", "cleared")
