// The page: its head with the search, its tabs, and the keys that work everywhere.

function searchField(grids) {
  const box = element("input", { type: "search", placeholder: "name, operation, type, line" });
  const count = element("output", { class: "q count", "aria-live": "polite" });
  const label = element("label", { class: "search" }, "search ", box);
  const shown = () => grids.filter((grid) => grid.box.offsetParent);
  function search() {
    const lines = shown().reduce((sum, grid) => sum + grid.search(box.value), 0);
    count.textContent = box.value.trim() ? counted(lines, "line") : "";
  }
  function clear() {
    box.value = "";
    search();
  }
  box.addEventListener("input", search);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") clear();
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    const grid = shown().find((one) => one.shown.length);
    if (!grid) return;
    event.preventDefault();
    grid.box.focus();
    grid.go(grid.cursor);
  });
  page.on("clear", clear);
  page.on("tab", search); // grids of other tabs are searched when they are shown
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "/") {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key === "Escape" && box.value) {
      clear();
      shown().forEach((grid) => grid.reveal());
    }
  });
  return element("div", { class: "search-tools", role: "search" }, label, count);
}

function openPage() {
  const { panel, grids } = programPanel();
  const passes = passesPanel();
  const running = runPanel();
  const all = [...grids, ...running.grids, ...passes.grids];
  const panels = [
    ["Program", panel],
    ["Run", running.panel],
    ["Passes", passes.panel],
    ["Kernels", kernelsPanel()],
  ];
  const { list, show } = tabs("views", panels, () => page.tell("tab"));
  page.on("tab", () => all.forEach((grid) => grid.draw(true)));
  const head = element(
    "header",
    {},
    element("h1", {}, content.title, " ", element("span", { class: "q" }, content.about)),
    searchField(all),
  );
  const help = element(
    "p",
    { class: "q keys" },
    "Keys: / search · arrows move · Enter definition or use · Space unfold · Escape all lines",
  );
  const main = element("main", {}, list, ...panels.map(([, one]) => one));
  document.body.append(head, main, element("footer", {}, status, help));
  show(0);
  grids[0].go(0);
  const whenIdle = window.requestIdleCallback || setTimeout;
  grids.forEach((grid) => whenIdle(() => grid.prepare()));
}

openPage();
