"""Visitors: tail calls, state in arguments, variants, visitors of users [A4]."""

import numpy as np
import pytest

import letir as lt
from letir.ast.terms import Let
from letir.ast.text.parser import parse
from letir.visitors.visitor import Visitor
from tests.hazards.small_stack import on_a_small_stack

LONG = 100_000


class Names(lt.ExprVisitor):
    """The names of the operations, joined; ``last`` ends them."""

    def visit_let(self, let, *names, last="."):
        return lt.TailCall(let.body, *names, let.bind.op.name, last=last)

    def visit_ret(self, ret, *names, last="."):
        return " ".join(names) + last


class Flops(lt.ExprVisitor):
    """A user's visitor: an estimate of the floating operations of a program."""

    def visit_let(self, let, flops):
        bind = let.bind
        if bind.op.name == "matmul":
            return lt.TailCall(
                let.body, flops + 2 * bind.args[0].type.size * bind.args[1].type.shape[1]
            )
        if bind.op.elementwise:
            return lt.TailCall(let.body, flops + bind.binders[0].type.size)
        return lt.TailCall(let.body, flops)

    def visit_ret(self, ret, flops):
        return flops


class Count(lt.ExprVisitor):
    """Counts binds."""

    def visit_let(self, let, count):
        return lt.TailCall(let.body, count + 1)

    def visit_ret(self, ret, count):
        return count


def chain(length: int) -> lt.Lambda:
    """A program of ``length`` binds, each of which uses the one before."""
    lines = "".join(f"%{i} = neg(%{i - 1})\n" for i in range(1, length + 1))
    return parse(f"lambda %0 {{\n{lines}return %{length}\n}}")


def test_a_tail_call_continues_with_the_next_term():
    """[A4]"""
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %2 }")

    assert "exp neg." == Names().visit(f.body)


def test_a_body_without_binds_is_visited_as_its_return():
    assert "." == Names().visit(parse("lambda %0 { return %0 }").body)


def test_arguments_and_keywords_are_forwarded_to_every_term():
    """[A4]"""
    f = parse("lambda %0 { %1 = exp(%0); return %1 }")

    assert "first exp!" == Names().visit(f.body, "first", last="!")


def test_a_return_value_that_is_not_a_tail_call_ends_the_visit():
    class First(Names):
        def visit_let(self, let):
            return let.bind.op.name

    assert "exp" == First().visit(parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %2 }").body)


def test_a_return_value_may_be_None():
    class Nothing(Names):
        def visit_let(self, let):
            return None

    assert Nothing().visit(parse("lambda %0 { %1 = exp(%0); return %1 }").body) is None


def test_a_tail_call_may_skip_terms():
    class EveryOther(Names):
        def visit_let(self, let, *names):
            rest = let.body
            return lt.TailCall(rest.body if type(rest) is Let else rest, *names, let.bind.op.name)

    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); %3 = sin(%2); return %3 }")

    assert "exp sin." == EveryOther().visit(f.body)


def test_a_missing_variant_fails_when_the_class_is_made():
    """[A4]"""
    with pytest.raises(TypeError, match="Half lacks visit_ret: a visitor handles every variant"):

        class Half(lt.ExprVisitor):
            def visit_let(self, let):
                return None


def test_a_missing_variant_of_arguments_fails_too():
    with pytest.raises(TypeError, match="Half lacks visit_const"):

        class Half(lt.ArgVisitor):
            def visit_local(self, local):
                return None


def test_a_subclass_of_a_subclass_inherits_methods_and_may_replace_them():
    class Loud(Names):
        def visit_let(self, let, *names):
            return lt.TailCall(let.body, *names, let.bind.op.name.upper())

    f = parse("lambda %0 { %1 = exp(%0); return %1 }")

    assert ("EXP.", "exp.") == (Loud().visit(f.body), Names().visit(f.body))


def test_a_visitor_base_with_other_variants_checks_its_own_subclasses():
    class Scalars(Visitor):
        variants = {int: "visit_int", float: "visit_float"}  # noqa: RUF012  as the two bases do

    class Double(Scalars):
        def visit_int(self, n):
            return 2 * n

        def visit_float(self, x):
            return lt.TailCall(int(x))

    assert [6, 4] == [Double().visit(3), Double().visit(2.5)]
    with pytest.raises(TypeError, match="Half lacks visit_float"):
        type("Half", (Scalars,), {"visit_int": lambda self, n: n})


def test_a_value_of_no_variant_is_an_error_that_names_the_variants():
    with pytest.raises(TypeError, match="Names visits Let and Ret, not int"):
        Names().visit(3)


def test_passing_a_program_instead_of_its_body_is_an_error_with_the_remedy():
    with pytest.raises(TypeError, match="not Lambda: visit its body"):
        Names().visit(parse("lambda %0 { return %0 }"))


def test_an_exception_of_a_method_passes_through_unchanged():
    error = KeyError("the user's own")

    class Fails(Names):
        def visit_let(self, let):
            raise error

    with pytest.raises(KeyError) as caught:
        Fails().visit(parse("lambda %0 { %1 = exp(%0); return %1 }").body)
    assert error is caught.value


def test_an_argument_visitor_distinguishes_locals_from_constants():
    class Text(lt.ArgVisitor):
        def visit_local(self, local, places):
            return f"local {places.index(local)}"

        def visit_const(self, const, places):
            return f"constant {const.value}"

    f = parse("lambda %0, %1 { %2 = where(%1, 1.5, %0); return %2 }")

    found = [Text().visit(arg, f.params) for arg in f.binds[0].args]
    assert ["local 1", "constant 1.5", "local 0"] == found


def test_a_user_counts_floating_operations():
    f = lt.trace(lambda x, w: np.tanh(x @ w + 1.0), np.ones((4, 3)), np.ones((3, 5)))

    assert 2 * 4 * 3 * 5 + 4 * 5 + 4 * 5 == Flops().visit(f.body, 0)


def test_a_long_program_is_visited_on_a_small_stack():
    """[A4] 10^5 lets, a stack of 256 KiB."""
    f = chain(LONG)

    assert LONG == on_a_small_stack(lambda: Count().visit(f.body, 0))
