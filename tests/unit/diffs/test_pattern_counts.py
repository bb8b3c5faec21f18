"""An operation is counted with all that it may go on with, and again where a loop encloses it."""

import re

import pytest

from irdiff.diffs.pattern_counts import Pattern, PatternCount

PTX = """\
.visible .entry kernel(
	.param .u64 .ptr .global .align 16 kernel_param_0
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<6>;
	mov.u32 	%r1, 0;
	bar.sync 	0;
$L__BB0_1:
	fma.rn.f32 	%r2, %r3, %r4, %r2;
	bar.sync 	0;
	add.s32 	%r1, %r1, 1;
	setp.lt.s32 	%p1, %r1, 8;
	@%p1 bra 	$L__BB0_1;
	bar.warp.sync 	-1;
	ret;
}
"""


@pytest.mark.parametrize(
    ("pattern", "total", "in_loops"),
    [
        (Pattern(words="bar"), 3, 1),
        (Pattern(words="bar.sync"), 2, 1),
        (Pattern(words="*.rn.*"), 1, 1),
        (Pattern(words="ba"), 0, 0),
        (Pattern(words="", expression=re.compile(r"bar\.(warp\.)?sync")), 3, 1),
    ],
)
def test_what_a_pattern_counts(pattern, total, in_loops):
    assert pattern.count("ptx", PTX) == PatternCount(total=total, in_loops=in_loops)


SASS = """\
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*0030*/               @P0 EXIT ;
        /*0040*/                   EXIT ;
"""


@pytest.mark.parametrize(("words", "total"), [("LDG", 2), ("LDG.E.128", 1), ("EXIT", 2), ("@P0", 0)])
def test_an_instruction_of_machine_code_counts_behind_its_predicate(words, total):
    assert Pattern(words=words).count("sass", SASS).total == total
