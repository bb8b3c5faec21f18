"""The first reason that a compiler gives, whatever it prints before and after."""

from operator import itemgetter

import pytest

from irdiff.worker_client import diagnosis
from tests.unit.golden import golden

MODULE = "\n".join(f"    %{n} = arith.addi %a, %b : i32" for n in range(2000))
ASSERTION = (
    "python3: /tmp/source/third_party/amd/lib/TritonAMDGPUTransforms/ConvertToBufferOps.cpp:486: virtual "
    "LogicalResult (anonymous namespace)::Convert::matchAndRewrite(Op, PatternRewriter &) const: "
    'Assertion `offset.getType() == expected && "no offset"\' failed.'
)
FAILED_PASS = (
    "/work/matmul.py:12:0: note: Pipeline failed while executing [`TritonAMDGPUConvertToBufferOps` on "
    "'builtin.module' operation]: reproducer generated at `std::errs, please share the reproducer`"
)


@pytest.mark.parametrize("row", golden("diagnosis")["case"], ids=itemgetter("name"))
def test_the_first_reason_leads(row):
    said = row["stderr"].replace("<MODULE>", MODULE)
    assert diagnosis.of_text(said).text.startswith(row["reason"])


def test_the_pass_and_the_ending_follow_the_reason():
    said = diagnosis.of_text(f"{ASSERTION}\n{FAILED_PASS}\n{MODULE}")
    assert said.pass_name == "TritonAMDGPUConvertToBufferOps"
    assert said.explained("the compiler died of SIGABRT").endswith(
        "(ConvertToBufferOps.cpp:486), in TritonAMDGPUConvertToBufferOps (the compiler died of SIGABRT)"
    )


def test_the_beginning_and_the_end_are_kept(tmp_path):
    path = tmp_path / "stderr"
    path.write_text(f"the beginning\n{MODULE}\nthe end\n")
    excerpt = diagnosis.of_file(path).excerpt
    assert excerpt.startswith("the beginning\n")
    assert excerpt.endswith("\nthe end")
    assert "bytes left out" in excerpt
    assert diagnosis.of_file(tmp_path / "none") == diagnosis.NOTHING
