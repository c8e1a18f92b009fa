// Products of matrices: matmul, dot and einsum.

// The product of the last two axes; leading axes broadcast.
function computeMatmul([x, y], [dtype, shape]) {
  const a = x.shape.length === 1 ? { ...x, shape: [1, ...x.shape] } : x;
  const b = y.shape.length === 1 ? { ...y, shape: [...y.shape, 1] } : y;
  const lead = broadcastShape([a.shape.slice(0, -2), b.shape.slice(0, -2)]);
  const [n, k] = a.shape.slice(-2),
    m = b.shape.at(-1);
  const left = broadcastData(a, [...lead, n, k]),
    right = broadcastData(b, [...lead, k, m]);
  const batches = sizeOf(lead),
    found = new Float64Array(batches * n * m);
  for (let batch = 0; batch < batches; batch++) {
    for (let i = 0; i < n; i++) {
      const row = (batch * n + i) * k,
        to = (batch * n + i) * m;
      for (let p = 0; p < k; p++) {
        const factor = left[row + p],
          from = (batch * k + p) * m;
        for (let j = 0; j < m; j++) found[to + j] += factor * right[from + j];
      }
    }
  }
  return arrayOf(dtype, shape, found);
}

// The product over the last axis of x and the last but one of y.
function computeDot([x, y], type) {
  if (!x.shape.length || !y.shape.length) return computeElementwise("mul", [x, y], type);
  if (x.shape.length <= 2 && y.shape.length <= 2) return computeMatmul([x, y], type);
  const letters = "abcdefghijklmnopqrstuvw";
  const own = letters.slice(0, x.shape.length - 1),
    other = letters.slice(own.length, own.length + y.shape.length - 1);
  const at = Math.max(other.length - 1, 0);
  const right = y.shape.length === 1 ? "z" : `${other.slice(0, at)}z${other.slice(at)}`;
  return computeEinsum([x, y], { subscripts: `${own}z,${right}->${own}${other}` }, type);
}

// Sums of products over named axes.
function computeEinsum(operands, { subscripts }, [dtype, shape]) {
  const text = subscripts.replace(/\s/g, "");
  if (text.includes(".")) throw new Unsupported("einsum with an ellipsis");
  const [inputs, given] = text.split("->"),
    terms = inputs.split(",");
  const all = [...new Set(inputs.replace(/,/g, ""))];
  const once = all
    .filter((letter) => inputs.split(letter).length === 2)
    .sort()
    .join("");
  const output = given ?? once;
  const sizes = {};
  terms.forEach((term, i) =>
    [...term].forEach((letter, axis) => {
      const size = operands[i].shape[axis];
      if (!(sizes[letter] > 1)) sizes[letter] = size;
    }),
  );
  const order = [...output, ...all.filter((letter) => !output.includes(letter))];
  const dims = order.map((letter) => sizes[letter]);
  const places = operands.map((x, i) => {
    const strides = stridesOf(x.shape),
      steps = order.map(() => 0);
    [...terms[i]].forEach((letter, axis) => {
      if (x.shape[axis] > 1) steps[order.indexOf(letter)] += strides[axis];
    });
    return positionsOf(dims, steps);
  });
  const inner = sizeOf(dims.slice(output.length)),
    count = sizeOf(dims.slice(0, output.length));
  const found = new Float64Array(count);
  for (let i = 0; i < count * inner; i++) {
    let product = 1;
    for (let n = 0; n < operands.length; n++) product *= operands[n].data[places[n][i]];
    found[Math.floor(i / inner)] += product;
  }
  return arrayOf(dtype, shape, found);
}
