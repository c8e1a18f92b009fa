// Reductions along axes. Sums are pairwise, as NumPy's are, so that long ones round alike.

// The elements of each result, one after the other: the reduced axes are moved to the end.
function gatherGroups(array, axes) {
  const rank = array.shape.length,
    strides = stridesOf(array.shape);
  const kept = Array.from({ length: rank }, (_, i) => i).filter((axis) => !axes.includes(axis));
  const order = [...kept, ...axes];
  const data = gather(
    array.data,
    positionsOf(
      order.map((a) => array.shape[a]),
      order.map((a) => strides[a]),
    ),
  );
  const length = sizeOf(axes.map((axis) => array.shape[axis]));
  return { data, length, count: sizeOf(kept.map((axis) => array.shape[axis])) };
}

function pairwiseSum(data, first, last) {
  if (last - first > 128) {
    const middle = (first + last) >> 1;
    return pairwiseSum(data, first, middle) + pairwiseSum(data, middle, last);
  }
  let sum = 0;
  for (let i = first; i < last; i++) sum += data[i];
  return sum;
}

function fold(data, first, last, step, start) {
  let found = start;
  for (let i = first; i < last; i++) found = step(found, data[i]);
  return found;
}

// The first place of an extremum; the first nan wins, as in NumPy.
function placeOf(data, first, last, isBetter) {
  let at = first;
  for (let i = first; i < last; i++) {
    if (data[i] !== data[i]) return i - first;
    if (isBetter(data[i], data[at])) at = i;
  }
  return at - first;
}

const REDUCTIONS = {
  sum: pairwiseSum,
  mean: (data, first, last) => pairwiseSum(data, first, last) / (last - first),
  prod: (data, first, last) => fold(data, first, last, (x, y) => x * y, 1),
  max: (data, first, last) => fold(data, first + 1, last, larger, data[first]),
  min: (data, first, last) => fold(data, first + 1, last, smaller, data[first]),
  any: (data, first, last) => fold(data, first, last, (x, y) => x || y !== 0, false),
  all: (data, first, last) => fold(data, first, last, (x, y) => x && y !== 0, true),
  count_nonzero: (data, first, last) => fold(data, first, last, (x, y) => x + (y !== 0), 0),
  argmax: (data, first, last) => placeOf(data, first, last, (x, y) => x > y),
  argmin: (data, first, last) => placeOf(data, first, last, (x, y) => x < y),
};

function computeReduction(name, operands, attrs, [dtype, shape]) {
  if (operands.length !== 1 || (attrs.initial ?? null) !== null)
    throw new Unsupported(`${name} with a start`);
  const [x] = operands,
    axes = axesOf(attrs.axis, x.shape.length);
  const { data, length, count } = gatherGroups(x, axes);
  const found = new Float64Array(count);
  for (let i = 0; i < count; i++)
    found[i] = Number(REDUCTIONS[name](data, i * length, (i + 1) * length));
  return arrayOf(dtype, shape, found);
}

// Sums and products up to each element, along an axis or over all elements.
const RUNNING = { cumsum: (x, y) => x + y, cumprod: (x, y) => x * y };

function computeRunning(name, [x], attrs, [dtype, shape]) {
  const isFlat = (attrs.axis ?? null) === null;
  const from = isFlat ? [x.data.length] : x.shape;
  const [axis] = axesOf(isFlat ? 0 : attrs.axis, from.length);
  const step = stridesOf(from)[axis],
    found = Float64Array.from(x.data);
  const round = dtype === "float32" ? Math.fround : (y) => y;
  for (let i = 0; i < found.length; i++) {
    const place = Math.floor(i / step) % from[axis];
    if (place) found[i] = round(RUNNING[name](found[i - step], found[i]));
  }
  return arrayOf(dtype, shape, found);
}

// The sum over the axes along which an array was broadcast.
function computeSumToSize([x], { shape: wanted }, type) {
  const lead = x.shape.length - wanted.length;
  const axes = x.shape
    .map((n, i) => i)
    .filter((i) => i < lead || (wanted[i - lead] === 1 && x.shape[i] !== 1));
  return computeReduction("sum", [x], { axis: axes }, type);
}

// Sorting, with nan at the end; the order of equal elements stays.
function computeSort(name, [x], attrs, [dtype, shape]) {
  const isFlat = attrs.axis === null;
  const array = isFlat ? { ...x, shape: [x.data.length] } : x;
  const rank = array.shape.length,
    [axis] = axesOf(attrs.axis ?? rank - 1, rank);
  if (rank === 0) return arrayOf(dtype, shape, name === "sort" ? x.data : [0]);
  const { data, length, count } = gatherGroups(array, [axis]);
  const found = new Float64Array(data.length),
    strides = stridesOf(array.shape);
  const kept = array.shape.map((_, i) => i).filter((i) => i !== axis),
    order = [...kept, axis];
  const places = positionsOf(
    order.map((a) => array.shape[a]),
    order.map((a) => strides[a]),
  );
  for (let i = 0; i < count; i++) {
    const part = Array.from(data.subarray(i * length, (i + 1) * length));
    const ranked = part.map((_, k) => k).sort((a, b) => compareNumbers(part[a], part[b]) || a - b);
    ranked.forEach(
      (from, k) => (found[places[i * length + k]] = name === "sort" ? part[from] : from),
    );
  }
  return arrayOf(dtype, shape, found);
}

const compareNumbers = (x, y) => (x !== x ? (y !== y ? 0 : 1) : y !== y ? -1 : x - y || 0);
