// The memory of a call over the binds of the program, with the cursor in it.

const MEMORY_WIDTH = 1000,
  MEMORY_HEIGHT = 46; // units of the picture
const MOST_HELD = 6; // arrays listed at the cursor

class MemoryStrip {
  // `onPick` is called with the position of a bind that is pointed at.
  constructor(memory, onPick) {
    this.memory = memory;
    this.caption = element("span", { class: "caption" });
    this.box = element("section", { class: "memory", "aria-label": "memory over the binds" });
    const title = element("h2", {}, "memory ", this.caption);
    this.box.append(title);
    if (memory.reason) {
      this.caption.textContent = `not known: ${memory.reason}`;
      return;
    }
    this.peak = memory.live.reduce((a, b) => Math.max(a, b), 0);
    this.peakAt = memory.live.indexOf(this.peak);
    this.about = memory.exact ? "" : "about ";
    this.line = shape("line", { class: "cursor-line", y1: 0, y2: MEMORY_HEIGHT });
    this.picture = this.draw();
    this.picture.addEventListener("click", (event) => {
      const box = this.picture.getBoundingClientRect();
      const part = (event.clientX - box.left) / box.width;
      onPick(Math.min(Math.floor(part * memory.live.length), memory.live.length - 1));
    });
    this.box.append(this.picture);
    this.point(-1);
  }

  x(position) {
    return (position / this.memory.live.length) * MEMORY_WIDTH;
  }

  // An area with a step for each bind; of many binds each column shows the highest.
  draw() {
    const { live } = this.memory,
      columns = Math.min(live.length, MEMORY_WIDTH);
    const heights = new Array(columns).fill(0);
    live.forEach((bytes, i) => {
      const column = Math.floor((i * columns) / live.length);
      heights[column] = Math.max(heights[column], bytes);
    });
    const y = (bytes) => MEMORY_HEIGHT - (bytes / (this.peak || 1)) * (MEMORY_HEIGHT - 2);
    const wide = MEMORY_WIDTH / columns;
    const steps = heights.map(
      (bytes, i) => `V${y(bytes).toFixed(1)}H${((i + 1) * wide).toFixed(1)}`,
    );
    const label = `memory over ${counted(live.length, "bind")}, ${this.peakText()}`;
    const picture = shape("svg", {
      viewBox: `0 0 ${MEMORY_WIDTH} ${MEMORY_HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    });
    picture.append(
      shape("path", {
        class: "area c0",
        d: `M0 ${MEMORY_HEIGHT}${steps.join("")}V${MEMORY_HEIGHT}Z`,
      }),
    );
    if (program.cotangents.length) {
      const x = this.x(program.forward);
      picture.append(shape("line", { class: "axis", x1: x, x2: x, y1: 0, y2: MEMORY_HEIGHT }));
    }
    const peak = this.x(this.peakAt + 0.5);
    picture.append(
      shape("line", { class: "mark", x1: peak, x2: peak, y1: 0, y2: MEMORY_HEIGHT }),
      this.line,
    );
    return picture;
  }

  peakText() {
    const row = content.rows[program.rows[this.peakAt]];
    return `peak ${this.about}${bytesText(this.peak)} at ${bindText(row)}`;
  }

  // Move the cursor to a bind; -1 before the first.
  point(position) {
    if (this.memory.reason) return;
    const x = this.x(Math.max(position, 0) + (position < 0 ? 0 : 0.5));
    this.line.setAttribute("x1", x);
    this.line.setAttribute("x2", x);
    const now = position < 0 ? 0 : this.memory.live[position];
    const part = this.peak ? Math.round((100 * now) / this.peak) : 0;
    this.caption.textContent = `${bytesText(now)} here, ${part} % of the ${this.peakText()}`;
  }

  // The arrays that exist at a bind, the largest first: [[text, bytes, first bind], ...].
  heldAt(position) {
    if (this.memory.reason || position < 0) return [];
    const held = this.memory.arrays.filter(
      ([first, last]) => first <= position && position <= last,
    );
    held.sort((a, b) => b[2] - a[2]);
    return held;
  }
}

// A bind in few words: its first binder and its operation.
function bindText(row) {
  return `${row[BINDERS].length ? `${localText(row[BINDERS][0])} ` : ""}${textAt(row[OPERATION])}`;
}

// Lists the arrays that exist at a bind, with bars of their bytes.
function heldElement(strip, position) {
  const held = strip.heldAt(position);
  if (!held.length) return "";
  const most = held[0][2] || 1;
  const items = held.slice(0, MOST_HELD).map(([first, , bytes]) => {
    const row = content.rows[program.rows[first]];
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${Math.max((6 * bytes) / most, 0.2)}em`;
    const go = () => row[BINDERS].length && page.tell("go", row[BINDERS][0]);
    const name = element("button", { type: "button", class: "link", onclick: go }, bindText(row));
    return element("li", {}, name, element("span", { class: "q" }, bytesText(bytes)), bar);
  });
  const more = held.length - items.length;
  if (more > 0) items.push(element("li", { class: "q" }, `and ${more.toLocaleString("en")} more`));
  const title = element("h2", {}, `${counted(held.length, "array")} here`);
  return element(
    "section",
    { class: "held", "aria-label": "arrays that exist here" },
    title,
    element("ul", {}, ...items),
  );
}
