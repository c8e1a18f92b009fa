// The program of the page, as row_pool.py wrote it, and questions about it.

const content = JSON.parse(document.getElementById("program").textContent);
const program = content.program;
// A row: [binders, operation, operands, attributes, place, bodies]; a body: [name, parameters,
// rows, results, binds left out]. Locals are numbers, constants are texts.
const [BINDERS, OPERATION, OPERANDS, ATTRIBUTES, PLACE, BODIES] = [0, 1, 2, 3, 4, 5];
const [BODY_NAME, BODY_PARAMS, BODY_ROWS, BODY_RESULTS, BODY_LEFT] = [0, 1, 2, 3, 4];

const textAt = (position) =>
  position < 0 || position === undefined ? "" : content.texts[position];
const numberText = (local) => (local < 0 ? "%_" : `%${local}`);
const typeText = (local) => textAt(content.types[local]);
const isLocal = (operand) => typeof operand === "number";

// A local by its number and the user's name for it: %3:h.
function localText(local) {
  const name = textAt(content.names[local]);
  return name ? `${numberText(local)}:${name}` : numberText(local);
}

const operandText = (operand) => (isLocal(operand) ? localText(operand) : operand);
const placeText = (row) => (row[PLACE] < 0 ? "" : textAt(content.places[row[PLACE]][0]));
const codeText = (row) => (row[PLACE] < 0 ? "" : textAt(content.places[row[PLACE]][1]));

// The bytes of the values that the backward program reads, by local.
const keptBytes = new Map(program.kept);

// The sum of such bytes as text, "" if one of them is not a number.
function bytesInTotal(counts) {
  if (!counts.every((count) => typeof count === "number")) return "";
  return bytesText(counts.reduce((a, b) => a + b, 0));
}

// For each local the rows that read it; bodies count as parts of the rows that hold them.
function usersOf(rows) {
  const users = new Map();
  rows.forEach((row, index) => {
    const seen = new Set();
    for (const local of localsRead(row)) {
      if (seen.has(local)) continue;
      seen.add(local);
      const known = users.get(local);
      if (known) known.push(index);
      else users.set(local, [index]);
    }
  });
  return users;
}

// The locals that a row reads, also in its bodies.
function localsRead(row) {
  const found = row[OPERANDS].filter(isLocal);
  for (const body of row[BODIES] || []) {
    for (const inner of body[BODY_ROWS]) found.push(...localsRead(inner));
    found.push(...body[BODY_RESULTS].filter(isLocal));
  }
  return found;
}

// A number of things, as in "3 binds".
const counted = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// A number of bytes with three digits and a unit, as letir.viz writes it: 1.23 MB.
function bytesText(count) {
  if (typeof count !== "number") return count ? `${count} bytes` : "";
  for (const [unit, size] of [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ]) {
    if (count >= size) return `${Number((count / size).toPrecision(3))} ${unit}`;
  }
  return `${count} B`;
}
