(function () {
  "use strict";
  var tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  document.body.appendChild(tip);
  function words(mark) {
    var title = mark.querySelector("title");
    return title ? title.textContent : "";
  }
  function show(mark) {
    var box = mark.getBoundingClientRect();
    tip.textContent = words(mark);
    tip.style.display = "block";
    var left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
    var top = box.top - tip.offsetHeight - 8;
    tip.style.left = left + scrollX + "px";
    tip.style.top = (top < 4 ? box.bottom + 8 : top) + scrollY + "px";
  }
  function hide() { tip.style.display = "none"; }
  document.querySelectorAll(".drawing svg").forEach(function (drawing) {
    var marks = Array.prototype.filter.call(drawing.querySelectorAll("rect,circle,path"), function (one) {
      return one.querySelector("title");
    });
    if (!marks.length) { return; }
    drawing.setAttribute("role", "group");
    marks.forEach(function (mark, place) {
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", words(mark));
      mark.setAttribute("tabindex", place ? "-1" : "0");
      mark.addEventListener("mouseenter", function () { show(mark); });
      mark.addEventListener("click", function () { show(mark); });
      mark.addEventListener("focus", function () { show(mark); });
      mark.addEventListener("mouseleave", hide);
      mark.addEventListener("blur", hide);
      mark.addEventListener("keydown", function (event) {
        var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        var next = step ? marks[place + step] : event.key === "Home" ? marks[0] : event.key === "End" ? marks[marks.length - 1] : null;
        if (event.key === "Escape") { hide(); }
        if (!next) { return; }
        event.preventDefault();
        mark.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      });
    });
  });
  // Widths are read once a layout is there: to ask for them before takes a page of 1,000 pairs as long again.
  var widths = new ResizeObserver(function (entries) {
    var areWide = entries.map(function (entry) { return entry.target.scrollWidth > entry.target.clientWidth + 1; });
    entries.forEach(function (entry, k) { entry.target.classList.toggle("is-wide", areWide[k]); });
  });
  document.querySelectorAll(".scroll").forEach(function (box) { widths.observe(box); });
  function value(cell) {
    var text = cell.textContent.trim();
    var number = text.replace(/,/g, "").match(/^[≥≤p= ]*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|∞)/);
    return number ? (number[1] === "∞" ? Infinity : parseFloat(number[1])) : text;
  }
  function sorted(table, column, down) {
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    var keys = new Map(rows.map(function (row) { return [row, value(row.cells[column])]; }));
    rows.sort(function (a, b) {
      var x = keys.get(a), y = keys.get(b);
      var order = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
      return down ? -order : order;
    });
    rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
  }
  document.querySelectorAll("table").forEach(function (table) {
    if (!table.tHead || !table.tBodies.length || table.tBodies[0].rows.length < 3) { return; }
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      var button = document.createElement("span"); // the head of a page on paper shows no button
      button.setAttribute("role", "button");
      button.tabIndex = 0;
      button.className = "sort";
      while (head.firstChild) { button.appendChild(head.firstChild); }
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (one) { one.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sorted(table, column, down);
      });
      button.addEventListener("keydown", function (event) {
        if (event.key !== "Enter" && event.key !== " ") { return; }
        event.preventDefault();
        button.click();
      });
    });
  });
})();
