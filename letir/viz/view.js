(function () {
  var HOME = "b, g";  // where a name is bound: in a table, in a picture
  // Every view of the document that has not been made interactive yet.
  document.querySelectorAll(".letir:not([data-ready])").forEach(function (view) {
    view.dataset.ready = "1";
    var named = {}, names = [].slice.call(view.querySelectorAll("[data-v]"));
    names.forEach(function (name) {
      (named[name.dataset.v] = named[name.dataset.v] || []).push(name);
    });
    var tools = view.querySelector(".tools"), status = document.createElement("output"), lit = [];

    function light(name) {
      lit.forEach(function (other) { other.classList.remove("use", "def"); });
      lit = name ? named[name.dataset.v] : [];
      lit.forEach(function (other) {
        other.classList.add(other.matches(HOME) ? "def" : "use");
      });
      if (name && tools) {
        var uses = lit.filter(function (other) { return !other.matches(HOME); }).length;
        status.textContent = name.textContent + ": used " + uses + (uses === 1 ? " time" : " times");
      }
    }
    function nameAt(event) {
      return event.target.closest ? event.target.closest("[data-v]") : null;
    }
    view.addEventListener("mouseover", function (event) { light(nameAt(event)); });
    view.addEventListener("mouseleave", function () { light(null); });
    view.addEventListener("focusin", function (event) { light(nameAt(event)); });

    // One name can be reached by Tab; the arrow keys go on to the others.
    var current = null;
    function go(name) {
      if (!name) return;
      if (current) current.tabIndex = -1;
      current = name;
      name.tabIndex = 0;
    }
    names = names.filter(function (name) { return !name.matches("path"); });
    names.forEach(function (name) {
      name.tabIndex = -1;
      name.setAttribute("role", "button");
      var picture = name.closest("svg");  // an image has no parts for screen readers
      if (picture) picture.setAttribute("role", "group");
    });
    go(names[0]);
    function isShown(name) { return name.getClientRects().length > 0; }
    function next(name, step, other) {
      var at = names.indexOf(name) + step;
      while (names[at] && !(isShown(names[at]) && (!other || names[at].closest("tr") !== other)))
        at += step;
      return names[at];
    }
    view.addEventListener("click", function (event) {
      var name = nameAt(event);
      if (name) { go(name); name.focus(); }
    });
    view.addEventListener("keydown", function (event) {
      var name = nameAt(event), to = null;
      if (!name) return;
      if (event.key === "ArrowRight") to = next(name, 1);
      if (event.key === "ArrowLeft") to = next(name, -1);
      if (event.key === "ArrowDown") to = next(name, 1, name.closest("tr"));
      if (event.key === "ArrowUp") to = next(name, -1, name.closest("tr"));
      if (event.key === "Enter")
        to = named[name.dataset.v].filter(function (other) { return other.matches(HOME); })[0];
      if (!to) return;
      for (var up = to.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
      event.preventDefault();
      event.stopPropagation();
      go(to);
      to.focus();
    });

    if (!tools) return;
    var label = document.createElement("label"), box = document.createElement("input");
    box.type = "search";
    label.append("search ", box);
    tools.append(label, status);
    var rows = [].slice.call(view.querySelectorAll("tbody tr"));
    box.addEventListener("input", function () {
      var wanted = box.value.trim().toLowerCase(), found = 0;
      rows.forEach(function (row) {
        var matches = row.textContent.toLowerCase().indexOf(wanted) >= 0;
        row.hidden = !matches;
        if (matches && !row.querySelector("tr")) found += 1;
        row.querySelectorAll(":scope > td > details").forEach(function (body) {
          body.open = wanted !== "" && matches && body.textContent.toLowerCase().indexOf(wanted) >= 0;
        });
      });
      status.textContent = wanted ? found + (found === 1 ? " line" : " lines") : "";
    });
  });
})();
