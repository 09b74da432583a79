"""Durations, sizes and the like: what is read, and what a refusal says."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubroker.quantities import duration_text
from jupyter_gpubroker import quantities
from jupyter_gpubroker.core import explain
from jupyter_gpubroker.quantities import QuantityError


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("90s", 90_000),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("1h 30m", 5_400_000),
        ("1 h 30 min", 5_400_000),
        ("500ms", 500),
        ("2d", 172_800_000),
        ("1.5h", 5_400_000),
        ("30M", 1_800_000),
        ("0s", 0),
    ],
)
def test_a_duration_is_read_with_its_units(text, expected_ms):
    assert quantities.duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10", "no unit"),
        ("-1h", "negative"),
        ("", "not a duration"),
        ("1x", "not a duration"),
        ("m", "not a duration"),
        ("1h1h", "same unit twice"),
        ("400d", "not between"),
        ("1h\n", None),
        ("10m; rm -rf /", "not a duration"),
    ],
)
def test_a_bad_duration_is_refused_with_the_way_to_write_it(text, said):
    if said is None:
        assert quantities.duration_ms(text) == 3_600_000
        return
    with pytest.raises(QuantityError, match=said) as refused:
        quantities.duration_ms(text)
    assert "1h30m" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_duration_below_the_least_one_is_refused():
    with pytest.raises(QuantityError, match="not between 1 s and"):
        quantities.duration_ms("999ms", least_ms=1_000)


@given(st.integers(0, 365), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_every_duration_written_in_parts_means_their_sum(days, hours, minutes, seconds):
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    expected_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert quantities.duration_ms(text) == expected_s * 1_000


@pytest.mark.parametrize(
    ("text", "expected_mib"),
    [("20G", 20_480), ("20GB", 20_480), ("20 GiB", 20_480), ("512m", 512), ("1.5g", 1_536)],
)
def test_a_size_is_read_with_its_unit(text, expected_mib):
    assert quantities.memory_mib(text) == expected_mib


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("20", "no unit"),
        ("-1G", "negative"),
        ("20K", "not a size"),
        ("0M", "not between"),
        ("999T", "not between"),
    ],
)
def test_a_bad_size_is_refused_with_the_way_to_write_it(text, said):
    with pytest.raises(QuantityError, match=said) as refused:
        quantities.memory_mib(text)
    assert "20G" in str(refused.value)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "two", "1025", ""])
def test_a_bad_number_of_gpus_is_refused(text):
    with pytest.raises(QuantityError, match="from 1 to 1024"):
        quantities.slot_count(text)


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("1g.18gb", "1g.18gb"),
        ("MIG-3g.71gb", "3g.71gb"),
        (" 1G.10GB ", "1g.10gb"),
        ("1g.10gb+me", "1g.10gb+me"),
    ],
)
def test_the_name_of_a_slice_is_read(text, profile):
    assert quantities.mig_profile(text) == profile


@pytest.mark.parametrize("text", ["", "1g", "huge", '1g.18gb"<b>'])
def test_what_is_no_slice_is_refused_with_where_to_find_them(text):
    with pytest.raises(QuantityError, match="gpubroker gpus"):
        quantities.mig_profile(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 s"),
        (400, "0.4 s"),
        (12_000, "12 s"),
        (90_000, "1 min 30 s"),
        (5_400_000, "1 h 30 min"),
        (3_600_000, "1 h"),
        (200_000_000, "2 d 8 h"),
        (1_799_600, "30 min"),
        (7_195_000, "2 h"),
        (86_399_999, "1 d"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(milliseconds, text):
    assert quantities.say_duration(milliseconds) == text


@given(st.text())
def test_no_text_is_read_as_a_duration_by_an_unforeseen_error(text):
    with contextlib.suppress(QuantityError):
        assert quantities.duration_ms(text) >= 0


@given(st.integers(1_000, 400 * 86_400_000))
def test_the_command_line_the_broker_and_the_kernel_say_a_duration_alike(milliseconds):
    said = quantities.say_duration(milliseconds)
    assert explain.duration(milliseconds) == said
    assert duration_text(milliseconds) == said


@given(st.integers(0, 366 * 86_400))
def test_what_is_said_of_a_duration_can_be_read_again(seconds):
    said = quantities.say_duration(seconds * 1_000)
    assert quantities.say_duration(quantities.duration_ms(said)) == said
