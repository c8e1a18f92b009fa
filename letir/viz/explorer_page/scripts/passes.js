// The panel "Passes": the program after each pass, to scrub through.

const PASS_MARKS = [undefined, "other", "more", "less"]; // as pass_history.py numbers them

function passesPanel() {
  const { steps, count, reason } = content.passes;
  const panel = element("div", { id: "panel-passes" });
  if (!steps.length) {
    panel.append(element("p", {}, reason || `None of ${count} passes changes the program.`));
    return { panel, grids: [] };
  }
  const { grid, tools, left, list } = new PassesPanel(steps);
  tools.append(
    element(
      "span",
      { class: "q" },
      `${steps.length} of ${count} passes change the program. ${reason}`,
    ),
  );
  const aside = element("nav", { class: "aside", "aria-label": "passes" }, list);
  panel.append(tools, element("div", { class: "with-aside" }, left, aside));
  return { panel, grids: [grid] };
}

class PassesPanel {
  constructor(steps) {
    this.steps = steps;
    this.grid = new Grid("program after the pass", program);
    this.title = element("h2", { "aria-live": "polite" });
    const range = { type: "range", min: 0, max: steps.length, value: 0, step: 1 };
    this.slider = element("input", { ...range, "aria-label": "step of the passes" });
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
    this.only = element("input", { type: "checkbox" });
    this.only.addEventListener("change", () => this.show(Number(this.slider.value)));
    const only = element("label", {}, this.only, " only what changes");
    this.tools = element("div", { class: "scrub" }, this.slider, only);
    const about = ["recorded", counted(program.rows.length, "bind")];
    const entries = [about, ...steps.map(({ name, change }) => [name, change])];
    const choices = listOfChoices(entries, (index) => this.show(index));
    this.list = choices.list;
    this.choose = choices.choose;
    const label = { class: "pane", "aria-label": "program after the pass" };
    this.left = element(
      "div",
      { class: "left" },
      element("section", label, this.title, this.grid.box),
    );
    this.show(0);
  }

  show(index) {
    const step = this.steps[index - 1];
    this.slider.value = index;
    this.slider.setAttribute("aria-valuetext", step ? `${index}: ${step.name}` : "recorded");
    this.choose(index);
    this.title.textContent = step
      ? stepTitle(step)
      : `recorded: ${counted(program.rows.length, "bind")}`;
    this.grid.show(step ? stepLines(step, this.only.checked) : program);
    this.grid.go(
      Math.max(
        this.grid.shown.findIndex((line) => line.mark),
        0,
      ),
    );
  }
}

function stepTitle({ name, before, after, change }) {
  return `${name}: ${before.toLocaleString("en")} → ${after.toLocaleString("en")} binds, ${change}`;
}

// The lines of a step: its rows with marks, or only those with a mark.
function stepLines(step, isOnly) {
  const rows = [],
    marks = [];
  for (const [mark, first, count] of step.runs) {
    if (isOnly && !mark) continue;
    for (let row = first; row < first + count; row++) {
      rows.push(row);
      marks.push(PASS_MARKS[mark]);
    }
  }
  return { params: isOnly ? [] : step.params, rows, marks, results: isOnly ? null : step.results };
}
