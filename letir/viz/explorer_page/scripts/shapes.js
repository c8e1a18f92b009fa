// Operations that move elements: their results hold the elements of operands at other places.

const SHAPES = {
  reshape: ([x], attrs, type) => reordered(x, attrs.order, type),
  ravel: ([x], attrs, type) => reordered(x, attrs.order, type),
  broadcast_to: ([x], _, [dtype, shape]) => ({ dtype, shape, data: broadcastData(x, shape) }),
  expand_dims: ([x], _, [dtype, shape]) => ({ dtype, shape, data: x.data }),
  squeeze: ([x], _, [dtype, shape]) => ({ dtype, shape, data: x.data }),
  transpose: ([x], { axes }, [dtype, shape]) => {
    const rank = x.shape.length,
      strides = stridesOf(x.shape);
    const order = axes
      ? axes.map((a) => (a < 0 ? a + rank : a))
      : shape.map((_, i) => rank - 1 - i);
    return {
      dtype,
      shape,
      data: gather(
        x.data,
        positionsOf(
          shape,
          order.map((a) => strides[a]),
        ),
      ),
    };
  },
  flip: ([x], { axis }, [dtype, shape]) => {
    const flipped = axesOf(axis, shape.length),
      strides = stridesOf(shape);
    const offset = flipped.reduce((sum, a) => sum + strides[a] * (shape[a] - 1), 0);
    const signed = strides.map((step, a) => (flipped.includes(a) ? -step : step));
    return {
      dtype,
      shape,
      data: gather(x.data, sizeOf(shape) ? positionsOf(shape, signed, offset) : []),
    };
  },
  roll: ([x], { shift, axis }, [dtype, shape]) => {
    const isFlat = (axis ?? null) === null,
      from = isFlat ? [x.data.length] : shape;
    const shifts = Array.isArray(shift) ? shift : [shift];
    const axes = isFlat
      ? [0]
      : (Array.isArray(axis) ? axis : [axis]).map((a) => (a < 0 ? a + from.length : a));
    const by = new Array(from.length).fill(0);
    const all = Math.max(shifts.length, axes.length);
    for (let i = 0; i < all; i++) by[axes[i % axes.length]] += shifts[i % shifts.length];
    const strides = stridesOf(from),
      data = new x.data.constructor(x.data.length);
    positionsOf(from, strides).forEach((at) => {
      let to = 0;
      from.forEach(
        (n, a) =>
          (to += (((((Math.floor(at / strides[a]) % n) + by[a]) % n) + n) % n) * strides[a]),
      );
      data[to] = x.data[at];
    });
    return { dtype, shape, data };
  },
  concatenate: (parts, { axis }, type) =>
    joined(
      (axis ?? null) === null ? parts.map((x) => ({ ...x, shape: [x.data.length] })) : parts,
      axis ?? 0,
      type,
    ),
  stack: (parts, { axis }, type) => {
    const [at] = axesOf(axis, type[1].length);
    return joined(
      parts.map((x) => ({ ...x, shape: x.shape.toSpliced(at, 0, 1) })),
      at,
      type,
    );
  },
  tril: ([x], { k }, type) => triangle(x, type, (i, j) => j - i <= (k ?? 0)),
  triu: ([x], { k }, type) => triangle(x, type, (i, j) => j - i >= (k ?? 0)),
  zeros: (_, __, [dtype, shape]) => zerosOf(dtype, shape),
  ones: (_, __, [dtype, shape]) => arrayOf(dtype, shape, new Float64Array(sizeOf(shape)).fill(1)),
  full: ([x], _, [dtype, shape]) => arrayOf(dtype, shape, broadcastData(x, shape)),
  constant: (_, { value }, [dtype, shape]) =>
    value && value.array ? arrayFrom(value.array) : arrayOf(dtype, shape, [numberFrom(value)]),
  eye: (_, { k }, [dtype, shape]) => {
    const made = zerosOf(dtype, shape);
    for (let i = 0; i < shape[0]; i++)
      if (i + k >= 0 && i + k < shape[1]) made.data[i * shape[1] + i + k] = 1;
    return made;
  },
  arange: (_, { start, step }, [dtype, shape]) =>
    arrayOf(
      dtype,
      shape,
      Float64Array.from({ length: shape[0] }, (__, i) => start + i * step),
    ),
  size: ([x], _, [dtype, shape]) => arrayOf(dtype, shape, [x.data.length]),
  length: ([x], { axis }, [dtype, shape]) =>
    arrayOf(dtype, shape, [x.shape[axis < 0 ? axis + x.shape.length : axis]]),
};

// The elements in C order, or in Fortran's, in another shape.
function reordered(x, order, [dtype, shape]) {
  if ((order ?? "C") === "C") return { dtype, shape, data: x.data };
  if (order !== "F") throw new Unsupported(`the order ${order}`);
  const columns = (dims) => positionsOf(dims.toReversed(), stridesOf(dims).toReversed());
  const from = columns(x.shape),
    to = columns(shape),
    data = new x.data.constructor(x.data.length);
  for (let i = 0; i < from.length; i++) data[to[i]] = x.data[from[i]];
  return { dtype, shape, data };
}

// Arrays one behind the other along an axis.
function joined(parts, axis, [dtype, shape]) {
  const rank = parts[0].shape.length,
    [at] = axesOf(axis, rank);
  const made = zerosOf(dtype, shape),
    inner = sizeOf(parts[0].shape.slice(at + 1));
  const total = parts.reduce((sum, x) => sum + x.shape[at], 0),
    outer = sizeOf(parts[0].shape.slice(0, at));
  let offset = 0;
  for (const x of parts) {
    const width = x.shape[at] * inner,
      data = arrayOf(dtype, x.shape, x.data).data;
    for (let i = 0; i < outer; i++) {
      made.data.set(data.subarray(i * width, (i + 1) * width), i * total * inner + offset * inner);
    }
    offset += x.shape[at];
  }
  return { dtype, shape, data: made.data };
}

function triangle(x, [dtype, shape], isKept) {
  const data = broadcastData(x, shape).slice(),
    rows = shape.at(-2),
    columns = shape.at(-1);
  for (let i = 0; i < data.length; i++) {
    if (!isKept(Math.floor(i / columns) % rows, i % columns)) data[i] = 0;
  }
  return { dtype, shape, data };
}

// The parts of an array along an axis: equal ones, or those between positions.
function computeSplit([x], { axis, sections }, types) {
  const [at] = axesOf(axis ?? 0, x.shape.length),
    strides = stridesOf(x.shape),
    size = x.shape[at];
  return types.map(([dtype, shape], i) => {
    const first = Array.isArray(sections) ? (i ? sections[i - 1] : 0) : (i * size) / sections;
    const from = Math.min(Math.max(first < 0 ? first + size : first, 0), size);
    return { dtype, shape, data: gather(x.data, positionsOf(shape, strides, from * strides[at])) };
  });
}
