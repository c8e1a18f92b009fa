"""``batch_matmuls``: replaces many small matrix products by few large ones.

Products with a common factor: ``x0 @ w, x1 @ w, ...`` are the rows of one product ``[x0; x1; ...] @
w``. Sums of products are merged in ``sum_merging``, products of stacks in ``stacked_products``.
"""

from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.liveness import has_effect
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ops.indexing.basic import index
from letir.ops.linalg.matmul_einsum import matmul
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.passes.memory.aliases import is_view
from letir.passes.peephole_rules.stacked_products import flatten_products
from letir.passes.peephole_rules.sum_merging import combine_sums
from letir.passes.type_propagation import map_fitting_bodies

_MIN_PRODUCTS = 4  # products: with fewer, concatenating the factors costs as much as is saved
_MIN_VECTORS = 16  # matrix-vector products, for which BLAS has a faster routine
_MAX_ROWS = 256  # rows in total: for more rows one product is as fast as its parts
_MAX_ROWS_OF_ONE = 64


@entry_point
@paused_gc()
def batch_matmuls(fn: Lambda, *, exact: bool = False) -> Lambda:
    """Merge small matrix products into larger ones.

    Sums of thin products become one product of the concatenated factors; independent products with
    a common factor become parts of one product; a stack of small matrices times one large matrix
    becomes a product of two matrices. The order of summation is that of the larger product: results
    agree within the rounding bound, and with ``exact`` the program does not change. Also in bodies.
    Linear in the number of binds; ``fn`` itself is returned if nothing is merged.

    >>> from letir.ast.text.parser import parse
    >>> text = ", ".join(f"%{i}: float64[2, 3]" for i in range(4))
    >>> products = "".join(f"%{5 + i}: float64[2, 5] = matmul(%{i}, %4);" for i in range(4))
    >>> f = parse(f"lambda {text}, %4: float64[3, 5] {{ {products} return (%5, %6, %7, %8) }}")
    >>> print(batch_matmuls(f).listing(), end="")
    %5 = concatenate %0, %1, %2, %3, 0, None
    %6 = matmul %5, %4
    %7 = index %6, 0:2
    %8 = index %6, 2:4
    %9 = index %6, 4:6
    %10 = index %6, 6:8
    return (%7, %8, %9, %10)
    """
    return fn if exact else map_fitting_bodies(fn, _merge_products)


def _merge_products(fn: Lambda) -> Lambda:
    """``fn`` with its own products merged."""
    return flatten_products(_batch_products(combine_sums(fn)))


def _batch_products(fn: Lambda) -> Lambda:
    """``fn`` with its own products of a common factor merged."""
    sides = _common_sides(fn)
    if not sides:  # nearly all programs
        return fn
    batches = _Batches(sides)
    for position, bind in enumerate(fn.binds):
        batches.visit_bind(position, bind)
    worthwhile = [batch for batch in batches.all if batch.is_worth]
    return fn.with_binds(_Emission(fn, worthwhile).binds()) if worthwhile else fn


def _common_sides(fn: Lambda) -> dict[Local, int]:
    """For each small product, the position (0 or 1) of the factor shared with other products."""
    products = [bind for bind in fn.binds if bind.op is matmul and _is_thin_product(bind)]
    counts: dict[tuple, int] = {}
    for bind in products:
        for side in (0, 1):
            key = bind.args[side], side
            counts[key] = counts.get(key, 0) + 1
    sides: dict[Local, int] = {}
    for bind in products:
        left, right = (counts[bind.args[side], side] for side in (0, 1))
        if max(left, right) >= _MIN_PRODUCTS:
            sides[bind.binders[0]] = int(right >= left)
    return sides


def _is_thin_product(bind: Bind) -> bool:
    """Whether a bind is a product of two matrices, one with few rows or columns."""
    avals = [arg.type for arg in bind.args]
    if any(type(arg) is not Local or arg.type is None or arg.type.ndim != 2 for arg in bind.args):
        return False
    if avals[0].dtype != avals[1].dtype or avals[0].dtype.kind not in "fc":
        return False
    (m, k), n = avals[0].shape, avals[1].shape[1]
    return is_static_shape((m, k, n)) and min(m, n) <= _MAX_ROWS_OF_ONE and k > 0


@define(eq=False)
class _Batch:
    """Products with a common factor, which stand at ``anchor``; ``side`` is that factor's place."""

    side: int
    anchor: int
    members: list[Bind] = field(factory=list)
    rows: int = 0
    is_used: bool = False

    @property
    def is_worth(self) -> bool:
        """Whether one product is faster than all of these."""
        is_of_vectors = self.rows == len(self.members)
        return len(self.members) >= (_MIN_VECTORS if is_of_vectors else _MIN_PRODUCTS)


