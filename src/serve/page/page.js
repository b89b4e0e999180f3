"use strict";
(() => {
  const lost = document.getElementById("lost");
  const select = document.getElementById("namespace");
  const all = (what) => [...document.querySelectorAll(what)];
  let busy = false;

  // The address keeps the namespace, so that it can be sent to somebody.
  function filter() {
    if (!select) return;
    const wanted = decodeURIComponent(location.hash.slice(1));
    const entries = all("[data-namespace]");
    const names = new Set(entries.map((entry) => entry.dataset.namespace));
    if (wanted) names.add(wanted);
    // An open list would close.
    if (document.activeElement !== select) {
      select.replaceChildren(new Option("all", ""), ...[...names].sort().map((name) => new Option(name, name)));
      select.value = wanted;
    }
    select.form.hidden = names.size === 0;
    for (const entry of entries) entry.hidden = wanted !== "" && entry.dataset.namespace !== wanted;
  }

  function dress() {
    for (const code of all("code.command")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      code.after(button);
    }
    filter();
  }

  async function refresh() {
    if (document.hidden || busy) return;
    busy = true;
    try {
      const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(15000) });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      lost.textContent = "";
      // A selection would be lost with the text.
      if (String(document.getSelection())) return;
      for (const part of ["main", "#time"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
      dress();
    } catch {
      lost.textContent = "Interlock does not answer: this page is out of date. Check kubectl port-forward.";
    } finally {
      busy = false;
    }
  }

  document.addEventListener("click", async ({ target }) => {
    if (target.className !== "copy") return;
    await navigator.clipboard.writeText(target.previousElementSibling.textContent);
    target.textContent = "Copied";
  });
  dress();
  // A history does not change while it is read.
  if (!select) return;
  select.addEventListener("change", () => {
    history.replaceState(null, "", select.value ? `#${encodeURIComponent(select.value)}` : location.pathname);
    filter();
  });
  addEventListener("hashchange", filter);
  setInterval(refresh, 5000);
  document.addEventListener("visibilitychange", refresh);
})();
