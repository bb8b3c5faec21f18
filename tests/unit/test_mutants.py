"""How mutants are told apart, and how those that nothing can notice are explained."""

from __future__ import annotations

import pytest

from tests.programs import mutants
from tests.programs.mutants import Mutant

DIFF = """--- irdiff/compare/verdicts.py
+++ irdiff/compare/verdicts.py
@@ -1,4 +1,4 @@
 def judge() -> bool:
-    same = False
+    same = None
     return same
"""
JUDGE = Mutant(function="irdiff/compare/verdicts.py:judge", before=("same = False",), after=("same = None",))


def test_a_mutant_is_known_by_its_lines_and_not_by_its_number() -> None:
    for number in (1, 23):
        assert mutants.of_diff(f"irdiff.compare.verdicts.x_judge__mutmut_{number}", DIFF) == JUDGE
    method = mutants.of_diff("irdiff.group.describer.xǁCaseDescriberǁ_edit__mutmut_1", DIFF)
    assert method.function == "irdiff/group/describer.py:CaseDescriber._edit"


def test_an_explanation_is_read_as_it_is_printed() -> None:
    text = f"# what this file is for\n\n{JUDGE}\n  both are false,\n  and it is only asked for that\n"
    assert mutants.read(text) == {JUDGE: "both are false, and it is only asked for that"}


def test_an_explanation_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="no reason is given"):
        mutants.read(f"{JUDGE}\n")


def test_the_explanations_can_be_read() -> None:
    for mutant, reason in mutants.read(mutants.EXPLAINED.read_text()).items():
        path, _, _ = mutant.function.partition(":")
        assert (mutants.ROOT / path).is_file()
        assert len(reason) > 20
