"""Accepting a change of a real kernel: the bound of a mask."""

import pytest

from tests.integration.commits.checkouts import PLAN, commit, new_repository, write
from tests.texts import text_of

pytestmark = pytest.mark.integration

KERNEL = text_of("gate/kernel.py")
POLICY = text_of("gate/policy.toml")


def test_an_accepted_bound_does_not_settle_another(irdiff, tmp_path):
    repo = new_repository(tmp_path / "repo")

    def state(text: str) -> str:
        write(repo, {"irdiff.toml": PLAN, "bench/family/copy.py": text})
        return commit(repo, "a state")

    texts = {bound: KERNEL.replace("i < 100", f"i < {bound}") for bound in (100, 96, 120)}
    commits = {bound: state(text) for bound, text in texts.items()}
    shifted = state("# a comment\n\n" + texts[96])
    rules = tmp_path / "policy.toml"
    rules.write_text(POLICY)

    def compared(head: str) -> str:
        run = tmp_path / head
        words = ("compare", commits[100], head, "--target", "sm_90", "--no-recheck", "--no-attribute")
        result = irdiff(*words, "--out", str(run), cwd=repo)
        assert result.verdicts() == {"changed": 1}, result.stderr
        return str(run)

    seen, later = compared(commits[96]), compared(commits[120])
    who = ("--owner", "jane", "--reason", "looked at the bound", "--until", "2999-12-31")
    accept = irdiff("gate", seen, "--policy", str(rules), "--accept", "family/copy:a@sm_90", *who)
    assert accept.code == 0, accept.stdout + accept.stderr
    refused = irdiff("gate", later, "--policy", str(rules))
    assert refused.code == 1
    assert "the edit is another: jane accepted" in refused.stdout
    assert irdiff("gate", compared(shifted), "--policy", str(rules)).code == 0
