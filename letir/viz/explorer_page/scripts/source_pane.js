// The user's source, with the lines of the bind at the cursor marked.
class SourcePane {
  constructor() {
    this.title = element("h2", {}, "source");
    this.text = element("div", {
      class: "source",
      tabindex: 0,
      role: "region",
      "aria-label": "source",
    });
    this.box = element(
      "section",
      { class: "source-pane", "aria-label": "your code" },
      this.title,
      this.text,
    );
    this.file = -1;
  }

  show(place) {
    if (place < 0 && !content.lines.length) {
      this.text.textContent = "no line of code";
      return;
    }
    if (place < 0 && this.file >= 0) return this.mark(0, 0);
    // before a bind is chosen, the code of the first one, without a mark
    const [file, first, last] = place < 0 ? [content.lines[0][0], 0, 0] : content.lines[place];
    this.title.textContent = content.files[file].name;
    if (file !== this.file) this.fill(file);
    this.mark(first, last);
  }

  fill(file) {
    this.file = file;
    this.lines = new Map();
    const parts = [];
    for (const [first, texts] of content.files[file].pieces) {
      if (parts.length) parts.push(element("div", { class: "gap q" }, "⋯"));
      texts.forEach((text, i) => {
        const number = element("span", { class: "number" }, String(first + i));
        const line = element("div", { class: "code-line" }, number, text || " ");
        this.lines.set(first + i, line);
        parts.push(line);
      });
    }
    this.text.replaceChildren(...parts);
  }

  mark(first, last) {
    for (const line of this.text.querySelectorAll(".here")) line.classList.remove("here");
    for (let number = first; number <= last; number++) {
      const line = this.lines && this.lines.get(number);
      if (!line) continue;
      line.classList.add("here");
      if (number > first) continue;
      const top = line.offsetTop - this.text.clientHeight / 3;
      this.text.scrollTop = Math.max(top, 0);
    }
  }
}
