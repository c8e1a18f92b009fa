// The panel "Kernels": the groups of binds that become machine code, with their loops.

function kernelsPanel() {
  const { kernels, reason, left } = content.kernels;
  const panel = element("div", { id: "panel-kernels" });
  if (!kernels.length) {
    panel.append(element("p", {}, reason));
    return panel;
  }
  const named = { tabindex: 0, role: "region", "aria-label": "loops of the kernel" };
  const code = element("pre", { class: "loops", ...named });
  const title = element("h2", {});
  const entries = kernels.map(({ name, bytes, lines }) => {
    const size = bytes === null ? "" : bytesText(bytes);
    return [name, [size, lines.join(", ")].filter(Boolean).join(" · ")];
  });
  const { list, choose } = listOfChoices(entries, show);

  function show(index) {
    choose(index);
    title.textContent = kernels[index].about;
    code.textContent = kernels[index].loops;
  }

  if (left) list.append(element("li", { class: "q" }, `and ${left} more`));
  const aside = element("nav", { class: "aside", "aria-label": "kernels" }, list);
  const pane = element("section", { class: "pane", "aria-label": "loops" }, title, code);
  panel.append(
    element("div", { class: "with-aside" }, element("div", { class: "left" }, pane), aside),
  );
  show(0);
  return panel;
}
