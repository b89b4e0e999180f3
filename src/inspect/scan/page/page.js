"use strict";
(() => {
  const table = document.getElementById("findings");
  if (!table) return;
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const [severity, namespace, sort, text, shown] =
    ["severity", "namespace", "sort", "text", "shown"].map((id) => document.getElementById(id));
  const rows = [...body.rows].map((row, place) => ({
    row,
    place,
    severity: row.className,
    keys: [...row.cells].map((cell) => cell.dataset.key ?? cell.textContent),
    words: row.textContent.toLowerCase(),
  }));
  const collator = new Intl.Collator("en", { numeric: true });
  let current = { column: 0, down: false };
  // Rows in the page at a time. More of them nobody scrolls through, and laying out ten thousand takes seconds.
  const MOST = 50;
  let fitting = rows;
  const more = document.createElement("button");
  more.type = "button";
  more.id = "more";
  table.after(more);

  function show(most) {
    body.replaceChildren(...fitting.slice(0, most).map((entry) => entry.row));
    more.hidden = fitting.length <= most;
    more.textContent = `Show all ${fitting.length}`;
  }

  function order(column, down) {
    current = { column, down };
    const sign = down ? -1 : 1;
    rows.sort((a, b) => sign * collator.compare(a.keys[column], b.keys[column]) || a.place - b.place);
    heads.forEach((head, at) => {
      head.setAttribute("aria-sort", at !== column ? "none" : down ? "descending" : "ascending");
    });
    sort.value = String(Math.min(column, 3));
    filter();
  }

  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    fitting = rows.filter(
      (entry) =>
        (!severity.value || entry.severity === severity.value) &&
        (!namespace.value || entry.keys[1] === namespace.value) &&
        words.every((word) => entry.words.includes(word)),
    );
    const count = fitting.length;
    shown.value = count === rows.length ? `${count} findings` : `${count} of ${rows.length} findings`;
    show(MOST);
  }

  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      order(column, current.column === column && !current.down);
    });
  });
  sort.addEventListener("change", () => order(Number(sort.value), false));
  severity.addEventListener("change", filter);
  namespace.addEventListener("change", filter);
  text.addEventListener("input", filter);
  more.addEventListener("click", () => show(Infinity));
  addEventListener("beforeprint", () => show(Infinity));
  const form = text.form;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
})();
