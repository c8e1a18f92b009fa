"""Profiles of plans: time and bytes by group, as a table and as trace events."""

import json

import numpy as np
import pytest

import letir as lt
from letir.errors import LetirError

X = np.random.default_rng(5).normal(size=(150, 200))


def steps(x):
    y = np.sort(x * 2 + 1, axis=0)
    return y @ y.T


def test_groups_have_their_times_and_bytes():
    found = lt.compile(lt.trace(steps, X)).profile(X)

    names = [group.name for group in found.groups]
    assert ["group of mul, add", "sort", "transpose", "matmul"] == names
    assert [4 * X.nbytes, 2 * X.nbytes, 0] == [group.bytes for group in found.groups[:3]]
    assert ["mul", "add"] == [step.name for step in found.groups[0].steps]
    assert 0 < sum([group.seconds for group in found.groups]) <= found.seconds
    ends = [group.begin + group.seconds for group in found.groups]
    assert all(a <= b.begin for a, b in zip(ends, found.groups[1:], strict=False))


def test_a_profile_prints_as_a_table():
    first, heads, *rows = str(lt.compile(lt.trace(steps, X)).profile(X)).split("\n")

    assert first.endswith(" us")
    assert ["time", "share", "bytes", "GB/s", "group", "line"] == heads.split()
    assert 4 == len(rows)
    assert all("test_plan_profile.py:" in row and "%" in row for row in rows)


def test_trace_events_follow_the_format(tmp_path):
    """https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU"""
    path = tmp_path / "plan.json"
    lt.compile(lt.trace(steps, X)).profile(X).save(path)
    found = json.loads(path.read_text())

    assert {"traceEvents", "displayTimeUnit"} == found.keys()
    (named, *events) = found["traceEvents"]
    assert ("M", "process_name") == (named["ph"], named["name"])
    assert ["group", "step", "step", *["group"] * 3] == [event["cat"] for event in events]
    for event in events:
        assert {"ph", "name", "cat", "ts", "dur", "pid", "tid", "args"} == event.keys()
        assert "X" == event["ph"]
        assert all(type(event[key]) is int for key in ("pid", "tid"))
        assert event["ts"] >= 0 <= event["dur"]
        assert all(type(event[key]) is str for key in ("name", "cat"))
    group, *inner = events[:3]
    for event in inner:  # the viewer nests events by their times
        assert group["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= group["ts"] + group["dur"] + 1e-3


def test_a_program_with_effects_runs_once(capsys):
    def f(x):
        lt.debug.print("seen")
        return x * 2

    program = lt.trace(f, X)
    capsys.readouterr()
    lt.compile(program).profile(X)

    assert "seen\n" == capsys.readouterr().out


def test_arguments_are_checked():
    with pytest.raises(LetirError):
        lt.compile(lt.trace(steps, X)).profile(X[0])
