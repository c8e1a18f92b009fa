"""``combine_sums``: merges the sums of cotangents in gradient programs.

Every use of a value contributes to its cotangent. Contributions that are mostly zero, and thin
matrix products, are cheaper when merged and added at once.
"""

from typing import Any

from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import token
from letir.ast.builder import LetBuilder
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ast.types import Size
from letir.ops.elementwise.ufuncs import add
from letir.ops.indexing.basic import assemble, index_add
from letir.ops.indexing.index_expressions import group_parts, split_sizes
from letir.ops.linalg.matmul_einsum import matmul
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.transpose import transpose
from letir.ops.shape.unit_axes_and_flip import expand_dims
from letir.visitors.usedef import use_counts

_MIN_RATIO = 4  # parts of at most a fourth of an array are added to it one after the other
MAX_WAITING = 4  # unmerged terms may hold as many elements as this many results


@entry_point
@paused_gc()
def combine_sums(fn: Lambda) -> Lambda:
    """Merge sums of ``assemble``s into one, and sums of thin matrix products into one product.

    ``x0 @ y0 + x1 @ y1 = [x0 x1] @ [y0; y1]``, with the rounding of the single product. Merged
    terms wait for the last one, in the memory of at most four results. Linear in the number of
    binds; keeps parameters, results and all other binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[2], %1: float64[3] {
    ...   %2: float64[5] = assemble(%0, items=(:2,), shape=(5,));
    ...   %3: float64[5] = assemble(%1, items=(2:,), shape=(5,));
    ...   %4: float64[5] = add(%2, %3);
    ...   return %4 }''')
    >>> print(combine_sums(f).listing(), end="")
    %2 = assemble %0, %1, (:2, 2:), (5,)
    return %2
    """
    found = _absorbed_terms(fn)
    absorbed, writes = found.absorbed, found.writes
    if not absorbed:  # the usual case, which costs one test for each bind
        return fn
    builder, rows = LetBuilder(), _Rows(_waiting_vectors(fn, absorbed))
    sums: dict[Arg, Sum] = {}
    for bind in fn.binds:
        if not bind.binders:
            builder.binds.append(bind)
            continue
        binder, args = bind.binders[0], bind.args
        if binder in writes:
            builder.source = bind.source
            base, term = writes[binder]
            sums.pop(term).emit_total(binder, builder, base)
        elif binder in found.bases:
            builder.source = bind.source
            base, term = found.bases[binder]
            sums[binder] = sums.pop(term)
            sums[binder].add_before(base, builder)
        elif bind.op is add and args[0] in absorbed:
            builder.source = bind.source
            total = sums.pop(args[0]).merge_with(sums.pop(args[1]), binder.type.size, builder)
            if binder in absorbed:
                sums[binder] = total
            else:
                total.emit_total(binder, builder)
        elif binder in absorbed:
            builder.source = bind.source
            if bind.op is transpose:
                terms = sums.pop(args[0]).terms.transposed(builder)
            else:
                terms = _terms_of(bind, builder, rows)
            sums[binder] = Sum(terms)
        elif binder not in rows.vectors:
            builder.binds.append(bind)
    return fn.with_binds(builder.binds)


def _absorbed_terms(fn: Lambda) -> "_Terms":
    """The terms of the sums of a program that are merged."""
    terms = _Terms(fn)
    for bind in fn.binds:
        op = bind.op
        if op is assemble or op is matmul:
            if _is_term(bind):
                terms.kinds[bind.binders[0]] = op, bind.binders[0].type
        elif op is add and terms.kinds:
            if not terms.kinds.keys().isdisjoint(bind.args):
                terms.add_sum(bind)
        elif op is transpose and bind.args[0] in terms.kinds:
            terms.add_transpose(bind)
    return terms


