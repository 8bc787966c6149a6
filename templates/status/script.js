"use strict";
// Fetches the page again in place, so that scroll position, focus and what is typed stay.
(() => {
  const seconds = Number(document.documentElement.dataset.refresh);
  const button = document.getElementById("refresh");
  let paused = false;
  let asking = false;

  const label = (text) => { button.textContent = text; button.setAttribute("aria-pressed", String(paused)); };
  const show = () => label(paused ? "Paused: go on" : "Live: pause");

  const replace = (fresh) => {
    const focused = document.activeElement;
    const inside = focused && focused.closest("main, footer");
    // A field that is being filled in is never taken away.
    if (inside && ["INPUT", "SELECT"].includes(focused.tagName)) { return; }
    const id = inside && focused.id;
    for (const part of ["main", "footer"]) {
      const next = fresh.querySelector(part);
      if (next) { document.querySelector(part).replaceWith(next); }
    }
    document.title = fresh.title;
    if (id) { document.getElementById(id)?.focus({ preventScroll: true }); }
  };

  const ask = async () => {
    if (paused || asking || document.hidden) { return; }
    asking = true;
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
      if (!answer.ok) { throw new Error(String(answer.status)); }
      replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
      show();
    } catch {
      label("No answer: shown is an old state");
    } finally {
      asking = false;
    }
  };

  button.hidden = false;
  button.addEventListener("click", () => { paused = !paused; show(); ask(); });
  document.addEventListener("visibilitychange", ask);
  setInterval(ask, seconds * 1000);
  show();
})();
