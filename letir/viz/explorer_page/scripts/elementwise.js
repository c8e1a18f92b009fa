// Elementwise operations, by name: functions of numbers. The dtype of the result is the program's.

const floorMod = (x, y) => {
  if (y === 0) return NaN;
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return rest < 0 !== y < 0 ? (Number.isFinite(y) ? rest + y : y) : rest;
};
// As NumPy computes it: the quotient of what is left without the remainder, rounded.
const floorDivide = (x, y) => {
  if (y === 0) return x / y;
  const quotient = (x - floorMod(x, y)) / y;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
};
const roundEven = (x) => {
  const floor = Math.floor(x),
    part = x - floor;
  if (part !== 0.5) return part < 0.5 ? copySign(floor, x) : copySign(floor + 1, x);
  return copySign(floor % 2 === 0 ? floor : floor + 1, x);
};
const copySign = (x, sign) => (sign < 0 || Object.is(sign, -0) ? -Math.abs(x) : Math.abs(x));
const larger = (x, y) => (x !== x || y !== y ? NaN : x >= y ? x : y);
const smaller = (x, y) => (x !== x || y !== y ? NaN : x <= y ? x : y);
const logaddexp = (x, y) => {
  if (x === y) return x + Math.LN2;
  const high = larger(x, y);
  return Number.isFinite(high) ? high + Math.log1p(Math.exp(-Math.abs(x - y))) : high;
};
const power = (x, y) =>
  x === 1 || y === 0 ? 1 : Math.abs(x) === 1 && !Number.isFinite(y) && y === y ? 1 : x ** y;

const ELEMENTWISE = {
  add: (x, y) => x + y,
  sub: (x, y) => x - y,
  mul: (x, y) => x * y,
  div: (x, y) => x / y,
  autograd_add: (x, y) => x + y,
  quotient: (x, y) => (x === 0 && y === 0 ? 0 : x / y),
  power,
  float_power: power,
  remainder: floorMod,
  floor_divide: floorDivide,
  fmod: (x, y) => x % y,
  neg: (x) => -x,
  positive: (x) => x,
  abs: Math.abs,
  fabs: Math.abs,
  sign: Math.sign,
  maximum: larger,
  minimum: smaller,
  square: (x) => x * x,
  reciprocal: (x) => 1 / x,
  fmax: (x, y) => (x !== x ? y : y !== y ? x : larger(x, y)),
  fmin: (x, y) => (x !== x ? y : y !== y ? x : smaller(x, y)),
  sqrt: Math.sqrt,
  cbrt: Math.cbrt,
  exp: Math.exp,
  exp2: (x) => 2 ** x,
  expm1: Math.expm1,
  log: Math.log,
  log2: Math.log2,
  log10: Math.log10,
  log1p: Math.log1p,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  arcsin: Math.asin,
  arccos: Math.acos,
  arctan: Math.atan,
  arctan2: Math.atan2,
  hypot: Math.hypot,
  sinh: Math.sinh,
  cosh: Math.cosh,
  tanh: Math.tanh,
  arcsinh: Math.asinh,
  arccosh: Math.acosh,
  arctanh: Math.atanh,
  floor: Math.floor,
  ceil: Math.ceil,
  trunc: Math.trunc,
  rint: roundEven,
  radians: (x) => (x * Math.PI) / 180,
  degrees: (x) => (x * 180) / Math.PI,
  copysign: copySign,
  heaviside: (x, y) => (x !== x ? x : x === 0 ? y : x > 0 ? 1 : 0),
  logaddexp,
  expit: (x) => 1 / (1 + Math.exp(-x)),
  equal: (x, y) => x === y,
  not_equal: (x, y) => x !== y,
  less: (x, y) => x < y,
  less_equal: (x, y) => x <= y,
  greater: (x, y) => x > y,
  greater_equal: (x, y) => x >= y,
  logical_and: (x, y) => isTrue(x) && isTrue(y),
  logical_or: (x, y) => isTrue(x) || isTrue(y),
  logical_xor: (x, y) => isTrue(x) !== isTrue(y),
  logical_not: (x) => !isTrue(x),
  isnan: (x) => x !== x,
  isinf: (x) => Math.abs(x) === Infinity,
  isfinite: Number.isFinite,
  signbit: (x) => x < 0 || Object.is(x, -0),
  where: (c, x, y) => (isTrue(c) ? x : y),
  clip: (x, low, high) => smaller(larger(x, low), high),
  cast: (x) => x,
  weaken: (x) => x,
  copy: (x) => x,
  stop_gradient: (x) => x,
  barrier: (x) => x,
  real: (x) => x,
  conj: (x) => x,
};
const BITWISE = {
  bitwise_and: (x, y) => x & y,
  bitwise_or: (x, y) => x | y,
  bitwise_xor: (x, y) => x ^ y,
  invert: (x) => ~x,
};
// Operations of integers whose results NumPy defines otherwise than for floating numbers.
const OF_INTEGERS = {
  floor_divide: (x, y) => (y === 0 ? 0 : Math.floor(x / y)),
  remainder: (x, y) => (y === 0 ? 0 : floorMod(x, y) + 0),
  reciprocal: (x) => {
    throw new Unsupported("reciprocal of integers");
  },
};
// Conversions to integers drop the fraction.
const CONVERSIONS = new Set(["cast", "weaken", "copy", "stop_gradient", "barrier"]);

