"use strict";
(() => {
  const lost = document.getElementById("lost");
  let busy = false;
  const refresh = async () => {
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
    } catch {
      lost.textContent = "Interlock does not answer: this page is out of date. Check kubectl port-forward.";
    } finally {
      busy = false;
    }
  };
  setInterval(refresh, 5000);
  document.addEventListener("visibilitychange", refresh);
})();
