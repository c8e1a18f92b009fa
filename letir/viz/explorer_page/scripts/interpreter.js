// Runs programs, as run_code.py wrote them, bind by bind.

const [STEP_OPERATION, STEP_OPERANDS, STEP_ATTRIBUTES, STEP_TYPES, STEP_PARTS] = [0, 1, 2, 3, 4];
const MOST_TRIPS = 100000; // of all loops of a run

// A loop that runs a body, by name: (operands, attributes, types, run) gives the results.
const CONTROL = {
  cond: ([choice, ...rest], { on_true, on_false }, _, run) =>
    run((numberIn(choice) ? on_true : on_false).code, rest),
  switch: ([index, ...rest], { branches }, _, run) =>
    run(branches[Math.min(Math.max(numberIn(index), 0), branches.length - 1)].code, rest),
  // in programs of gradients, and around parts that are computed again
  grad_of: (operands, { body }, _, run) => run(body.code, operands),
  checkpoint: (operands, { body }, _, run) => run(body.code, operands),
  fori_loop: ([lower, upper, ...rest], { body }, types, run) => {
    let carry = rest.slice(0, types.length);
    const captured = rest.slice(types.length);
    for (let i = numberIn(lower); i < numberIn(upper); i++) {
      carry = run(body.code, [arrayOf("int64", [], [i]), ...carry, ...captured]);
    }
    return carry;
  },
  while_loop: (operands, { test, body }, types, run) => {
    let carry = operands.slice(0, types.length);
    const captured = operands.slice(types.length);
    while (numberIn(run(test.code, [...carry, ...captured])[0])) {
      carry = run(body.code, [...carry, ...captured]);
    }
    return carry;
  },
  scan: (operands, attrs, types, run) => {
    const { body, n_carry: carried, n_xs: count, length, reverse } = attrs;
    let carry = operands.slice(0, carried);
    const xs = operands.slice(carried, carried + count),
      captured = operands.slice(carried + count);
    const trips = length ?? xs[0].shape[0];
    const stacks = types.slice(carried).map(([dtype, shape]) => zerosOf(dtype, shape));
    for (let k = 0; k < trips; k++) {
      const i = reverse ? trips - 1 - k : k;
      const found = run(body.code, [...carry, ...xs.map((x) => itemAt(x, i)), ...captured]);
      carry = found.slice(0, carried);
      stacks.forEach((stack, n) =>
        stack.data.set(found[carried + n].data, i * found[carried + n].data.length),
      );
    }
    return [...carry, ...stacks];
  },
};

function itemAt(x, i) {
  const shape = x.shape.slice(1),
    size = sizeOf(shape);
  return { dtype: x.dtype, shape, data: x.data.subarray(i * size, (i + 1) * size) };
}

// A recorded decision of Python: the program is for this value only.
function expectRecorded([x], { value }) {
  const recorded = value && value.array ? numberFrom(value.array[2][0]) : numberFrom(value);
  const text = (n) => (x.dtype === "bool" ? (n ? "True" : "False") : String(n));
  if (!Object.is(Number(numberIn(x)), Number(recorded)))
    throw new Error(
      `the program was recorded where this was ${text(recorded)}, now it is ${text(numberIn(x))}`,
    );
  return [];
}

// Whether the interpreter has an operation itself; composites may run by their parts.
const hasOwn = (name) =>
  [ELEMENTWISE, BITWISE, REDUCTIONS, RUNNING, SHAPES, INDEXING, WINDOWS, CONTROL].some((table) =>
    Object.hasOwn(table, name),
  ) ||
  ["matmul", "dot", "einsum", "sum_to_size", "sort", "argsort", "split", "guard"].includes(name);

