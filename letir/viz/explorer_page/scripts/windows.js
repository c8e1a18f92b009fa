// Convolutions and windows that move over arrays, with any number of axes.

// For every place of a window and every element of it that is not padding: [place, element, what it
// reads], as positions in the arrays of places, of the window and of the array that is read.
function tapsOf(sizes, places, window, { stride, padding, dilation }) {
  let taps = [[0, 0, 0]];
  sizes.forEach((size, axis) => {
    const next = [];
    for (const [place, element, read] of taps) {
      for (let p = 0; p < places[axis]; p++) {
        for (let j = 0; j < window[axis]; j++) {
          const x = p * stride[axis] + j * dilation[axis] - padding[axis][0];
          if (x < 0 || x >= size) continue;
          next.push([place * places[axis] + p, element * window[axis] + j, read * size + x]);
        }
      }
    }
    taps = next;
  });
  return taps;
}

// The sums over all products of an element of x, of w and of y that belong together: each of the
// three operations computes one of the arrays from the other two. `add` gets the three positions.
function forProducts(xShape, wShape, yShape, attrs, add) {
  const taps = tapsOf(xShape.slice(2), yShape.slice(2), wShape.slice(2), attrs);
  const [examples, channels] = xShape,
    [outputs, each] = wShape;
  const [xSize, wSize, ySize] = [xShape, wShape, yShape].map((shape) => sizeOf(shape.slice(2)));
  const perGroup = outputs / (attrs.groups ?? 1);
  for (let n = 0; n < examples; n++) {
    for (let o = 0; o < outputs; o++) {
      for (let i = 0; i < each; i++) {
        const x = (n * channels + Math.floor(o / perGroup) * each + i) * xSize;
        const w = (o * each + i) * wSize,
          y = (n * outputs + o) * ySize;
        for (const [place, element, read] of taps) add(x + read, w + element, y + place);
      }
    }
  }
}

const WINDOWS = {
  conv: ([x, w], attrs, [dtype, shape]) => {
    const found = new Float64Array(sizeOf(shape));
    forProducts(x.shape, w.shape, shape, attrs, (a, b, c) => (found[c] += x.data[a] * w.data[b]));
    return arrayOf(dtype, shape, found);
  },
  conv_weight: ([x, y], attrs, [dtype, shape]) => {
    const found = new Float64Array(sizeOf(shape));
    forProducts(x.shape, shape, y.shape, attrs, (a, b, c) => (found[b] += x.data[a] * y.data[c]));
    return arrayOf(dtype, shape, found);
  },
  conv_transpose: ([y, w], attrs, [dtype, shape]) => {
    const found = new Float64Array(sizeOf(shape));
    forProducts(shape, w.shape, y.shape, attrs, (a, b, c) => (found[a] += y.data[c] * w.data[b]));
    return arrayOf(dtype, shape, found);
  },
  unfold: ([x], attrs, [dtype, shape]) => {
    const { taps, each, read, places } = windowsOf(attrs.window, x.shape, shape, attrs);
    const found = new Float64Array(sizeOf(shape)).fill(numberFrom(attrs.value ?? 0));
    for (let n = 0; n < each; n++)
      for (const [p, j, at] of taps) found[(j * each + n) * places + p] = x.data[n * read + at];
    return arrayOf(dtype, shape, found);
  },
  fold: ([y], attrs, [dtype, shape]) => {
    const window = y.shape.slice(0, attrs.sizes.length);
    const { taps, each, read, places } = windowsOf(window, shape, y.shape, attrs);
    const found = new Float64Array(sizeOf(shape));
    for (let n = 0; n < each; n++)
      for (const [p, j, at] of taps) found[n * read + at] += y.data[(j * each + n) * places + p];
    return arrayOf(dtype, shape, found);
  },
};

// The taps of windows over the last axes of `shape`; `folded` has the axes of the window first.
function windowsOf(window, shape, folded, attrs) {
  const sizes = shape.slice(shape.length - window.length);
  const places = folded.slice(folded.length - window.length);
  const each = sizeOf(shape.slice(0, shape.length - window.length));
  return {
    taps: tapsOf(sizes, places, window, attrs),
    each,
    read: sizeOf(sizes),
    places: sizeOf(places),
  };
}
