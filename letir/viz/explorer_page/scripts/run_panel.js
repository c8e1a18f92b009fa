// The panel "Run": the binds one after the other with their values, and arguments to change.

function runPanel() {
  const panel = element("div", { id: "panel-run" });
  if (content.run.reason) {
    const text = `The program does not run in this page. ${content.run.reason}`;
    panel.append(element("p", {}, text));
    return { panel, grids: [] };
  }
  const { grid, left, aside } = new RunPanel(new RunState(content.run));
  panel.append(element("div", { class: "with-aside" }, left, aside));
  return { panel, grids: [grid] };
}

class RunPanel {
  constructor(state) {
    this.state = state;
    this.step = this.count = program.rows.length; // the binds that have run
    this.made = new Map(); // local -> the number of its bind
    program.rows.forEach((row, i) => {
      for (const local of content.rows[row][BINDERS]) this.made.set(local, i);
    });
    const column = { head: "value", cell: (line) => this.cell(line) };
    this.grid = new Grid("program with its values", program, column);
    this.value = element("section", { class: "value-box", "aria-label": "value at the cursor" });
    this.results = element("section", { class: "outcomes", "aria-label": "results" });
    this.fault = element("p", { class: "fault", role: "alert" });
    const note = element("p", { class: "q note" }, state.note());
    const label = { class: "pane", "aria-label": "binds" };
    const pane = element("section", label, this.tools(), this.fault, this.grid.box);
    this.left = element("div", { class: "left" }, pane, note);
    this.aside = element("aside", { class: "aside", "aria-label": "arguments and values" });
    if (state.isLive && program.params.length)
      this.aside.append(new Inputs(state, () => this.recompute()).box);
    this.aside.append(this.results, this.value);
    page.on("cursor", (other) => other === this.grid && this.showValue());
    page.on("go", (local) => this.grid.box.offsetParent && this.grid.goTo(local));
    page.on("tab", () => this.showValue()); // images take the colours of the page
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.showValue());
    this.refresh();
    this.tell();
  }

  // The buttons and the slider that step through the binds.
  tools() {
    const { count } = this;
    const range = { type: "range", min: 0, max: count, value: count };
    this.slider = element("input", { ...range, "aria-label": "binds that have run" });
    this.slider.addEventListener("input", () => this.goStep(Number(this.slider.value)));
    this.caption = element("span", { class: "q", "aria-live": "polite" });
    const places = {
      start: () => 0,
      back: () => this.step - 1,
      step: () => this.step + 1,
      all: () => count,
    };
    const buttons = Object.entries(places).map(([text, to]) =>
      element("button", { type: "button", class: "plain", onclick: () => this.goStep(to()) }, text),
    );
    return element("div", { class: "scrub" }, ...buttons, this.slider, this.caption);
  }

  // Show the values after this number of binds.
  goStep(to) {
    this.step = Math.max(0, Math.min(to, this.count));
    this.slider.value = this.step;
    this.grid.draw(true);
    const [binder] = this.step ? content.rows[program.rows[this.step - 1]][BINDERS] : [];
    if (binder === undefined) this.grid.go(this.step && this.grid.cursor);
    else this.grid.goTo(binder);
    this.tell();
  }

  tell() {
    const row = this.step ? content.rows[program.rows[this.step - 1]] : null;
    const last = row ? `, last ${bindText(row)}` : "";
    this.caption.textContent = `${this.step} of ${counted(this.count, "bind")}${last}`;
  }

  // Whether the bind that makes a local has run.
  isDone(local) {
    return !this.made.has(local) || this.made.get(local) < this.step;
  }

  // The last cell of a line: the first numbers of its values.
  cell(line) {
    const locals = line.kind === "param" || line.kind === "bind" ? bindersOf(line) : [];
    const known = (local) => {
      const value = this.state.values.get(local);
      return value ? shortText(value) : this.made.has(local) ? "not stored" : "";
    };
    return line.depth
      ? []
      : [
          locals
            .filter((l) => this.isDone(l))
            .map(known)
            .join(", "),
        ];
  }

  showValue() {
    const local = this.grid.named();
    const name = local === null ? "value" : localText(local);
    const value = local === null ? null : this.state.values.get(local);
    const why = local === null ? "" : this.isDone(local) ? "not stored" : "not computed yet";
    const isShown = value && this.isDone(local);
    const body = isShown ? valueElement(value, name) : element("p", { class: "q" }, why);
    const title = local === null ? name : `${name} ${typeText(local)}`;
    this.value.replaceChildren(element("h2", {}, title), body);
  }

  showResults() {
    this.fault.textContent = this.state.error;
    const items = program.results.flatMap((operand, i) => this.result(operand, i));
    this.results.replaceChildren(element("h2", {}, "results"), element("dl", {}, ...items));
  }

  // A result: its name, its value, and what it was before an argument changed.
  result(operand, i) {
    const input = program.inputs[i - program.forwardResults];
    const about =
      input === undefined ? `result ${operandText(operand)}` : `gradient of ${localText(input)}`;
    if (!isLocal(operand)) return [element("dt", {}, about), element("dd", {}, operand)];
    const now = this.state.values.get(operand),
      before = this.state.first && this.state.first.get(operand);
    const text = now ? shortText(now) : "not stored",
      old = before && now ? shortText(before) : text;
    const was = old === text ? "" : element("span", { class: "q" }, ` was ${old}`);
    return [element("dt", {}, about), element("dd", {}, text, was)];
  }

  refresh() {
    this.grid.draw(true);
    this.showValue();
    this.showResults();
  }

  // Compute again before the next picture is drawn, once for many changes.
  recompute() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.state.compute();
      this.refresh();
    });
  }
}
