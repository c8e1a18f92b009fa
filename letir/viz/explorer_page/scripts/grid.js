// A table of lines of which only those in view are elements: 10^5 lines scroll like ten.

const ROW_HEIGHT = 22; // pixels, as in page.css
const BEYOND = 10; // rows that are made above and below those in view
const HEADS = ["name", "type", "operation", "line"];
let gridCount = 0;

class Grid {
  // `source` gives the lines: what `linesOf` takes. `label` is for screen readers.
  // `last`, {head, cell}, is another last column: `cell` gives the children of a line's cell.
  constructor(label, source, last = null) {
    this.id = `grid${gridCount++}`;
    this.label = label;
    this.column = last;
    this.open = new Set();
    this.wanted = "";
    this.cursor = 0; // a position in `shown`
    this.at = 0; // which name of the line at the cursor
    const head = element("div", { role: "row", class: "row head", "aria-rowindex": 1 });
    head.append(
      ...HEADS.map((text, i) =>
        element("span", { role: "columnheader" }, last && i === 3 ? last.head : text),
      ),
    );
    this.space = element("div", { class: "space", role: "presentation" });
    this.box = element(
      "div",
      { class: last ? "grid with-values" : "grid", role: "grid", tabindex: 0, "aria-label": label },
      head,
      this.space,
    );
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("mousedown", (event) => this.onPoint(event));
    this.box.addEventListener("mouseover", (event) => this.onHover(event));
    this.box.addEventListener("mouseleave", () => page.light(this.named()));
    this.box.addEventListener("focus", () => this.tell());
    new ResizeObserver(() => this.draw()).observe(this.box);
    page.on("lit", () => this.light());
    this.show(source);
  }

  // Show other lines; the cursor stays where it is, as far as there are lines.
  show(source) {
    this.source = source;
    this.unfolded = null; // all lines, with every body unfolded: what a search looks at
    this.refresh();
  }

  // Make the lines again: bodies have been folded or unfolded.
  refresh() {
    this.list();
    this.draw(true);
  }

  // Find the lines to be shown, without drawing them.
  list() {
    const isSearching = this.wanted !== "";
    if (isSearching) {
      this.unfolded ||= linesOf(this.source, this.open, true);
      this.shown = this.unfolded.filter((line) => searchText(line).includes(this.wanted));
    } else this.shown = linesOf(this.source, this.open);
    this.cursor = Math.max(0, Math.min(this.cursor, this.shown.length - 1));
    this.box.setAttribute("aria-rowcount", this.shown.length + 1);
    this.space.style.height = `${this.shown.length * ROW_HEIGHT}px`;
  }

  // Make what a search looks at, before it is asked for.
  prepare() {
    this.unfolded ||= linesOf(this.source, this.open, true);
    this.unfolded.forEach(searchText);
  }

  // Leave only the lines that contain a text; returns their number.
  search(text) {
    if (text.trim().toLowerCase() === this.wanted) return this.shown.length;
    const line = this.shown[this.cursor];
    this.wanted = text.trim().toLowerCase();
    this.list();
    const place = line ? this.shown.findIndex((other) => isSameLine(other, line)) : -1;
    this.cursor = Math.max(place, 0);
    this.at = 0;
    this.reveal(true); // draws once, where the cursor is
    return this.shown.length;
  }

  // ---- drawing ----