function computeOwn(name, operands, attrs, types, run) {
  const [type] = types;
  if (Object.hasOwn(CONTROL, name)) return CONTROL[name](operands, attrs, types, run);
  if (Object.hasOwn(ELEMENTWISE, name) || Object.hasOwn(BITWISE, name))
    return [computeElementwise(name, operands, type)];
  if (Object.hasOwn(REDUCTIONS, name)) return [computeReduction(name, operands, attrs, type)];
  if (Object.hasOwn(RUNNING, name)) return [computeRunning(name, operands, attrs, type)];
  if (Object.hasOwn(SHAPES, name)) return [SHAPES[name](operands, attrs, type)];
  if (Object.hasOwn(INDEXING, name)) return [INDEXING[name](operands, attrs, type)];
  if (Object.hasOwn(WINDOWS, name)) return [WINDOWS[name](operands, attrs, type)];
  if (name === "sort" || name === "argsort") return [computeSort(name, operands, attrs, type)];
  const others = {
    matmul: () => [computeMatmul(operands, type)],
    dot: () => [computeDot(operands, type)],
    einsum: () => [computeEinsum(operands, attrs, type)],
    sum_to_size: () => [computeSumToSize(operands, attrs, type)],
    split: () => computeSplit(operands, attrs, types),
    guard: () => expectRecorded(operands, attrs),
  };
  return others[name]();
}

// Runs codes; `parts` are the codes of composites.
class Interpreter {
  constructor(parts) {
    this.parts = parts;
    this.trips = 0;
  }

  // The results of a code; `observe(i, results)` is told of each step.
  run(code, args, observe = () => {}) {
    if (++this.trips > MOST_TRIPS)
      throw new Error("the loops of the program are too long for a page");
    const values = args.map((value, i) => ofType(value, code.params[i]));
    const operandAt = (operand) =>
      typeof operand === "number" ? values[operand] : constant(operand);
    code.steps.forEach((step, i) => {
      const results = this.step(step, step[STEP_OPERANDS].map(operandAt));
      values.push(...results);
      observe(i, results);
    });
    return code.ret.map(operandAt);
  }

  step(step, operands) {
    const name = step[STEP_OPERATION],
      types = step[STEP_TYPES];
    const run = (code, args) => this.run(code, args);
    if (types.includes(null)) throw new Unsupported(`${name} of an unknown type`);
    let results;
    if (hasOwn(name)) {
      const given = withoutNone(name, operands);
      results = computeOwn(name, given, step[STEP_ATTRIBUTES], types, run);
    } else if (step[STEP_PARTS] >= 0) {
      results = this.run(
        this.parts[step[STEP_PARTS]],
        operands.filter((x) => x !== null),
      );
    } else throw new Unsupported(`the operation ${name}`);
    return results.map((result, i) => ofType(result, types[i]));
  }

  // The operations of a code that cannot run here, by name.
  missing(code, found = new Set()) {
    for (const step of code.steps) {
      const name = step[STEP_OPERATION];
      if (hasOwn(name)) {
        for (const value of Object.values(step[STEP_ATTRIBUTES]).flat())
          if (value && value.code) this.missing(value.code, found);
      } else if (step[STEP_PARTS] >= 0) this.missing(this.parts[step[STEP_PARTS]], found);
      else found.add(name);
      for (const type of step[STEP_TYPES])
        if (!type || !DTYPES[type[0]]) found.add(type ? type[0] : name);
    }
    for (const type of code.params) if (type && !DTYPES[type[0]]) found.add(type[0]);
    return found;
  }
}

// A value as an array of a type; a Python number keeps its mark.
function ofType(value, type) {
  if (value === null || !type) return value;
  return { dtype: value.dtype, shape: type[1], data: value.data, isNumber: Boolean(type[2]) };
}

const CONSTANT_DTYPES = { int: "int64", float: "float64", bool: "bool" };

function constant([kind, value]) {
  if (kind === "none") return null;
  if (!CONSTANT_DTYPES[kind]) throw new Unsupported(`a constant of type ${kind}`);
  return { ...arrayOf(CONSTANT_DTYPES[kind], [], [numberFrom(value)]), isNumber: true };
}

// The operands of an operation; only a bound of clip may be missing.
function withoutNone(name, operands) {
  if (name !== "clip" && operands.includes(null))
    throw new Unsupported(`${name} without an operand`);
  return operands.map(
    (x, i) => x ?? { ...arrayOf("float64", [], [i === 1 ? -Infinity : Infinity]), isNumber: true },
  );
}
