// The panel "Run": the binds one after the other with their values, and arguments to change.

function runPanel() {
  const panel = element("div", { id: "panel-run" });
  const state = new RunState(content.run);
  if (content.run.reason) {
    panel.append(element("p", {}, `The program does not run in this page. ${content.run.reason}`));
    return { panel, grids: [] };
  }
  const { params, cotangents, rows, results } = program, count = rows.length;
  const positions = new Map(rows.map((row, i) => [content.rows[row], i]));
  let step = count;
  const valueOf = (local) => state.values.get(local);
  const isDone = (line) => line.kind === "param" || (line.kind === "bind" && positions.has(line.row) && positions.get(line.row) < step);
  const cell = (line) => {
    if (!isDone(line)) return [];
    return [bindersOf(line).map((local) => (valueOf(local) ? shortText(valueOf(local)) : "not stored")).join(", ")];
  };
  const grid = new Grid("program with its values", { params, cotangents, rows, results }, { head: "value", cell });
  const slider = element("input", { type: "range", min: 0, max: count, value: count, "aria-label": "binds that have run" });
  const button = (text, to) => element("button", { type: "button", class: "plain", onclick: () => goStep(to()) }, text);
  const caption = element("span", { class: "q", "aria-live": "polite" });
  const tools = element("div", { class: "scrub" },
    button("start", () => 0), button("back", () => step - 1), button("step", () => step + 1), button("all", () => count),
    slider, caption);
  const fault = element("p", { class: "fault", role: "alert" });
  const value = element("section", { class: "value-box", "aria-label": "value at the cursor" });
  const outcomes = element("section", { class: "outcomes", "aria-label": "results" });
  const note = element("p", { class: "q note" }, state.note());

  function goStep(to) {
    step = Math.max(0, Math.min(to, count));
    slider.value = step;
    grid.draw(true);
    if (step) grid.goTo(content.rows[rows[step - 1]][BINDERS][0]);
    else grid.go(0);
    tell();
  }

  function tell() {
    const row = step ? content.rows[rows[step - 1]] : null;
    caption.textContent = `${step} of ${counted(count, "bind")}${row ? `, last ${bindText(row)}` : ""}`;
  }

  function showValue() {
    const local = grid.named();
    const known = local !== null && valueOf(local) && isShown(local) ? valueOf(local) : null;
    const title = element("h2", {}, local === null ? "value" : `${localText(local)} ${typeText(local)}`);
    const body = known ? valueElement(known, localText(local)) : element("p", { class: "q" }, local === null ? "" : "not computed yet");
    value.replaceChildren(title, body);
  }

  const homes = new Map();
  rows.forEach((row, i) => content.rows[row][BINDERS].forEach((local) => homes.set(local, i)));
  const isShown = (local) => !homes.has(local) || homes.get(local) < step;

  function showResults() {
    fault.textContent = state.error;
    const items = results.map((operand, i) => resultElement(state, operand, i));
    outcomes.replaceChildren(element("h2", {}, "results"), element("dl", {}, ...items.flat()));
  }

  function refresh() {
    grid.draw(true);
    showValue();
    showResults();
  }

  let isWaiting = false;
  function recompute() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      state.compute();
      refresh();
    });
  }

  slider.addEventListener("input", () => goStep(Number(slider.value)));
  page.on("cursor", (other) => other === grid && showValue());
  page.on("go", (local) => grid.box.offsetParent && grid.goTo(local));
  page.on("tab", () => showValue()); // images take the colours of a page that is shown
  const aside = element("aside", { class: "aside", "aria-label": "arguments and values" });
  if (state.isLive) aside.append(new Inputs(state, recompute).box);
  aside.append(outcomes, value);
  const pane = element("section", { class: "pane", "aria-label": "binds" }, tools, fault, grid.box);
  panel.append(element("div", { class: "with-aside" }, element("div", { class: "left" }, pane, note), aside));
  refresh();
  tell();
  return { panel, grids: [grid] };
}

// A result: its name, its value, and what it was before an argument changed.
function resultElement(state, operand, i) {
  const about = i < program.forwardResults ? `result ${operandText(operand)}` : `gradient of ${localText(program.inputs[i - program.forwardResults])}`;
  const now = isLocal(operand) && state.values.get(operand);
  const text = now ? shortText(now) : isLocal(operand) ? "not stored" : operand;
  const before = isLocal(operand) && state.first && state.first.get(operand);
  const old = before && now ? shortText(before) : text;
  const was = old === text ? "" : element("span", { class: "q" }, ` was ${old}`);
  return [element("dt", {}, about), element("dd", {}, text, was)];
}
