// The panel "Passes": the program after each pass, to scrub through.

const PASS_MARKS = [undefined, "other", "more", "less"]; // as pass_history.py numbers them

function passesPanel() {
  const { steps, count, reason } = content.passes;
  const panel = element("div", { id: "panel-passes" });
  if (!steps.length) {
    const text = reason || `None of ${counted(count, "pass").replace("passs", "passes")} changes the program.`;
    panel.append(element("p", {}, text));
    return { panel, grids: [] };
  }
  const first = { params: program.params, rows: program.rows, results: program.results };
  const grid = new Grid("program after the pass", first);
  const title = element("h2", { "aria-live": "polite" });
  const slider = element("input", {
    type: "range", min: 0, max: steps.length, value: 0, step: 1, "aria-label": "step of the passes",
  });
  const names = ["recorded", ...steps.map((step) => step.name)];
  const list = element("ol", { class: "steps" });
  const buttons = names.map((name, i) => {
    const change = i ? steps[i - 1].change : counted(program.rows.length, "bind");
    const button = element("button", { type: "button", onclick: () => show(i) }, element("strong", {}, name), element("span", { class: "q" }, change));
    list.append(element("li", {}, button));
    return button;
  });
  const only = element("input", { type: "checkbox" });

  function show(index) {
    slider.value = index;
    slider.setAttribute("aria-valuetext", `${index} of ${steps.length}: ${names[index]}`);
    buttons.forEach((button, i) => {
      if (i === index) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    buttons[index].scrollIntoView({ block: "nearest" });
    title.textContent = index ? stepTitle(steps[index - 1]) : `recorded: ${counted(program.rows.length, "bind")}`;
    grid.show(index ? stepLines(steps[index - 1], only.checked) : first);
    const change = grid.shown.findIndex((line) => line.mark);
    grid.go(Math.max(change, 0));
  }

  slider.addEventListener("input", () => show(Number(slider.value)));
  only.addEventListener("change", () => show(Number(slider.value)));
  const note = `${steps.length} of ${count} passes change the program. ${reason}`;
  const tools = element("div", { class: "scrub" }, slider, element("label", {}, only, " only what changes"), element("span", { class: "q" }, note));
  const aside = element("nav", { class: "aside", "aria-label": "passes" }, list);
  const pane = element("section", { class: "pane", "aria-label": "program after the pass" }, title, grid.box);
  panel.append(tools, element("div", { class: "with-aside" }, element("div", { class: "left" }, pane), aside));
  show(0);
  return { panel, grids: [grid] };
}

function stepTitle(step) {
  return `${step.name}: ${step.before.toLocaleString("en")} → ${step.after.toLocaleString("en")} binds, ${step.change}`;
}

// The lines of a step: its rows with marks, or only those with a mark.
function stepLines(step, isOnly) {
  const rows = [], marks = [];
  for (const [mark, first, count] of step.runs) {
    if (isOnly && !mark) continue;
    for (let row = first; row < first + count; row++) {
      rows.push(row);
      marks.push(PASS_MARKS[mark]);
    }
  }
  return { params: isOnly ? [] : step.params, rows, marks, results: isOnly ? null : step.results };
}
