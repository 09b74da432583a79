"""What can be simulated, and what a person who mistypes it is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpubroker.devices.simulated_spec import MODELS, SpecError, parse_spec, place


def test_a_count_and_a_model_make_whole_gpus():
    gpus = parse_spec("2xH200")
    assert [(gpu.model.name, gpu.model.memory_mib, gpu.profiles) for gpu in gpus] == [
        ("NVIDIA H200", 143771, ())
    ] * 2


def test_kinds_are_mixed_with_commas_in_order():
    gpus = parse_spec("1xA100:3g.40gb+4g.40gb, 2 x l4")
    assert [gpu.profiles for gpu in gpus] == [("3g.40gb", "4g.40gb"), (), ()]
    assert [gpu.model.name for gpu in gpus][1:] == ["NVIDIA L4", "NVIDIA L4"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "is not a description"),
        ("H200", "is not a description"),
        ("2xH200x", "not a GPU that can be simulated"),
        ("2xB999", "there are H200, H100, A100"),
        ("0xH200", "between 1 and 64"),
        ("65xL4", "between 1 and 64"),
        ("1xL4:1g.5gb", "has no MIG"),
        ("1xA100:3g.71gb", "not a MIG profile of A100"),
        ("1xA100:", "not a MIG profile"),
        ("1xA100:4g.40gb+4g.40gb", "do not fit together"),
        ("1xA100:" + "+".join(["1g.10gb"] * 8), "7 slices"),
        ("1xA30:2g.12gb+2g.12gb+1g.6gb", "4 slices"),
        ("-1xH200", "is not a description"),
        ("2xH200\n; rm -rf /", "is not a description"),
    ],
)
def test_a_bad_description_is_refused_with_what_to_write(spec, says):
    with pytest.raises(SpecError) as refusal:
        parse_spec(spec)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("profiles", "starts"),
    [
        (("3g.40gb", "4g.40gb"), (4, 0)),
        (("3g.40gb", "3g.40gb"), (0, 4)),
        (("1g.10gb", "4g.40gb", "2g.20gb"), (6, 0, 4)),
        # The memory of two halves is all there is, though a compute slice is left.
        (("3g.40gb", "3g.40gb", "1g.10gb"), None),
        (("7g.80gb", "1g.10gb"), None),
    ],
)
def test_instances_lie_where_the_real_gpu_would_put_them(profiles, starts):
    assert place(MODELS["A100"], profiles) == starts


@given(st.lists(st.sampled_from(sorted(MODELS["H200"].profiles or {})), min_size=1, max_size=9))
def test_instances_that_fit_never_overlap(profiles):
    known = MODELS["H200"].profiles or {}
    starts = place(MODELS["H200"], profiles)
    if starts is None:
        return
    taken = [
        slice_
        for name, start in zip(profiles, starts, strict=True)
        for slice_ in range(start, start + known[name].size)
    ]
    assert len(taken) == len(set(taken))
    assert max(taken) < 8
    assert sum(known[name].slices for name in profiles) <= 7
