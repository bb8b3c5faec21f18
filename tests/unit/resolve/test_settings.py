"""Settings that no release knows: what the error suggests."""

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import settings

REPLY = {"options": {"cuda": {"num_warps": ("int", 4)}}, "knobs": {"TRITON_DEFAULT_FP_FUSION": ("bool", "1")}}


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("NUM_WARP", "no file of triton==3.9.0 reads an environment variable", "did you mean num_warps?"),
        ("num_warp", "triton==3.9.0 has no launch option", "did you mean num_warps?"),
        ("TRITON_FP_FUSION", "no file of triton==3.9.0", "did you mean TRITON_DEFAULT_FP_FUSION?"),
        ("XYZ", "no file of triton==3.9.0", "a name in upper case is an environment variable"),
    ],
)
def test_a_name_that_is_not_known_has_similar_names_of_both_kinds(name, what, hint):
    spec = f"triton==3.9.0+{name}=8"
    with pytest.raises(UsageError) as raised:
        settings.check(spec, settings.split(spec)[1], REPLY, [])
    assert what in raised.value.what
    assert raised.value.hint.startswith(hint)