@define(eq=False)
class _Terms:
    """The search for terms.

    ``kinds``: (op, type) of terms and their sums: only equal ones merge. ``absorbed``: locals used
    only as a term of a merged sum. ``writes``: {sum of an ``assemble`` and another value: (that
    value, the ``assemble``)}; ``bases``: the same of products, for the first term of a merged sum,
    and ``first`` for sums that may become such. ``transposed``: transpose of a product -> product.
    """

    fn: Lambda
    kinds: dict[Arg, tuple] = field(factory=dict)
    absorbed: set[Arg] = field(factory=set)
    writes: dict[Local, tuple[Local, Local]] = field(factory=dict)
    bases: dict[Local, tuple[Local, Local]] = field(factory=dict)
    first: dict[Arg, tuple[Local, Local]] = field(factory=dict)
    transposed: dict[Arg, Arg] = field(factory=dict)

    def is_used_once(self, arg: Arg) -> bool:
        """Whether a value is a local with one use: others have to be computed anyway."""
        return type(arg) is Local and use_counts(self.fn)[arg] == 1

    def add_transpose(self, bind: Bind) -> None:
        """Note the transpose of a product, which is the product of the transposed factors."""
        (product,) = bind.args
        is_term = self.kinds[product][0] is matmul and product not in self.absorbed
        if is_term and self.is_used_once(product):
            self.kinds[bind.binders[0]] = matmul, bind.binders[0].type
            self.transposed[bind.binders[0]] = product

    def add_sum(self, bind: Bind) -> None:
        """Note a sum of two values, of which at least one is a term or a sum of terms."""
        (x, y), kinds, binder = bind.args, self.kinds, bind.binders[0]
        if x in kinds and kinds[x] == kinds.get(y):
            if self.is_used_once(x) and self.is_used_once(y):
                self.absorb(x, y)
                kinds[binder] = kinds[x]
            return
        for base, term in ((x, y), (y, x)):
            op, kind = kinds.get(term, (None, None))
            if op is None or type(base) is not Local or base.type is not kind:
                continue
            if not self.is_used_once(term):
                continue
            assert type(term) is Local, "constants are not used once"
            if op is assemble:
                # the cotangent of an array that a loop reads and writes stays in one buffer
                self.absorb(term)
                self.writes[binder] = base, term
            elif base in self.first and self.is_used_once(base):
                self.bases[base] = self.first[base]
                self.absorb(base, term, self.first[base][1])
                kinds[binder] = op, kind
            else:
                self.first[binder] = base, term
            return

    def absorb(self, *terms: Arg) -> None:
        """Note that these are used only as terms of a merged sum."""
        self.absorbed.update(terms)
        self.absorbed.update([self.transposed[x] for x in terms if x in self.transposed])


def _waiting_vectors(fn: Lambda, absorbed: set[Arg]) -> dict[Local, Bind]:
    """The binds that turn a vector into a row or column used only in an absorbed product."""
    factors = {
        arg for b in fn.binds if b.op is matmul and b.binders[0] in absorbed for arg in b.args
    }
    counts = use_counts(fn)
    return {
        bind.binders[0]: bind
        for bind in fn.binds
        if bind.op is expand_dims
        and bind.binders[0] in factors
        and counts[bind.binders[0]] == 1
        and bind.binders[0].type.ndim == 2
    }


def _is_term(bind: Bind) -> bool:
    """Whether a bind may be merged: an ``assemble`` of known type, a product of thin matrices."""
    if any(type(arg) is not Local or arg.type is None for arg in bind.args):
        return False
    if bind.op is assemble:
        return bind.binders[0].type is not None
    x, y = [arg.type for arg in bind.args]
    if x.ndim != 2 or y.ndim != 2 or x.dtype != y.dtype or x.dtype.kind not in "fc":
        return False
    (m, k), n = x.shape, y.shape[1]
    # thin: the factors together are not larger than their product, which would be held instead
    return is_static_shape((m, k, n)) and k * (m + n) <= m * n


@define(eq=False)
class SummedParts:
    """The terms that are ``assemble``s: parts by index; parts of equal index are added first."""

    like: Bind
    kept: int = 0  # elements
    # (token of the item, arrays) -> (item, part, arrays)
    at: dict[tuple, tuple[Any, Local, tuple]] = field(factory=dict)

    def add_part(self, item: Any, part: Local, arrays: tuple, builder: LetBuilder) -> None:
        """Add one part."""
        place = token(item), arrays  # token: items are slices, which Python before 3.12 cannot hash
        if place in self.at:
            (part,) = builder.emit(add, (self.at[place][1], part))
        elif type(part.type.size) is int:
            self.kept += part.type.size
        self.at[place] = item, part, arrays

    def absorb(self, other: "SummedParts", builder: LetBuilder) -> None:
        """Add the parts of another sum."""
        for part in other.at.values():
            self.add_part(*part, builder)

    def add_to(self, base: Local, builder: LetBuilder) -> None:
        """Add each part to ``base``, which the evaluator does in place."""
        for item, part, arrays in self.at.values():
            attrs = index_add.complete({"item": item})
            (base,) = builder.emit(index_add, (base, part, *arrays), attrs)

    def emit_sum(self, builder: LetBuilder) -> Local:
        """The sum of all parts."""
        shape = self.like.attrs["shape"]
        sizes, _ = split_sizes(self.like.args, shape)
        items = tuple([item for item, _, _ in self.at.values()])
        operands = [arg for _, part, arrays in self.at.values() for arg in (part, *arrays)]
        attrs = assemble.complete({"items": items, "shape": shape})
        return builder.emit(assemble, (*sizes, *operands), attrs)[0]


