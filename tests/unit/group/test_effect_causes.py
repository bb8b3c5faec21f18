from irdiff.findings import Finding, FindingKind
from irdiff.group import effect_causes
from irdiff.model import Bits, Effects, Hazard, HazardKind, Meaning, Witness


def cause_of(*hazards):
    witness = Witness(base=(), head=())
    effects = Effects(
        kind=Meaning.HAZARD,
        stage="ptx",
        bits=Bits.MAY_DIFFER,
        hazards=tuple(
            Hazard(kind=HazardKind.ORDER, what=what, detail=detail, witness=witness)
            for what, detail in hazards
        ),
    )
    cause = effect_causes.of(effects)
    return cause.subject, cause.detail, cause.count


def test_the_count_behind_a_hazard_leaves_out_other_hazards():
    assert cause_of(("lacks bar.sync", ""), ("lacks mbarrier.init", ""), ("lacks bar.sync", "")) == (
        "lacks bar.sync",
        "",
        2,
    )


def test_a_value_that_some_of_the_counted_hazards_have_is_followed_by_an_ellipsis():
    assert cause_of(("moves a load", "0 → 8"), ("moves a load", "0 → 16")) == ("moves a load", "0 → 8, …", 2)
    assert cause_of(("moves a load", "0 → 8"), ("moves a load", "0 → 8")) == ("moves a load", "0 → 8", 2)


def test_what_the_launch_passes_names_the_tuple_of_its_entries_only_where_no_entry_is_named():
    both = Finding(FindingKind.LAUNCH_DIFFERS, "shared,packed")
    assert both.words == "the launch passes another size of shared memory"
    alone = Finding(FindingKind.LAUNCH_DIFFERS, "packed")
    assert alone.words == "the launch passes another tuple of metadata for Triton's launcher"
