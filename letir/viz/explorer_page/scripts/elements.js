// Elements of the page. Texts of programs become text nodes only, never markup.

// An element with attributes, and children that are elements or texts.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined && value !== null)
      made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// An element of a picture.
function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// What the parts of the page tell each other: "lit" (a local or null), "cursor" (a row).
const page = {
  lit: null,
  listeners: {},
  on(event, listener) {
    (this.listeners[event] ||= []).push(listener);
  },
  tell(event, ...values) {
    for (const listener of this.listeners[event] || []) listener(...values);
  },
  light(local) {
    if (this.lit === local) return;
    this.lit = local;
    this.tell("lit", local);
  },
};

// A line that screen readers say when it changes.
const status = element("output", { class: "status", "aria-live": "polite" });

function say(text) {
  status.textContent = text;
}

// Tabs, of which one panel is shown: [[name, panel], ...]. Arrow keys choose, as ARIA asks.
function tabs(label, panels, onShow = () => {}) {
  const list = element("div", { role: "tablist", "aria-label": label, class: "tabs" });
  const buttons = panels.map(([name, panel], index) => {
    panel.id ||= `panel-${name.toLowerCase()}`;
    panel.setAttribute("role", "tabpanel");
    const button = element("button", { role: "tab", id: `tab-${panel.id}`, type: "button" }, name);
    button.setAttribute("aria-controls", panel.id);
    panel.setAttribute("aria-labelledby", button.id);
    button.addEventListener("click", () => show(index));
    return button;
  });
  function show(index) {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === index));
      button.tabIndex = i === index ? 0 : -1;
      panels[i][1].hidden = i !== index;
    });
    onShow(panels[index][0]);
  }
  list.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    const last = buttons.length - 1,
      now = buttons.indexOf(document.activeElement);
    const next = Math.abs(step) === 1 ? (now + step + last + 1) % (last + 1) : step < 0 ? 0 : last;
    event.preventDefault();
    show(next);
    buttons[next].focus();
  });
  list.append(...buttons);
  return { list, show };
}

// A list of buttons, [[name, about], ...], one of which is the present one: {list, choose}.
function listOfChoices(entries, onChoose) {
  const list = element("ol", { class: "steps" });
  const buttons = entries.map(([name, about], i) => {
    const parts = [element("strong", {}, name), element("span", { class: "q" }, about)];
    const button = element("button", { type: "button", onclick: () => onChoose(i) }, ...parts);
    list.append(element("li", {}, button));
    return button;
  });
  function choose(index) {
    buttons.forEach((button, i) => {
      if (i === index) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    buttons[index].scrollIntoView({ block: "nearest" });
  }
  return { list, choose };
}
