// The view Look: the queries of a run, to search, filter and read. It stores nothing; all data from the server is text.
import { copy, formatted, keysDialog } from "./el.js";
import { WORDS } from "./lookwords.js";
import { post } from "./waiting.js";

const $ = (id) => document.getElementById(id);
const { make } = sheets;
const STEP = 60; // questions of the list that are drawn at once
const BY_ID = new Intl.Collator("en", { numeric: true });
const SORTS = {
  id: () => 0,
  doubt: (one, other) => (other.doubt ?? -1) - (one.doubt ?? -1),
  few: (one, other) => one.relevant - other.relevant,
  holes: (one, other) => other.pool - other.graded - (one.pool - one.graded),
};
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const state = { language: "en", run: 0, all: [], shown: [], drawn: 0, open: null, sheet: null };
const words = () => WORDS[state.language];

// The search and the filters, which a reload keeps.
const FILTERS = ["search", "sort", "tongue", "kind"];
const was = (() => { try { return JSON.parse(localStorage.getItem("raggs.look")) || {}; } catch { return {}; } })();
function remember() {
  try { localStorage.setItem("raggs.look", JSON.stringify(Object.fromEntries(FILTERS.map((id) => [id, $(id).value])))); } catch { /* storage is disabled */ }
}

function trouble(error) {
  $("trouble").hidden = !error;
  $("trouble").textContent = !error ? "" : error.status === 404 ? words().unknown(state.open) : error.status ? words().refused(error.message) : words().offline;
}

// --- the list --------------------------------------------------------------------------------------------------------

function options(box, entries, chosen) {
  box.replaceChildren(...entries.map(([value, text]) => make("option", { value, textContent: text, selected: value === chosen })));
}

function choices() {
  const said = words(), of = (name) => [...new Set(state.all.map((each) => each[name]))].filter(Boolean).sort();
  options($("sort"), Object.entries(said.sorts), $("sort").value || was.sort || "id");
  for (const [box, select, name] of [["languages", "tongue", "language"], ["kinds", "kind", "kind"]]) {
    const found = of(name);
    $(box).hidden = found.length < 2;
    options($(select), [["", said.all], ...found.map((each) => [each, each])], $(select).options.length > 1 ? $(select).value : was[select] || "");
  }
}

function filter() {
  const wanted = plain($("search").value).split(/\s+/).filter(Boolean), { value: tongue } = $("tongue"), { value: kind } = $("kind");
  state.shown = state.all.filter((each) => (!tongue || each.language === tongue) && (!kind || each.kind === kind) && wanted.every((word) => each.plain.includes(word)));
  const by = SORTS[$("sort").value] || SORTS.id;
  if (by !== SORTS.id) state.shown.sort(by);
  $("count").textContent = state.shown.length ? words().count(state.shown.length, state.all.length) : words().none;
  $("questions").replaceChildren();
  state.drawn = 0;
  $("questions").scrollTop = 0;
  drawMore();
}

function drawMore() {
  const more = state.shown.slice(state.drawn, state.drawn + STEP);
  state.drawn += more.length;
  $("questions").append(...more.map((each) => {
    const link = make("a", { href: address(each.id), attributes: { "data-id": each.id } }, make("bdi", { textContent: each.text || each.id }), make("small", {}, make("bdi", { textContent: each.id }), ` · ${words().line(each)}`));
    if (each.id === state.open) link.setAttribute("aria-current", "page");
    return make("li", {}, link);
  }));
  $("questions").lastElementChild?.previousElementSibling && watcher.observe($("questions").lastElementChild);
}

const watcher = new IntersectionObserver((changes) => {
  for (const each of changes) {
    if (!each.isIntersecting) continue;
    watcher.unobserve(each.target);
    if (state.drawn < state.shown.length) drawMore();
  }
}, { rootMargin: "400px" });

// --- one question ----------------------------------------------------------------------------------------------------

const address = (id) => `/look/${encodeURIComponent(id)}${state.run ? `?run=${state.run}` : ""}`;
const asked = () => (location.pathname.startsWith("/look/") ? decodeURIComponent(location.pathname.slice("/look/".length)) : "");

async function open(id, move = true) {
  if (move) history.pushState(null, "", id ? address(id) : `/look${state.run ? `?run=${state.run}` : ""}`);
  state.open = id || null;
  document.body.classList.toggle("open", Boolean(id));
  current();
  $("hint").hidden = Boolean(id);
  $("link").hidden = !id;
  steps();
  if (!id) { $("question").hidden = true; trouble(null); return; }
  try {
    const found = await post("/api/look", { run: state.run, question: id });
    if (state.open !== id) return;
    state.sheet = found;
    trouble(null);
    show();
    window.scrollTo(0, 0);
    $("text").focus({ preventScroll: true });
  } catch (error) {
    if (state.open !== id) return;
    state.sheet = null;
    $("question").hidden = $("link").hidden = true;
    trouble(error);
  }
}

// Mark the query in the list, and bring it into view where the list scrolls beside the sheet.
function current() {
  const place = state.shown.findIndex((each) => each.id === state.open);
  while (state.drawn <= place) drawMore();
  for (const each of document.querySelectorAll("#questions a")) {
    if (each.dataset.id !== state.open) { each.removeAttribute("aria-current"); continue; }
    each.setAttribute("aria-current", "page");
    const list = $("questions"), { offsetTop, offsetHeight } = each.parentElement, top = offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
  }
}

