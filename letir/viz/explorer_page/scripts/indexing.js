// Reading and writing parts of arrays: x[item] with numbers, slices, new axes, arrays and masks.

// The positions that an item selects: {shape, places}. Arrays stand where the item says "here".
function selected(shape, item, arrays) {
  const entries = expandItem(shape, Array.isArray(item) ? item : [item], arrays);
  const strides = stridesOf(shape);
  let axis = 0,
    offset = 0;
  const basic = []; // [size, step] of each axis that stays
  const advanced = []; // {array, step, size, at: position among the axes}
  for (const entry of entries) {
    if (entry && entry.isGap) continue;
    if (entry === null) basic.push([1, 0]);
    else if (entry.data) {
      advanced.push({ array: entry, step: strides[axis], size: shape[axis], at: basic.length });
      axis++;
    } else if (entry.slice) {
      const [start, step, count] = sliceRange(entry.slice, shape[axis]);
      offset += start * strides[axis];
      basic.push([count, step * strides[axis]]);
      axis++;
    } else throw new Unsupported("an index of this kind");
  }
  while (axis < shape.length) basic.push([shape[axis], strides[axis++]]);
  if (!advanced.length) {
    const dims = basic.map(([size]) => size);
    return {
      shape: dims,
      places: positionsOf(
        dims,
        basic.map(([, step]) => step),
        offset,
      ),
    };
  }
  return selectedByArrays(basic, advanced, offset, areTogether(entries));
}

// Whether the arrays of an index stand side by side: otherwise their axes come first, as in NumPy.
function areTogether(entries) {
  const at = entries.flatMap((entry, i) => (entry && entry.data ? [i] : []));
  return at.every((place, i) => i === 0 || place === at[i - 1] + 1);
}

function selectedByArrays(basic, advanced, offset, isTogether) {
  const dims = broadcastShape(advanced.map(({ array }) => array.shape));
  const lead = isTogether ? advanced[0].at : 0,
    count = sizeOf(dims);
  const moved = new Float64Array(count);
  for (const { array, step, size } of advanced) {
    const data = broadcastData(array, dims);
    for (let i = 0; i < count; i++) {
      const n = data[i] < 0 ? data[i] + size : data[i];
      if (n < 0 || n >= size) throw new Error(`index ${data[i]} is out of bounds for size ${size}`);
      moved[i] += n * step;
    }
  }
  const before = basic.slice(0, lead),
    after = basic.slice(lead);
  const places = [];
  const sizes = (part) => part.map(([size]) => size),
    steps = (part) => part.map(([, step]) => step);
  const first = positionsOf(sizes(before), steps(before), offset),
    last = positionsOf(sizes(after), steps(after));
  for (const a of first) for (const b of moved) for (const c of last) places.push(a + b + c);
  return { shape: [...sizes(before), ...dims, ...sizes(after)], places };
}

// An item with an entry for each axis: the ellipsis is filled in, arrays and masks stand in it. A
// number is an array of rank 0: its axis goes.
function expandItem(shape, item, arrays) {
  const queue = [...arrays],
    entries = [];
  for (const entry of item) {
    if (entry && entry.here) {
      const array = queue.shift();
      if (array.dtype === "bool") entries.push(...placesOfMask(array));
      else entries.push(array);
    } else if (typeof entry === "number") entries.push({ data: [entry], shape: [] });
    else if (typeof entry === "boolean") throw new Unsupported("an index of this kind");
    else entries.push(entry);
  }
  const used = entries.filter((entry) => entry !== null && !(entry && entry.ellipsis)).length;
  const all = Array.from({ length: shape.length - used }, () => ({ slice: [null, null, null] }));
  const at = entries.findIndex((entry) => entry && entry.ellipsis);
  // an ellipsis separates arrays even if it stands for no axis
  if (at >= 0) entries.splice(at, 1, { isGap: true }, ...all);
  return entries;
}

// The indices of the true elements of a mask, an array for each of its axes.
function placesOfMask(mask) {
  const strides = stridesOf(mask.shape),
    true_ = [];
  mask.data.forEach((value, i) => value && true_.push(i));
  return mask.shape.map((size, axis) => ({
    shape: [true_.length],
    data: true_.map((i) => Math.floor(i / strides[axis]) % size),
  }));
}

// (start, step, count) of a slice of an axis.
function sliceRange([start, stop, step], size) {
  const by = step ?? 1,
    isForward = by > 0;
  const fit = (n, low, high) => Math.min(Math.max(n < 0 ? n + size : n, low), high);
  const from =
    start === null
      ? isForward
        ? 0
        : size - 1
      : fit(start, isForward ? 0 : -1, isForward ? size : size - 1);
  const to =
    stop === null
      ? isForward
        ? size
        : -1
      : fit(stop, isForward ? 0 : -1, isForward ? size : size - 1);
  return [from, by, Math.max(0, Math.ceil((to - from) / by))];
}

const INDEXING = {
  index: ([x, ...arrays], { item }, [dtype, shape]) => {
    const { places } = selected(x.shape, item, arrays);
    return { dtype, shape, data: gather(x.data, places) };
  },
  index_set: ([x, value, ...arrays], { item }, type) =>
    written(x, value, item, arrays, type, false),
  index_add: ([x, value, ...arrays], { item }, type) => written(x, value, item, arrays, type, true),
  assemble: (operands, { items }, [dtype, shape]) => {
    const made = zerosOf(dtype, shape),
      queue = [...operands];
    for (const item of items) {
      const part = queue.shift();
      const arrays = (Array.isArray(item) ? item : [item])
        .filter((e) => e && e.here)
        .map(() => queue.shift());
      writeInto(made, part, item, arrays, true);
    }
    return made;
  },
};

function written(x, value, item, arrays, [dtype, shape], isAdded) {
  const made = arrayOf(dtype, shape, x.data);
  writeInto(made, value, item, arrays, isAdded);
  return made;
}

function writeInto(made, value, item, arrays, isAdded) {
  const { shape, places } = selected(made.shape, item, arrays);
  const part =
    value.shape.length > shape.length
      ? { ...value, shape: value.shape.slice(value.shape.length - shape.length) }
      : value;
  const data = arrayOf(made.dtype, shape, broadcastData(part, shape)).data;
  for (let i = 0; i < places.length; i++) {
    made.data[places[i]] = isAdded ? made.data[places[i]] + data[i] : data[i];
  }
}
