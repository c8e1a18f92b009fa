// Lines of a program: what a grid shows. A line is {kind, row, body, depth, mark}.
// Kinds: "param", "bind", "body" (the head of a body), "result" (of a body), "return", "cut".

// The lines of a program: parameters, rows, results. `open` holds the bodies that are unfolded;
// with `all`, every body is.
function linesOf({ params = [], rows, results, marks, cotangents = [] }, open, all = false) {
  const lines = params.map((local) => ({
    kind: "param",
    local,
    depth: 0,
    word: cotangents.includes(local) ? "cotangent" : "parameter",
  }));
  rows.forEach((row, i) => addBind(lines, content.rows[row], 0, open, all, marks && marks[i]));
  if (results) lines.push({ kind: "return", operands: results, depth: 0 });
  return lines;
}

function addBind(lines, row, depth, open, all, mark) {
  lines.push({ kind: "bind", row, depth, mark });
  for (const body of row[BODIES] || []) {
    const isOpen = all || open.has(body);
    lines.push({ kind: "body", body, depth: depth + 1, isOpen });
    if (!isOpen) continue;
    for (const inner of body[BODY_ROWS]) addBind(lines, inner, depth + 2, open, all);
    if (body[BODY_LEFT])
      lines.push({
        kind: "cut",
        depth: depth + 2,
        text: `… ${counted(body[BODY_LEFT], "bind")} more`,
      });
    lines.push({ kind: "result", operands: body[BODY_RESULTS], depth: depth + 2 });
  }
}

const bodyHead = (body) =>
  `${textOfName(body)}: ${counted(body[BODY_ROWS].length + body[BODY_LEFT], "bind")}`;
const textOfName = (body) => String(body[BODY_NAME]);

// The locals that a line binds.
function bindersOf(line) {
  if (line.kind === "param") return [line.local];
  if (line.kind === "body") return line.body[BODY_PARAMS];
  return line.kind === "bind" ? line.row[BINDERS] : [];
}

// The locals that a line reads, in the order in which they stand in it.
function readsOf(line) {
  const operands = line.kind === "bind" ? line.row[OPERANDS] : line.operands || [];
  return operands.filter(isLocal);
}

// All that a search compares with, in lower case; made once.
function searchText(line) {
  if (line.search !== undefined) return line.search;
  const locals = bindersOf(line);
  const parts = [...locals.map(localText), ...locals.map(typeText)];
  if (line.kind === "bind") {
    const row = line.row;
    parts.push(textAt(row[OPERATION]), ...row[OPERANDS].map(operandText), textAt(row[ATTRIBUTES]));
    parts.push(placeText(row), codeText(row));
  } else {
    parts.push(line.word || line.kind, ...(line.operands || []).map(operandText));
    if (line.body) parts.push(bodyHead(line.body));
  }
  line.search = parts.join(" ").toLowerCase();
  return line.search;
}

// The names of some locals as elements, with commas between: b where they are bound, i where read.
function nameElements(operands, tag) {
  const parts = [];
  operands.forEach((operand, i) => {
    if (i) parts.push(", ");
    parts.push(
      isLocal(operand) ? element(tag, { "data-v": operand }, localText(operand)) : operand,
    );
  });
  return parts;
}

// The cells of a line: name, type, operation with operands, place. Each is a list of children.
function cellsOf(line) {
  const binders = bindersOf(line);
  const names = nameElements(binders, "b");
  const typed = binders.map(typeText).filter(Boolean).join(", ");
  const types = typed ? [element("span", { class: "of-type" }, typed)] : [];
  const kept = binders.filter((local) => keptBytes.has(local));
  if (kept.length && line.kind !== "body") types.push(keptElement(kept));
  if (line.kind === "param")
    return [names, types, [element("span", { class: "q" }, line.word)], []];
  if (line.kind === "body") {
    const sign = line.isOpen ? "▾ " : "▸ ";
    return [names, types, [element("span", { class: "fold" }, sign + bodyHead(line.body))], []];
  }
  if (line.kind === "cut") return [[], [], [element("span", { class: "q" }, line.text)], []];
  if (line.kind !== "bind") {
    const word = element("strong", {}, line.kind === "return" ? "return" : "→");
    return [[], [], [word, " ", ...nameElements(line.operands, "i")], []];
  }
  const row = line.row,
    attributes = textAt(row[ATTRIBUTES]);
  const inside = nameElements(row[OPERANDS], "i");
  if (attributes)
    inside.push(element("span", { class: "q" }, (inside.length ? ", " : "") + attributes));
  const operation = element("strong", {}, textAt(row[OPERATION]));
  const code = codeText(row);
  const place = [...placeElements(row), ...(code ? [" ", element("code", {}, code)] : [])];
  return [names, types, [operation, "(", ...inside, ")"], place];
}

// How many values of a line are kept for the backward program; narrow grids hide the bytes.
function keptElement(locals) {
  const counts = locals.map((local) => keptBytes.get(local));
  const [text, bytes] = counts.length > 1
    ? [`${counts.length} kept`, bytesInTotal(counts)]
    : ["kept", bytesText(counts[0])];
  return element("span", { class: "kept" }, text, element("span", { class: "wide" }, ` ${bytes}`));
}

// A place in the user's code; narrow grids hide the name of the file.
function placeElements(row) {
  const text = placeText(row);
  const [, file, line] = /^(.*?)(\d*)$/.exec(text) || ["", text, ""];
  return text ? [element("span", { class: "wide" }, file), line] : [];
}