// The dtype in which an operation computes: float32 operands with Python numbers stay float32.
function commonDtype(operands) {
  const strong = operands.filter((operand) => !operand.isNumber);
  const dtypes = new Set((strong.length ? strong : operands).map((operand) => operand.dtype));
  if (dtypes.has("float32") && !["float64", "int64", "int32"].some((dtype) => dtypes.has(dtype)))
    return "float32";
  return [...dtypes].every((dtype) => dtype === "bool") ? "bool" : "other";
}

// Compute an elementwise operation; `type` is [dtype, shape] of its result.
function computeElementwise(name, operands, [dtype, shape]) {
  const isWhole = operands.every((x) => x.dtype !== "float64" && x.dtype !== "float32");
  let compute = BITWISE[name] || ELEMENTWISE[name];
  if (isWhole && OF_INTEGERS[name] && dtype !== "bool") compute = OF_INTEGERS[name];
  if (BITWISE[name]) compute = bitwise(name, compute, operands);
  const common = commonDtype(operands);
  const inputs = operands.map((operand) => {
    const data = broadcastData(operand, shape);
    return common === "float32" && operand.dtype !== "float32" && name !== "cast"
      ? Float32Array.from(data)
      : data;
  });
  const count = sizeOf(shape),
    found = new Float64Array(count),
    [x, y, z] = inputs;
  for (let i = 0; i < count; i++)
    found[i] = Number(y ? (z ? compute(x[i], y[i], z[i]) : compute(x[i], y[i])) : compute(x[i]));
  if (dtype.startsWith("int")) {
    for (let i = 0; i < count; i++) found[i] = wholeNumber(found[i], CONVERSIONS.has(name), name);
  }
  return arrayOf(dtype, shape, found);
}

function wholeNumber(x, isConversion, name) {
  if (!Number.isFinite(x)) throw new Unsupported(`${name}: ${x} as an integer`);
  if (!isConversion && !Number.isInteger(x)) throw new Unsupported(`${name} of integers`);
  return Math.trunc(x) + 0; // no -0
}

// Bits of numbers beyond 32 bits are not JavaScript's; of bools the logical operations are meant.
function bitwise(name, compute, operands) {
  if (operands.every((x) => x.dtype === "bool")) return name === "invert" ? (x) => !x : compute;
  for (const { data } of operands) expectExact("int32", data, data.length);
  return compute;
}
