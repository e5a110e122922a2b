// What the browser stores for this server: names, drafts and unsent answers. Without storage, memory serves until the page is closed.
const HELD = 500; // milliseconds that a reload waits until the page before it has gone
const memory = new Map();
let place = "";

export let durable = true; // whether answers survive a reload
export const setPlace = (id) => { place = id; };
const key = (name) => `raggs.${place}.${name}`;

export function kept(name, fallback = null) {
  try { return JSON.parse(localStorage.getItem(key(name))) ?? memory.get(name) ?? fallback; } catch { return memory.get(name) ?? fallback; }
}

export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(key(name)); else localStorage.setItem(key(name), JSON.stringify(value));
    memory.delete(name);
  } catch {
    durable = false;
    if (value === null) memory.delete(name); else memory.set(name, value);
  }
}

// Names of stored values that start with `start`.
export function names(start) {
  const here = [...memory.keys()].filter((each) => each.startsWith(start));
  try { return [...new Set([...here, ...Object.keys(localStorage).filter((each) => each.startsWith(key(start))).map((each) => each.slice(key("").length))])]; } catch { return here; }
}

// Run `work` while no other page holds the name of this tab; then the tab is closed. Only pages with TLS or on this
// machine have locks.
export function alone(tabId, work, options = {}) {
  return navigator.locks ? navigator.locks.request(key(`tab.${tabId}`), options, work) : work();
}

// The identifier of this tab, which a reload keeps. A copy of a tab gets a new one.
export async function identify() {
  const fresh = () => crypto.getRandomValues(new Uint32Array(2)).join("-");
  const hold = (id, options) => new Promise((held, taken) => { Promise.resolve(alone(id, () => { held(id); return navigator.locks ? new Promise(() => {}) : null; }, options)).catch(taken); });
  const was = tab.get("tab");
  const id = await (was ? hold(was, { signal: AbortSignal.timeout(HELD) }).catch(() => hold(fresh())) : hold(fresh()));
  tab.set("tab", id);
  return id;
}

// Values of this tab, which end with it.
export const tab = {
  get(name) { try { return sessionStorage.getItem(key(name)); } catch { return null; } },
  set(name, value) { try { if (value === null) sessionStorage.removeItem(key(name)); else sessionStorage.setItem(key(name), value); } catch { /* storage is disabled */ } },
};
