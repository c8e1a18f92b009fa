"""``Plan``: a program as a list of steps on a list of slots, the fastest way to run it at once.

A run copies the list of constants, puts the arguments in front, and goes through the steps.
Results, errors, and the moment at which a value is freed, are those of ``run_forward``.
"""

import sys
from collections.abc import Sequence
from functools import partial
from operator import length_hint

import numpy as np

from letir.ast.terms import Lambda
from letir.errors import GuardError, InternalError
from letir.eval.evaluator import forget_values, root, say_where
from letir.plan.effect_log import EffectLog
from letir.plan.instructions import references
from letir.plan.slot_allocation import MANY, ONE, ONE_AND_CLEAR, TWO, TWO_AND_CLEAR, Table, laid_out


class Plan:
    """A program that can be run: ``run(leaves)`` on arrays in a row, of the types it was made for.

    ``donated``: positions of the arguments whose memory a run may take for its own values.

    Any number of threads may run one plan at once: what belongs to a run is in its list of slots.
    """

    __slots__ = ("__weakref__", "binds", "donated", "params", "ret", "tables")

    def __init__(self, fn: Lambda, donated: tuple = ()):
        # not fn, which keeps its plan: a cycle would outlive it
        self.params, self.binds, self.ret, self.donated = fn.params, fn.binds, fn.ret, donated
        self.tables: dict[object, Table] = {np: laid_out(fn, np, _call, donated)}  # by array module

    def run(self, leaves: list, xp=np, tries: bool = False, log: EffectLog | None = None) -> tuple:
        """The results in a row; ``leaves`` is emptied.

        ``tries``: a guard may fail without a word of where, for who then takes another plan;
        ``log``: what has happened until a guard failed, so that it does not happen again.
        """
        table = self.tables.get(xp) or self.table_for(xp)
        if len(leaves) != len(self.params):
            raise InternalError(f"a plan of {len(self.params)} arguments, found {len(leaves)}")
        v = leaves + table.rest
        leaves.clear()
        # the iterator tells how far it came: nothing is counted on the way
        steps, outer = iter(table.steps), sys.exception()
        try:
            for c in table.unused:
                v[c] = None
            if table.donated:
                v[table.counts] = references(v, table.donated)
            if log is not None and table.log is not None:
                log.count, v[table.log] = 0, log
            for kind, f, i, j, k, c in steps:
                if kind == ONE:
                    v[k] = f(v[i])
                elif kind == TWO:
                    v[k] = f(v[i], v[j])
                elif kind == TWO_AND_CLEAR:
                    v[k] = f(v[i], v[j])
                    v[c] = None
                elif kind == ONE_AND_CLEAR:
                    v[k] = f(v[i])
                    v[c] = None
                elif kind == MANY:
                    v[k] = f(*[v[n] for n in i])
                    for n in c:
                        v[n] = None
                else:
                    f(v, i, k, c)
            results = tuple([v[k] for k in table.results])
        except BaseException as error:
            v.clear()
            if tries and type(error) is GuardError:
                raise
            forget_values(error, outer)
            self.say_where(error, table, len(table.steps) - length_hint(steps) - 1)
            raise
        return _owned(table, results) if table.constants else results

    def table_for(self, xp) -> Table:
        """The table for another array module."""
        found = self.tables[xp] = laid_out(self.program(), xp, partial(_call, xp=xp))
        return found

    def program(self) -> Lambda:
        """What it was made of."""
        return Lambda(self.params, self.binds, self.ret)

    def say_where(self, error: BaseException, table: Table, at: int) -> None:
        """Add the let line of the step ``at``, and the user's."""
        if at < 0:
            return
        where = table.where[at]
        lines = where if type(where) is tuple else ((self.program(), where),)
        for fn, bind in lines:
            say_where(error, fn, bind)


def _owned(table: Table, results: tuple) -> tuple:
    """The results, copied where they share memory with a constant of the program [C4]."""
    found, constants = list(results), table.constants
    for i in table.shared:
        if id(root(found[i])) in constants:
            found[i] = found[i].copy(order="K")
    return tuple(found)


def plan_of(fn: Lambda) -> Plan:
    """The plan of ``fn``, made once and kept with it."""
    return fn.memo(Plan)


def _call(fn: Lambda, args: Sequence, xp=np) -> tuple:
    """The results of a body: how operations that hold Lambdas run them."""
    return fn.memo(Plan).run(args if type(args) is list else list(args), xp)
