// What the browser stores for this server: names, drafts and unsent answers. Without storage, memory serves until the page is closed.
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
  try { return Object.keys(localStorage).filter((each) => each.startsWith(key(start))).map((each) => each.slice(key("").length)); } catch { return [...memory.keys()].filter((each) => each.startsWith(start)); }
}

// Values of this tab, which end with it.
export const tab = {
  get(name) { try { return sessionStorage.getItem(key(name)); } catch { return null; } },
  set(name, value) { try { if (value === null) sessionStorage.removeItem(key(name)); else sessionStorage.setItem(key(name), value); } catch { /* storage is disabled */ } },
};
