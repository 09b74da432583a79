"""Job files: private, exact, gone when they are not needed."""

from __future__ import annotations

import os

import pytest

from jupyter_gpubroker.runner.spool import STALE_S, JobSpec, SpecLost, Spool

JOB = "0" * 32


@pytest.fixture
def spool(folders):
    return Spool(folders.state)


def test_a_spec_is_read_as_it_was_written(spool):
    # Arguments need be neither text nor free of anything a shell would see.
    argv = ("python", "-c", "print('a b; $(rm x)\n\"')", os.fsdecode(b"\xff\xfe"))
    spec = JobSpec(argv, "/tmp/some folder", 0o027, {"PATH": "/bin", "ODD": os.fsdecode(b"\x80")})
    spool.write(JOB, spec)
    assert spool.read(JOB) == spec


def test_specs_and_output_are_for_their_owner_alone(spool, folders):
    before = os.umask(0)
    try:
        spool.write(JOB, JobSpec(("true",), "/", 0o022, {"SECRET": "x"}))
        for descriptor in spool.open_outputs(JOB):
            os.close(descriptor)
    finally:
        os.umask(before)
    files = [path for path in folders.state.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in files} == {0o700}


def test_output_of_a_second_attempt_follows_that_of_the_first(spool):
    for text in (b"first\n", b"second\n"):
        stdout, stderr = spool.open_outputs(JOB)
        os.write(stdout, text)
        os.close(stdout)
        os.close(stderr)
    assert spool.output(JOB, "stdout").read_bytes() == b"first\nsecond\n"


@pytest.mark.parametrize("content", [None, "", "{", '{"argv": ["x"]}', "[]"])
def test_a_spec_that_vanished_or_broke_is_said_with_the_next_step(spool, folders, content):
    if content is not None:
        (folders.state / "spool").mkdir()
        (folders.state / "spool" / f"{JOB}.json").write_text(content)
    with pytest.raises(SpecLost, match="Submit it again"):
        spool.read(JOB)


def test_a_forgotten_spec_leaves_the_output(spool):
    spool.write(JOB, JobSpec(("true",), "/", 0o022, {}))
    for descriptor in spool.open_outputs(JOB):
        os.close(descriptor)
    spool.forget(JOB)
    spool.forget(JOB)
    with pytest.raises(SpecLost):
        spool.read(JOB)
    assert spool.job_ids() == [JOB]


def test_specs_that_a_crash_left_behind_are_swept_after_a_day(spool, folders):
    old, new = "1" * 32, "2" * 32
    for job_id in (old, new):
        spool.write(job_id, JobSpec(("true",), "/", 0o022, {}))
    path = folders.state / "spool" / f"{old}.json"
    then = path.stat().st_mtime - STALE_S - 1
    os.utime(path, (then, then))
    spool.sweep()
    assert [path.stem for path in (folders.state / "spool").iterdir()] == [new]


def test_the_spec_of_this_process_says_where_and_how_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLOUR", "blue")
    before = os.umask(0o031)
    try:
        spec = JobSpec.of_this_process(("true",))
    finally:
        assert os.umask(before) == 0o031
    assert (spec.cwd, spec.umask, spec.environment["COLOUR"]) == (str(tmp_path), 0o031, "blue")