function show() {
  const { sheet } = state;
  if (!sheet) return;
  document.title = `${sheet.id} · raggs look`;
  $("id").replaceChildren(make("bdi", { textContent: sheet.id }));
  $("text").textContent = sheet.text || sheet.id;
  $("parts").replaceChildren(sheets.draw(sheet, words().sheet || sheets.ENGLISH, "h3", 20, (text) => formatted(text, sheet.terms ?? [], true)));
  $("question").hidden = false;
}

// Open the first passage that is closed, and close the one before it.
function openNext() {
  const boxes = [...document.querySelectorAll("#parts .sheet-passage")], last = boxes.findLastIndex((box) => box.open);
  const next = boxes[last + 1];
  if (!next) return;
  if (last >= 0) boxes[last].open = false;
  const rest = next.closest(".sheet-rest, .sheet-pool");
  if (rest) rest.open = true;
  next.open = true;
  next.firstElementChild.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function steps() {
  const place = state.shown.findIndex((each) => each.id === state.open);
  $("earlier").disabled = place <= 0;
  $("later").disabled = place < 0 ? !state.shown.length : place === state.shown.length - 1;
}

function step(by) {
  const place = state.shown.findIndex((each) => each.id === state.open), next = state.shown[place < 0 ? 0 : place + by];
  if (next) open(next.id);
}

// The arrow keys move along the list, from the search or a query of the list.
function along(by) {
  const links = [...document.querySelectorAll("#questions a")], now = links.indexOf(document.activeElement);
  if (now < 0 && document.activeElement !== $("search")) { window.scrollBy(0, by * 60); return; }
  if (by < 0 && now <= 0) $("search").focus(); else links[Math.min(links.length - 1, now + by)]?.focus();
}

function back() {
  const was = state.open;
  open("");
  const link = [...document.querySelectorAll("#questions a")].find((each) => each.dataset.id === was);
  (link || $("search")).focus();
}

// --- beginning -------------------------------------------------------------------------------------------------------

function labelled(button, text, key) {
  button.replaceChildren(text, make("kbd", { textContent: key, attributes: { "aria-hidden": "true" } }));
  button.setAttribute("aria-keyshortcuts", key);
}

function speak() {
  const said = words();
  document.documentElement.lang = state.language;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = said[each.dataset.word];
  for (const each of document.querySelectorAll("[data-label]")) each.setAttribute("aria-label", said[each.dataset.label]);
  $("language").textContent = said.other;
  $("language").lang = state.language === "en" ? "fr" : "en";
  $("link").textContent = said.link;
  $("theme").textContent = said.themes[theme.now];
  labelled($("help"), said.help, "?");
  labelled($("earlier"), said.earlier, "k");
  labelled($("later"), said.later, "j");
  choices();
  filter();
  show();
}

async function load(run) {
  const found = await post("/api/look/list", { run });
  state.run = run;
  state.all = found.questions.map((each) => ({ ...each, plain: plain(`${each.id} ${each.text}`) })).sort((one, other) => BY_ID.compare(one.id, other.id));
  $("name").textContent = found.runs[run];
  $("runs").hidden = found.runs.length < 2;
  options($("run"), found.runs.map((name, place) => [String(place), name]), String(run));
}

for (const id of FILTERS) $(id).addEventListener(id === "search" ? "input" : "change", () => { filter(); steps(); remember(); });
$("run").addEventListener("change", async () => {
  try { await load(Number($("run").value)); speak(); open(""); } catch (error) { trouble(error); }
});
$("questions").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  open(link.dataset.id);
});
$("help").addEventListener("click", () => keysDialog(words().keys));
$("earlier").addEventListener("click", () => step(-1));
$("later").addEventListener("click", () => step(1));
$("back").addEventListener("click", back);
$("link").addEventListener("click", async () => {
  await copy(location.href);
  $("link").textContent = words().copied;
  setTimeout(() => { $("link").textContent = words().link; }, 2000);
});
$("theme").addEventListener("click", () => { theme.turn(); $("theme").textContent = words().themes[theme.now]; });
$("language").addEventListener("click", () => {
  state.language = state.language === "en" ? "fr" : "en";
  try { localStorage.setItem("raggs.language", state.language); } catch { /* storage is disabled */ }
  speak();
});
window.addEventListener("popstate", () => open(asked(), false));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.target.matches("input, select") && event.key === "Escape") { event.target.blur(); return; }
  if (event.target.matches("input") && event.key !== "ArrowDown") return;
  const act = {
    "/": () => $("search").focus(), j: () => step(1), k: () => step(-1), o: openNext, ArrowDown: event.target.matches("select") ? null : () => along(1), ArrowUp: event.target.matches("select") ? null : () => along(-1),
    Escape: () => state.open && back(), "?": () => keysDialog(words().keys),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});

async function start() {
  try { state.language = localStorage.getItem("raggs.language") || (navigator.language.startsWith("fr") ? "fr" : "en"); } catch { /* storage is disabled */ }
  $("search").value = was.search || "";
  speak();
  try {
    await load(Number(new URLSearchParams(location.search).get("run")) || 0);
  } catch (error) { trouble(error); return; }
  speak();
  if (asked()) open(asked(), false); else steps();
}

start();