@define(eq=False)
class _Rows:
    """Builds concatenated factors, and reuses a factor that several products share."""

    vectors: dict[Local, Bind]  # a column or a row -> how it is made of a vector
    emitted: dict = field(factory=dict)

    def side_by_side(self, factors: tuple[Local, ...], axis: int, builder: LetBuilder) -> Local:
        """The matrices concatenated along ``axis``."""
        if all(factor in self.vectors for factor in factors):
            stacked = self.stacked(tuple([self.vectors[f].args[0] for f in factors]), builder)
            attrs = transpose.complete({"axes": None})
            return builder.emit(transpose, (stacked,), attrs)[0] if axis else stacked
        for factor in factors:
            if factor in self.vectors:  # next to matrices, a vector is a matrix too
                builder.binds.append(self.vectors.pop(factor))
        if len(factors) == 1:
            return factors[0]
        if (axis, factors) not in self.emitted:
            attrs = concatenate.complete({"axis": axis, "dtype": None})
            (self.emitted[axis, factors],) = builder.emit(concatenate, factors, attrs)
        return self.emitted[axis, factors]

    def transposed(self, factor: Local, builder: LetBuilder) -> Local:
        """The transpose of a factor: a vector stays a vector, as a column instead of a row."""
        bind = self.vectors.get(factor)
        if bind is None:
            return builder.emit(transpose, (factor,), transpose.complete({"axes": None}))[0]
        rows, columns = factor.type.shape
        result = Local(factor.type.with_shape((columns, rows)), factor.name)
        attrs = expand_dims.complete({"axis": 1 - bind.attrs["axis"]})
        self.vectors[result] = Bind((result,), expand_dims, bind.args, attrs, bind.source)
        return result

    def stacked(self, vectors: tuple, builder: LetBuilder) -> Local:
        """The matrix whose rows are these vectors."""
        if vectors not in self.emitted:
            attrs = stack.complete({"axis": 0})
            (self.emitted[vectors],) = builder.emit(stack, vectors, attrs)
        return self.emitted[vectors]


@define(eq=False)
class SummedProducts:
    """The matrix products among the terms of a sum, by their factors."""

    left: list[Local]
    right: list[Local]
    kept: int  # elements
    rows: _Rows

    def absorb(self, other: "SummedProducts", builder: LetBuilder) -> None:
        """Add the products of another sum."""
        self.left += other.left
        self.right += other.right
        self.kept += other.kept

    def transposed(self, builder: LetBuilder) -> "SummedProducts":
        """The transpose of the sum."""
        left, right = [
            [self.rows.transposed(factor, builder) for factor in factors]
            for factors in (self.right, self.left)
        ]
        return SummedProducts(left, right, self.kept, self.rows)

    def emit_sum(self, builder: LetBuilder) -> Local:
        """The product of the left factors side by side and the right factors stacked."""
        factor = self.rows.side_by_side(tuple(self.left), 1, builder)
        right = self.rows.side_by_side(tuple(self.right), 0, builder)
        return builder.emit(matmul, (factor, right))[0]


def _terms_of(bind: Bind, builder: LetBuilder, rows: _Rows) -> SummedParts | SummedProducts:
    """The term for a bind: a product, or the parts of an ``assemble``."""
    if bind.op is matmul:
        x, y = bind.locals()
        return SummedProducts([x], [y], x.type.size + y.type.size, rows)
    parts = SummedParts(bind)
    _, operands = split_sizes(bind.args, bind.attrs["shape"])
    for item, part, arrays in group_parts(bind.attrs["items"], operands):
        parts.add_part(item, part, arrays, builder)
    return parts


@define(eq=False)
class Sum:
    """A deferred sum: its terms, and the part already emitted."""

    terms: Any  # SummedParts or SummedProducts: the terms of one sum are of one kind
    before: Local | None = None

    def merge_with(self, other: "Sum", size: Size | int, builder: LetBuilder) -> "Sum":
        """The union of two deferred sums, merged into the longer one."""
        # the shorter sum is merged into the longer, else a chain would take quadratic time; the 4
        # leaves the usual order of the terms as it is
        is_longer = other.terms.kept > 4 * self.terms.kept
        longer, shorter = (other, self) if is_longer else (self, other)
        if shorter.before is not None:
            longer.add_before(shorter.before, builder)
        if type(size) is int and longer.terms.kept > MAX_WAITING * size:
            longer.add_before(longer.terms.emit_sum(builder), builder)
            longer.terms = shorter.terms
        else:
            longer.terms.absorb(shorter.terms, builder)
        return longer

    def add_before(self, total: Local, builder: LetBuilder) -> None:
        """Add a value to the emitted part."""
        both = total if self.before is None else builder.emit(add, (self.before, total))[0]
        self.before = both

    def emit_total(self, binder: Local, builder: LetBuilder, base: Local | None = None) -> None:
        """Emit the sum, including ``base`` if given, under the name ``binder``."""
        if base is not None:
            self.add_before(base, builder)
        size = binder.type.size  # symbolic sizes cannot be compared
        few = type(size) is not int or self.terms.kept * _MIN_RATIO <= size
        if base is not None and few:
            self.terms.add_to(self.before, builder)
        else:
            total = self.terms.emit_sum(builder)
            if self.before is not None:
                builder.emit(add, (self.before, total))
        # the sum is bound to ``binder``, so that its uses need not change
        last = builder.binds.pop()
        builder.binds.append(Bind((binder,), last.op, last.args, last.attrs, last.source))
