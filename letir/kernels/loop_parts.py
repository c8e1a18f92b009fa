"""The operands of a loop and the parameters of its body, sorted by role."""

from attrs import define, field

from letir.ast.bodies import bodies_of
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.kernels.scalar_lowering import NoKernel, expect_known


@define(eq=False)
class LoopParts:
    """The operands of a loop and the parameters of its body, by role (see ``BodyLayout``).

    ``numbers`` and the fields after it are the parameters of ``body``, in order.
    """

    bind: Bind
    test: Lambda | None
    body: Lambda
    ahead: tuple[Arg, ...]
    carry: tuple[Arg, ...]
    xs: tuple[Arg, ...]
    captured: tuple[Arg, ...]
    numbers: tuple[Local, ...] = field(init=False)
    carry_params: tuple[Local, ...] = field(init=False)
    x_params: tuple[Local, ...] = field(init=False)
    captured_params: tuple[Local, ...] = field(init=False)

    @classmethod
    def from_bind(cls, bind: Bind) -> "LoopParts":
        """The parts of a bind whose operation is a loop."""
        layout, args = bind.op.bodies, bind.args
        assert layout is not None
        start = layout.ahead
        first = start + layout.n_carry(bind)
        last = first + layout.n_elements(bind)
        *tests, body = bodies_of(bind)
        parts = args[:start], args[start:first], args[first:last], args[last:]
        return cls(bind, tests[0] if tests else None, body, *parts)

    def __attrs_post_init__(self):
        params = iter(self.body.params)
        layout = self.bind.op.bodies
        assert layout is not None
        self.numbers = tuple([next(params) for _ in range(layout.steps)])
        self.carry_params = tuple([next(params) for _ in self.carry])
        self.x_params = tuple([next(params) for _ in self.xs])
        self.captured_params = tuple(params)

    @property
    def steps(self) -> int | None:
        """The number of steps; None if it is unknown."""
        if self.test is not None:
            return None
        if self.ahead:
            lower, upper = [int(x.value) if type(x) is Const else None for x in self.ahead]
            return None if lower is None or upper is None else max(0, upper - lower)
        shapes = [x.type.shape for x in self.xs if x.type is not None]
        sizes = [shape[0] for shape in shapes if shape] + [self.bind.attrs["length"]]
        return next((n for n in sizes if type(n) is int), None)

    @property
    def n_own(self) -> int:
        """The number of results after the carry that the body does not return."""
        layout = self.bind.op.bodies
        return 0 if layout is None else layout.own(self.bind)

    @property
    def is_reverse(self) -> bool:
        """Whether a ``scan`` begins with the last element."""
        return self.bind.attrs.get("reverse", False)


def known_rows(aval: ArrayType | None) -> ArrayType:
    """The type of an array that a ``scan`` iterates over; its first size may be unknown."""
    if aval is None or not aval.shape:
        raise NoKernel
    expect_known(aval)
    return aval
