"""Liveness: which binds a program needs."""

from letir.ast.liveness import live_binds, needed_binds
from letir.ast.text.parser import parse

FN = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); %3 = sin(%0); return %1 }")


def test_live_binds_are_those_whose_results_are_used():
    assert FN.binds[:1] == live_binds(FN)


def test_requested_binds_are_kept_with_what_they_depend_on():
    fn = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); %3 = sin(%0); return %0 }")

    kept = needed_binds(fn.binds, fn.ret, lambda bind: bind.op.name == "neg")

    assert ["exp", "neg"] == [bind.op.name for bind in kept]