@define(eq=False)
class _Batches:
    """Finds batches in one pass.

    ``ready``: the position after which a value can be computed; views can be computed right after
    their base. A batch is ``open`` until it is large enough, or its results are used before a
    further factor is ready.
    """

    sides: dict[Local, int]
    all: list[_Batch] = field(factory=list)
    open: dict[tuple, _Batch] = field(factory=dict)
    batch_of: dict[Arg, _Batch] = field(factory=dict)
    ready: dict[Arg, int] = field(factory=dict)

    def visit_bind(self, position: int, bind: Bind) -> None:
        """Take a bind into account."""
        for arg in bind.args:
            if type(arg) is Local and arg in self.batch_of:
                self.batch_of[arg].is_used = True
        side = self.sides.get(bind.binders[0]) if bind.binders else None
        if side is not None:
            self.join_batch(position, bind, side)
            return
        if has_effect(bind):  # no bind moves past an effect
            self.open.clear()
        at = self.ready_position(bind.args[0]) if _may_move(bind) else position
        for binder in bind.binders:
            self.ready[binder] = at

    def ready_position(self, arg: Arg) -> int:
        """The position after which a value can be computed; -1 for a parameter."""
        # a batch that saves no time leaves all of its products in place
        at, batch = self.ready.get(arg, -1), self.batch_of.get(arg)
        return at if batch is None else max(at, batch.anchor)

    def join_batch(self, position: int, bind: Bind, side: int) -> None:
        """Add a product to the batch of its common factor, or to a new one."""
        own = bind.args[1 - side]
        # factors with the same dtype and length, to which the common factor fits
        key = bind.args[side], side
        rows = own.type.shape[side == 0]
        batch = self.open.get(key)
        if batch is None or rows > _MAX_ROWS_OF_ONE or batch.rows + rows > _MAX_ROWS:
            batch = None
        elif self.ready_position(own) >= batch.anchor:
            if batch.is_used:
                batch = None
            else:
                batch.anchor = position
        if batch is None:
            batch = self.open[key] = _Batch(side, position)
            self.all.append(batch)
        batch.members.append(bind)
        batch.rows += rows
        self.batch_of[bind.binders[0]], self.ready[bind.binders[0]] = batch, position


def _may_move(bind: Bind) -> bool:
    """Whether a bind makes a view of one array, which can be computed right after it."""
    return is_view(bind) and len(bind.args) == 1 and type(bind.args[0]) is Local


@define(eq=False)
class _Emission:
    """Emits the binds of a program with batched products."""

    fn: Lambda
    batches: list[_Batch]
    builder: LetBuilder = field(factory=LetBuilder)
    done: set[int] = field(factory=set)  # ids of binds that are emitted or replaced
    producers: dict[Arg, Bind] = field(factory=dict)  # view -> its bind

    def binds(self) -> list[Bind]:
        """All binds in their order."""
        anchors = {batch.anchor: batch for batch in self.batches}
        self.done.update(id(bind) for batch in self.batches for bind in batch.members)
        self.producers = {bind.binders[0]: bind for bind in self.fn.binds if _may_move(bind)}
        for position, bind in enumerate(self.fn.binds):
            if position in anchors:
                self.emit_product(anchors[position], bind)
            if id(bind) not in self.done:
                self.builder.binds.append(bind)
                self.done.add(id(bind))
        return self.builder.binds

    def emit_product(self, batch: _Batch, last: Bind) -> None:
        """Emit the product of a batch, and its parts."""
        side, builder = batch.side, self.builder
        owns = [bind.args[1 - side] for bind in batch.members]
        for own in owns:
            self.emit_views(own)
        builder.source = last.source
        axis = int(side == 0)
        (whole,) = builder.emit(concatenate, tuple(owns), Attrs(axis=axis, dtype=None))
        factors = (whole, last.args[1]) if side else (last.args[0], whole)
        (product,) = builder.emit(matmul, factors)
        start = 0
        for bind, own in zip(batch.members, owns, strict=True):
            part = slice(start, start + own.type.shape[axis])
            attrs = Attrs(item=(slice(None), part) if axis else part)
            builder.binds.append(bind.replace(op=index, args=(product,), attrs=attrs))
            start = part.stop

    def emit_views(self, arg: Arg) -> None:
        """Emit the views from which a factor is made, if they come later."""
        chain = []
        while arg in self.producers and id(self.producers[arg]) not in self.done:
            chain.append(self.producers[arg])
            arg = chain[-1].args[0]
        for bind in reversed(chain):
            self.builder.binds.append(bind)
            self.done.add(id(bind))