  draw(isNew = false) {
    const top = Math.max(this.box.scrollTop - ROW_HEIGHT, 0);
    const first = Math.max(Math.floor(top / ROW_HEIGHT) - BEYOND, 0);
    const count = Math.ceil(this.box.clientHeight / ROW_HEIGHT) + 2 * BEYOND;
    const last = Math.min(first + count, this.shown.length);
    if (!isNew && first === this.first && last === this.last) return;
    [this.first, this.last] = [first, last];
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.rowElement(i));
    this.space.replaceChildren(...rows);
    this.point();
    this.light();
  }

  rowElement(index) {
    const line = this.shown[index];
    const row = element("div", {
      role: "row",
      class: `row ${line.kind} ${line.mark || ""}`,
      id: `${this.id}-${index}`,
      "aria-rowindex": index + 2,
    });
    row.style.top = `${index * ROW_HEIGHT}px`;
    const cells = cellsOf(line);
    if (this.column) cells[3] = this.column.cell(line);
    cells.forEach((children, i) => {
      const cell = element("span", { role: "gridcell", class: `cell c-${HEADS[i]}` }, ...children);
      if (i === 0) cell.style.paddingLeft = `${0.4 + line.depth}em`;
      if (cell.textContent.length > 20) cell.title = cell.textContent;
      row.append(cell);
    });
    if (line.mark) row.firstChild.prepend(markElement(line.mark));
    return row;
  }

  // Mark the row and the name at the cursor.
  point() {
    const row = this.elementAt(this.cursor);
    this.space.querySelectorAll(".here, .now").forEach((e) => e.classList.remove("here", "now"));
    this.space
      .querySelectorAll("[aria-selected]")
      .forEach((e) => e.removeAttribute("aria-selected"));
    if (!row) {
      this.box.removeAttribute("aria-activedescendant");
      return;
    }
    row.classList.add("here");
    row.setAttribute("aria-selected", "true");
    this.box.setAttribute("aria-activedescendant", row.id);
    const names = row.querySelectorAll("[data-v]");
    if (names[this.at]) names[this.at].classList.add("now");
  }

  elementAt(index) {
    return index >= this.first && index < this.last
      ? this.space.children[index - this.first]
      : null;
  }

  // Light up the definition and the uses of the lit local, where they are in view.
  light() {
    for (const name of this.space.querySelectorAll("[data-v]")) {
      const isLit = page.lit !== null && Number(name.dataset.v) === page.lit;
      name.classList.toggle("def", isLit && name.tagName === "B");
      name.classList.toggle("use", isLit && name.tagName === "I");
    }
  }

  // ---- the cursor ----

  line() {
    return this.shown[this.cursor];
  }

  // The local at the cursor; null if the line has none.
  named() {
    const line = this.line();
    const names = line ? [...bindersOf(line), ...readsOf(line)] : [];
    return names.length ? names[Math.min(this.at, names.length - 1)] : null;
  }

  // Move the cursor to a line, and to a name in it.
  go(index, at = 0) {
    if (!this.shown.length) return;
    this.cursor = Math.max(0, Math.min(index, this.shown.length - 1));
    const line = this.line(),
      count = bindersOf(line).length + readsOf(line).length;
    this.at = Math.max(0, Math.min(at, count - 1));
    this.reveal();
    this.tell();
  }

  reveal(isNew = false) {
    const top = this.cursor * ROW_HEIGHT,
      room = this.box.clientHeight - 2 * ROW_HEIGHT;
    const above = this.box.scrollTop - top,
      below = top - this.box.scrollTop - room;
    const isFar = Math.max(above, below) > 2 * ROW_HEIGHT; // then some lines around it are shown
    if (above > 0) this.box.scrollTop = isFar ? top - room / 3 : top;
    else if (below > 0) this.box.scrollTop = isFar ? top - room / 3 : top - room;
    this.draw(isNew);
    this.point();
  }

  tell() {
    this.point();
    page.light(this.named());
    if (this.line()) page.tell("cursor", this, this.line());
  }

  // Go to the line that binds a local; false if this grid has none. A search that hides the line
  // ends, and bodies around it unfold.
  goTo(local) {
    if (this.goToShown(local)) return true;
    if (this.wanted) page.tell("clear");
    return this.goToShown(local) || (this.unfoldTo(local) && this.goToShown(local));
  }

  goToShown(local) {
    const index = this.shown.findIndex((line) => bindersOf(line).includes(local));
    if (index >= 0) this.go(index);
    return index >= 0;
  }

  // Unfold the bodies around the line that binds a local; false if there is none in a body.
  unfoldTo(local) {
    const way = [];
    const isIn = (row) =>
      (row[BODIES] || []).some((body) => {
        const found =
          body[BODY_PARAMS].includes(local) ||
          body[BODY_ROWS].some((inner) => inner[BINDERS].includes(local) || isIn(inner));
        if (found) way.push(body);
        return found;
      });
    const found = this.source.rows.some(
      (row) => content.rows[row][BODIES] && isIn(content.rows[row]),
    );
    way.forEach((body) => this.open.add(body));
    if (found) this.refresh();
    return found;
  }

  // ---- events ----

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pageRows = Math.max(Math.floor(this.box.clientHeight / ROW_HEIGHT) - 2, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: pageRows, PageUp: -pageRows };
    if (event.key in steps) this.go(this.cursor + steps[event.key]);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.shown.length - 1);
    else if (event.key === "ArrowRight") this.go(this.cursor, this.at + 1);
    else if (event.key === "ArrowLeft") this.go(this.cursor, this.at - 1);
    else if (event.key === "Enter") this.follow();
    else if (event.key === " ") this.fold(this.line());
    else return;
    event.preventDefault();
  }

  // Enter: from a use to the definition, from a definition to the first use.
  follow() {
    const line = this.line();
    if (!line) return;
    if (line.kind === "body" && this.at === 0) this.fold(line);
    else if (this.at >= bindersOf(line).length) page.tell("go", this.named());
    else page.tell("use", this.named());
  }

  fold(line) {
    const bodies = !line ? [] : line.kind === "body" ? [line.body] : (line.row || [])[BODIES] || [];
    if (!bodies.length || this.wanted) return;
    const isOpen = bodies.every((body) => this.open.has(body));
    bodies.forEach((body) => (isOpen ? this.open.delete(body) : this.open.add(body)));
    this.refresh();
    say(`${bodies.map(bodyHead).join(", ")}, ${isOpen ? "folded" : "unfolded"}`);
  }

  onPoint(event) {
    const row = event.target.closest(".row[id]");
    if (!row || event.button) return;
    const index = this.first + [...this.space.children].indexOf(row);
    const name = event.target.closest("[data-v]");
    const at = name ? [...row.querySelectorAll("[data-v]")].indexOf(name) : 0;
    this.go(index, at);
    if (event.target.closest(".fold")) this.fold(this.line());
    else if (event.detail === 2) this.follow();
  }

  onHover(event) {
    const name = event.target.closest("[data-v]");
    page.light(name ? Number(name.dataset.v) : this.named());
  }
}

// Whether two lines show the same part of a program.
const isSameLine = (a, b) =>
  a.kind === b.kind &&
  a.row === b.row &&
  a.body === b.body &&
  a.local === b.local &&
  (a.operands || null) === (b.operands || null);

// The sign of a line that a pass changed: not by colour alone.
const MARKS = { less: ["−", "removed"], more: ["+", "added"], other: ["~", "changed"] };

function markElement(mark) {
  const [sign, word] = MARKS[mark];
  return element("span", { class: "mark-sign", role: "img", "aria-label": word }, sign);
}
