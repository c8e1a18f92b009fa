// The panel "Program": the forward and the backward program side by side, and what is known of the
// line at the cursor.

const MOST_USES = 40; // listed of a local

// The grids of the program: one, or forward and backward.
function programGrids() {
  const { params, cotangents, rows, forward, results, forwardResults } = program;
  if (!cotangents.length) return [new Grid("program", { params, rows, results })];
  const ownParams = params.filter((local) => !cotangents.includes(local));
  return [
    new Grid("forward program", {
      params: ownParams,
      rows: rows.slice(0, forward),
      results: results.slice(0, forwardResults),
    }),
    new Grid("backward program", {
      params: cotangents,
      cotangents,
      rows: rows.slice(forward),
      results: results.slice(forwardResults),
    }),
  ];
}

// A grid below its title.
function titledGrid(grid, title) {
  return element(
    "section",
    { class: "pane", "aria-label": title },
    element("h2", {}, title),
    grid.box,
  );
}

function programPanel() {
  const grids = programGrids();
  const panes = element("div", { class: "panes" });
  grids.forEach((grid) => {
    const rows = grid.source.rows.length;
    panes.append(titledGrid(grid, `${grid.label}, ${counted(rows, "bind")}`));
  });
  const notes = element("p", { class: "q note" });
  if (program.cotangents.length) {
    const numbers = [...keptBytes.values()];
    const total = [counted(numbers.length, "residual"), bytesInTotal(numbers)].filter(Boolean);
    const about = "values of the forward program that the backward program reads.";
    notes.append(`${total.join(", ")}: ${about}`);
  } else notes.append(`No backward program. ${program.reason}`);
  const strip = new MemoryStrip(content.memory, (position) => {
    const [binder] = content.rows[program.rows[position]][BINDERS];
    if (binder !== undefined) page.tell("go", binder);
  });
  const detail = new Detail(grids, strip);
  const panel = element("div", { id: "panel-program" });
  const left = element("div", { class: "left" }, panes, notes, strip.box);
  panel.append(element("div", { class: "with-aside" }, left, detail.box));
  page.on("go", (local) => goToFirst(grids, local));
  page.on("use", (local) => goToUse(grids, local));
  return { panel, grids, detail };
}

// Go to the definition of a local in the first grid that has it.
function goToFirst(grids, local) {
  const grid = grids.find((one) => one.box.offsetParent && one.goTo(local));
  if (grid) grid.box.focus();
}

// Go to the first line that reads a local.
function goToUse(grids, local) {
  for (const grid of grids.filter((one) => one.box.offsetParent)) {
    const index = grid.shown.findIndex((line) => readsOf(line).includes(local));
    if (index < 0) continue;
    const line = grid.shown[index];
    grid.go(index, bindersOf(line).length + readsOf(line).indexOf(local));
    grid.box.focus();
    return;
  }
}

// What is known of the local and the line at the cursor: its type, its uses, the user's code.
class Detail {
  constructor(grids, strip) {
    this.grids = grids;
    this.strip = strip;
    this.places = new Map(program.rows.map((row, i) => [content.rows[row], i]));
    this.users = usersOf(program.rows.map((row) => content.rows[row]));
    this.facts = element("div", { class: "facts" });
    this.more = element("div", {}); // other parts of the page add what they know
    this.code = new SourcePane();
    this.box = element(
      "aside",
      { class: "aside", "aria-label": "at the cursor" },
      element("h2", {}, "at the cursor"),
      this.facts,
      this.more,
      this.code.box,
    );
    page.on("cursor", (grid, line) => this.grids.includes(grid) && this.show(grid, line));
    page.on("lit", (local) => this.count(local));
  }

  show(grid, line) {
    const local = grid.named();
    const facts = [];
    const add = (name, ...values) => {
      if (values.some((v) => v !== ""))
        facts.push(element("dt", {}, name), element("dd", {}, ...values));
    };
    if (local !== null) {
      const title = element("b", { class: "name" }, localText(local));
      facts.push(element("dt", {}, "name"), element("dd", {}, title));
      add("type", typeText(local));
    }
    if (line.kind === "bind") {
      add("operation", textAt(line.row[OPERATION]));
      add("attributes", textAt(line.row[ATTRIBUTES]));
      add("line", placeText(line.row));
    }
    if (local !== null && keptBytes.has(local)) add("kept", bytesText(keptBytes.get(local)));
    if (local !== null) add("read by", ...this.usesOf(local));
    this.facts.replaceChildren(element("dl", {}, ...facts));
    const position =
      line.kind === "bind" && this.places.has(line.row) ? this.places.get(line.row) : null;
    if (position !== null || line.kind === "param")
      this.strip.point(position === null ? -1 : position);
    this.more.replaceChildren(position === null ? "" : heldElement(this.strip, position));
    this.code.show(line.kind === "bind" ? line.row[PLACE] : -1);
  }

  // Buttons to the binds that read a local.
  usesOf(local) {
    const users = this.users.get(local) || [];
    const returned = program.results.includes(local) ? ["return"] : [];
    const parts = [];
    for (const index of users.slice(0, MOST_USES)) {
      const row = content.rows[program.rows[index]];
      const text = `${row[BINDERS].map(numberText).join(", ")} ${textAt(row[OPERATION])}`.trim();
      const target = row[BINDERS][0];
      const go = () => target !== undefined && page.tell("go", target);
      parts.push(element("button", { type: "button", class: "link", onclick: go }, text), " ");
    }
    if (users.length > MOST_USES) parts.push(`and ${users.length - MOST_USES} more `);
    parts.push(...returned);
    return parts.length ? parts : ["nothing"];
  }

  count(local) {
    if (local === null) return;
    const users = (this.users.get(local) || []).length;
    const returned = program.results.includes(local) ? ", returned" : "";
    say(`${localText(local)} ${typeText(local)}: read by ${counted(users, "bind")}${returned}`);
  }
}
