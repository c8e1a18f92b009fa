// The panel "Kernels": the groups of binds that become machine code, with their loops.

function kernelsPanel() {
  const { kernels, reason, left } = content.kernels;
  const panel = element("div", { id: "panel-kernels" });
  if (!kernels.length) {
    panel.append(element("p", {}, reason));
    return panel;
  }
  const code = element("pre", { class: "loops", tabindex: 0, role: "region", "aria-label": "loops of the kernel" });
  const title = element("h2", {});
  const list = element("ol", { class: "steps" });
  const buttons = kernels.map((kernel, i) => {
    const lines = [kernel.bytes === null ? "" : bytesText(kernel.bytes), kernel.lines.join(", ")];
    const about = element("span", { class: "q" }, lines.filter(Boolean).join(" · "));
    const button = element("button", { type: "button", onclick: () => show(i) }, element("strong", {}, kernel.name), about);
    list.append(element("li", {}, button));
    return button;
  });

  function show(index) {
    buttons.forEach((button, i) => {
      if (i === index) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    title.textContent = kernels[index].about;
    code.textContent = kernels[index].loops;
  }

  if (left) list.append(element("li", { class: "q" }, `and ${left} more`));
  const aside = element("nav", { class: "aside", "aria-label": "kernels" }, list);
  const pane = element("section", { class: "pane", "aria-label": "loops" }, title, code);
  panel.append(element("div", { class: "with-aside" }, element("div", { class: "left" }, pane), aside));
  show(0);
  return panel;
}
