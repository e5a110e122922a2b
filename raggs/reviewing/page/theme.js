// Light, dark, or as the system: chosen with the button #theme and stored in the browser. Runs before the first paint.
const theme = (() => {
  const ALL = ["auto", "light", "dark"];
  let now = "auto";
  try { now = localStorage.getItem("raggs.theme") || "auto"; } catch { /* storage is disabled */ }
  const set = () => { if (now === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = now; };
  set();
  return {
    get now() { return now; },
    turn() {
      now = ALL[(ALL.indexOf(now) + 1) % ALL.length];
      try { localStorage.setItem("raggs.theme", now); } catch { /* the theme holds until the page is closed */ }
      set();
    },
  };
})();
