// Arrays of the interpreter: {dtype, shape, data}, with elements in C order; bools are 0 or 1.

const DTYPES = {
  float64: Float64Array,
  float32: Float32Array,
  int64: Float64Array,
  int32: Int32Array,
  bool: Uint8Array,
};
const MOST_EXACT = 2 ** 53; // integers beyond it are not exact numbers of JavaScript

// An operation, a dtype or a number that the interpreter does not have.
class Unsupported extends Error {}

const sizeOf = (shape) => shape.reduce((a, b) => a * b, 1);

function zerosOf(dtype, shape) {
  if (!DTYPES[dtype]) throw new Unsupported(`the dtype ${dtype}`);
  return { dtype, shape, data: new DTYPES[dtype](sizeOf(shape)) };
}

// As NumPy and Python see it, nan is true.
const isTrue = (x) => x !== 0 && x !== false;

// An array with these elements, converted to its dtype as NumPy converts.
function arrayOf(dtype, shape, elements) {
  const made = zerosOf(dtype, shape),
    data = made.data;
  if (dtype === "bool") for (let i = 0; i < data.length; i++) data[i] = isTrue(elements[i]) ? 1 : 0;
  else for (let i = 0; i < data.length; i++) data[i] = elements[i];
  if (dtype.startsWith("int")) expectExact(dtype, elements, data.length);
  return made;
}

// Integers must be exact: this throws where JavaScript's numbers or the dtype are too small.
function expectExact(dtype, elements, count) {
  const most = dtype === "int32" ? 2 ** 31 - 1 : MOST_EXACT;
  for (let i = 0; i < count; i++) {
    if (!(Math.abs(elements[i]) <= most)) throw new Unsupported(`${dtype} beyond ${most}`);
  }
}

// An array as Python wrote it: [dtype, shape, elements], where nan and inf are texts.
function arrayFrom([dtype, shape, elements]) {
  return arrayOf(dtype, shape, elements.map(numberFrom));
}

function numberFrom(value) {
  if (typeof value !== "string") return Number(value);
  if (/^-?inf$/.test(value)) return value.startsWith("-") ? -Infinity : Infinity;
  if (value === "nan") return NaN;
  throw new Unsupported("complex numbers");
}

// The steps between neighbours along each axis of an array in C order.
function stridesOf(shape) {
  const strides = new Array(shape.length);
  for (let axis = shape.length - 1, step = 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

// The positions of elements that lie `strides` apart, in C order of `shape`.
function positionsOf(shape, strides, offset = 0) {
  const count = sizeOf(shape),
    found = new Int32Array(count),
    index = new Array(shape.length).fill(0);
  let at = offset;
  for (let i = 0; i < count; i++) {
    found[i] = at;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return found;
}

// The shape to which shapes broadcast.
function broadcastShape(shapes) {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length)),
    found = new Array(rank).fill(1);
  for (const shape of shapes) {
    shape.forEach((size, i) => {
      const axis = rank - shape.length + i;
      if (size === 1) return;
      if (found[axis] !== 1 && found[axis] !== size) throw new Error("shapes do not broadcast");
      found[axis] = size;
    });
  }
  return found;
}

// The elements of an array broadcast to a shape; its own elements where nothing changes.
function broadcastData(array, shape) {
  if (array.shape.length === shape.length && array.shape.every((n, i) => n === shape[i]))
    return array.data;
  const count = sizeOf(shape);
  if (array.data.length === 1) return new array.data.constructor(count).fill(array.data[0]);
  const own = stridesOf(array.shape),
    lead = shape.length - array.shape.length;
  const strides = shape.map((_, axis) =>
    axis < lead || array.shape[axis - lead] === 1 ? 0 : own[axis - lead],
  );
  return gather(array.data, positionsOf(shape, strides));
}

function gather(data, positions) {
  const found = new data.constructor(positions.length);
  for (let i = 0; i < positions.length; i++) found[i] = data[positions[i]];
  return found;
}

// Axes as numbers from 0, in order; null means all.
function axesOf(axis, rank) {
  if (axis === null || axis === undefined) return Array.from({ length: rank }, (_, i) => i);
  const axes = (Array.isArray(axis) ? axis : [axis]).map((a) => (a < 0 ? a + rank : a));
  return axes.sort((a, b) => a - b);
}

// The number in an array of one element, as an operand that says how often or where.
const numberIn = (array) => array.data[0];
