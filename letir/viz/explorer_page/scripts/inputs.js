// The arguments of a run: a table of numbers to change, and a slider for the one that is chosen.

const MOST_INPUTS = 60; // elements of an argument that can be changed

class Inputs {
  // `onChange` is called after a number has changed.
  constructor(state, onChange) {
    this.state = state;
    this.onChange = onChange;
    this.chosen = 0; // the element that the slider changes
    this.select = element("select", { "aria-label": "argument" });
    program.params.forEach((local, i) => {
      const word = program.cotangents.includes(local) ? " (cotangent)" : "";
      this.select.append(element("option", { value: i }, localText(local) + word));
    });
    this.select.addEventListener("change", () => this.show());
    this.fields = element("div", { class: "fields" });
    this.slider = element("input", { type: "range" });
    this.slider.addEventListener("input", () => this.set(this.chosen, Number(this.slider.value)));
    const reset = element(
      "button",
      { type: "button", class: "plain", onclick: () => this.reset() },
      "reset",
    );
    const head = element("div", { class: "input-head" }, this.select, reset);
    this.box = element(
      "section",
      { class: "inputs", "aria-label": "arguments" },
      element("h2", {}, "arguments"),
      head,
      this.fields,
      this.slider,
    );
    this.show();
  }

  array() {
    return this.state.args[Number(this.select.value)];
  }

  nameOf(index) {
    const { shape } = this.array(),
      strides = stridesOf(shape);
    const places = shape.map((n, axis) => Math.floor(index / strides[axis]) % n);
    const name = localText(program.params[Number(this.select.value)]);
    return places.length ? `${name}[${places.join(", ")}]` : name;
  }

  // Fields for the elements of the argument that is selected.
  show() {
    const array = this.array(),
      [, columns] = rowsAndColumns(array);
    const count = Math.min(array.data.length, MOST_INPUTS);
    this.chosen = 0;
    this.inputs = Array.from({ length: count }, (_, i) => this.field(array, i));
    const left = array.data.length - count;
    const grid = element("div", { class: "input-grid" }, ...this.inputs);
    grid.style.gridTemplateColumns = `repeat(${Math.min(columns, 4)}, minmax(4em, 6em))`;
    this.fields.replaceChildren(
      grid,
      left ? element("p", { class: "q" }, `… ${left} more, not shown`) : "",
    );
    this.slider.hidden = !count;
    if (count) this.choose(0);
  }

  field(array, index) {
    const whole = array.dtype !== "float64" && array.dtype !== "float32";
    const field = element("input", {
      type: "number",
      step: whole ? 1 : "any",
      "aria-label": this.nameOf(index),
      value: fieldText(array, index),
    });
    field.addEventListener("focus", () => this.choose(index));
    field.addEventListener("input", () => {
      if (field.value !== "" && Number.isFinite(Number(field.value)))
        this.set(index, Number(field.value), field);
    });
    return field;
  }

  // Let the slider change this element.
  choose(index) {
    const { dtype, data } = this.array(),
      value = data[index];
    const isFloat = dtype.startsWith("float"),
      reach = Math.max(3, Math.ceil(Math.abs(value)) * 2);
    this.chosen = index;
    const [low, high] = dtype === "bool" ? [0, 1] : [-reach, reach];
    for (const [name, to] of Object.entries({
      min: low,
      max: high,
      step: isFloat ? reach / 150 : 1,
    }))
      this.slider[name] = to;
    this.slider.value = value;
    this.slider.setAttribute("aria-label", `change ${this.nameOf(index)}`);
  }

  set(index, value, field = null) {
    const array = this.array();
    array.data[index] = array.dtype.startsWith("float") ? value : Math.trunc(value);
    if (field) this.slider.value = value;
    else this.inputs[index].value = fieldText(array, index);
    this.onChange();
  }

  reset() {
    this.state.reset();
    this.show();
    this.onChange();
  }
}

const fieldText = ({ data, dtype }, index) =>
  dtype.startsWith("float") ? String(Number(data[index].toPrecision(6))) : String(data[index]);
