// Arrays as numbers, as a line or as an image.

const MOST_ROWS = 12,
  MOST_COLUMNS = 8; // of a table of numbers
const MOST_POINTS = 400; // of a line

// A number in few digits, as Python writes it.
function digitsText(x, dtype) {
  if (dtype === "bool") return x ? "True" : "False";
  if (x !== x) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (dtype.startsWith("int")) return String(x);
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return x.toExponential(3);
  return String(Number(x.toPrecision(5)));
}

// The first elements of an array in one line.
function shortText({ dtype, shape, data }) {
  const most = 6,
    shown = Array.from(data.slice(0, most), (x) => digitsText(x, dtype));
  const text = shown.join(" ") + (data.length > most ? " …" : "");
  return shape.length ? `[${text}]` : text;
}

// An array as rows and columns: the last axis gives the columns.
function rowsAndColumns({ shape, data }) {
  const columns = shape.length ? shape.at(-1) : 1;
  return [columns ? data.length / columns : 0, columns];
}

// The smallest, the largest and the mean of the elements that are numbers.
function summaryText({ dtype, data }) {
  if (dtype === "bool" || data.length < 2) return "";
  let low = Infinity,
    high = -Infinity,
    sum = 0,
    count = 0;
  for (const x of data) {
    if (!Number.isFinite(x)) continue;
    low = Math.min(low, x);
    high = Math.max(high, x);
    sum += x;
    count++;
  }
  if (!count) return "no finite numbers";
  const others = data.length - count;
  const mean = digitsText(sum / count, "float64");
  const text = `from ${digitsText(low, dtype)} to ${digitsText(high, dtype)}, mean ${mean}`;
  return others ? `${text}, ${others} not finite` : text;
}

// An array: its summary, a picture if it has a form, and its numbers.
function valueElement(array, name) {
  const [rows, columns] = rowsAndColumns(array);
  const parts = [element("p", { class: "q" }, summaryText(array))];
  if (array.data.length > 2 && (rows === 1 || columns === 1)) parts.push(lineElement(array, name));
  else if (rows > 1 && columns > 1) parts.push(imageElement(array, name));
  parts.push(numbersElement(array, name));
  return element("div", { class: "value" }, ...parts);
}

// The elements of a vector as a line.
function lineElement({ data, dtype }, name) {
  const width = 300,
    height = 44,
    count = Math.min(data.length, MOST_POINTS);
  const shown = Array.from(
    { length: count },
    (_, i) => data[Math.floor((i * data.length) / count)],
  );
  const finite = shown.filter(Number.isFinite);
  const low = Math.min(0, ...finite),
    high = Math.max(0, ...finite),
    range = high - low || 1;
  const x = (i) => ((i + 0.5) * width) / count,
    y = (v) => height - 2 - ((v - low) / range) * (height - 4);
  const points = shown
    .map((v, i) => (Number.isFinite(v) ? `${x(i).toFixed(1)},${y(v).toFixed(1)}` : ""))
    .filter(Boolean);
  const label = `${name} as a line, ${summaryText({ data, dtype })}`;
  const picture = shape("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
    class: "spark",
  });
  picture.append(shape("line", { class: "axis", x1: 0, x2: width, y1: y(0), y2: y(0) }));
  picture.append(shape("polyline", { class: "spark-line", points: points.join(" ") }));
  if (count <= 40) {
    for (const point of points) {
      const [cx, cy] = point.split(",");
      picture.append(shape("circle", { class: "c0", cx, cy, r: 1.8 }));
    }
  }
  return picture;
}

// The elements of a matrix as an image: blue for positive, orange for negative numbers.
function imageElement(array, name) {
  const [rows, columns] = rowsAndColumns(array),
    { data, dtype } = array;
  const about = summaryText(array);
  const canvas = element("canvas", {
    width: columns,
    height: rows,
    role: "img",
    class: "image",
    "aria-label": `${name} as an image of ${rows} rows and ${columns} columns, ${about}`,
  });
  const context = canvas.getContext("2d"),
    image = context.createImageData(columns, rows);
  const most =
    data.reduce((found, x) => (Number.isFinite(x) ? Math.max(found, Math.abs(x)) : found), 0) || 1;
  const [paper, above, below] = ["--paper", "--c0", "--c1"].map(colorOf);
  for (let i = 0; i < data.length; i++) {
    const x = Number.isFinite(data[i]) ? data[i] / most : 0,
      color = x < 0 ? below : above,
      part = Math.abs(x);
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = paper[k] + (color[k] - paper[k]) * part;
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  canvas.style.aspectRatio = `${columns} / ${rows}`;
  const scale = `orange ${digitsText(-most, "float64")}, blue ${digitsText(most, "float64")}`;
  return element("figure", {}, canvas, element("figcaption", { class: "q" }, scale));
}

// A colour of the style as three numbers.
function colorOf(name) {
  const text = getComputedStyle(document.body).getPropertyValue(name).trim().slice(1);
  const digits = text.length === 3 ? [...text].map((d) => d + d) : text.match(/../g);
  return digits.map((pair) => parseInt(pair, 16));
}

// The first rows and columns of an array as a table of numbers.
function numbersElement(array, name) {
  const [rows, columns] = rowsAndColumns(array),
    { data, dtype } = array;
  const shownRows = Math.min(rows, MOST_ROWS),
    shownColumns = Math.min(columns, MOST_COLUMNS);
  const table = element("table", { class: "numbers", "aria-label": `numbers of ${name}` });
  for (let i = 0; i < shownRows; i++) {
    const row = element("tr");
    for (let j = 0; j < shownColumns; j++)
      row.append(element("td", {}, digitsText(data[i * columns + j], dtype)));
    if (columns > shownColumns) row.append(element("td", { class: "q" }, "…"));
    table.append(row);
  }
  const left = data.length - shownRows * shownColumns;
  const note = left > 0 ? element("p", { class: "q" }, `… ${left.toLocaleString("en")} more`) : "";
  return element(
    "div",
    { class: "table-box", tabindex: 0, role: "region", "aria-label": `numbers of ${name}` },
    table,
    note,
  );
}
