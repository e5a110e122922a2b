// The page: shows one passage at a time, takes keys, and hands every grade on. Whatever comes from the server is text.
import { WORDS } from "./words.js";
import { reveal } from "./reveal.js";
import { VIEWS } from "./views.js";
import { Waiting, post } from "./waiting.js";

const $ = (id) => document.getElementById(id);
const kept = (name) => {
  try { return localStorage.getItem(name); } catch { return null; }
};
const keep = (name, value) => {
  try { localStorage.setItem(name, value); } catch { /* a browser that keeps nothing */ }
};
function tabName() {
  const fresh = crypto.getRandomValues(new Uint32Array(2)).join("-");
  try {
    const tab = sessionStorage.getItem("raggs.tab") || fresh;
    sessionStorage.setItem("raggs.tab", tab);
    return tab;
  } catch { return fresh; }
}

const page = {
  about: null, who: null, tab: tabName(), waiting: null, language: "en",
  view: "grade", keys: null, // what is looked at, and the keys of another view than grading
  deck: [], // what comes, the first is shown
  gone: [], // what was graded here: the step, its item's view and, when it arrived, its line
  skipped: new Set(), progress: null, marking: false, since: 0, seen: 0, again: null,
};
const words = () => WORDS[page.language];

function show(id) {
  for (const each of ["hello", "work", "end", "view"]) $(each).hidden = each !== id;
}

function trouble(text) {
  $("trouble").hidden = !text;
  $("trouble").textContent = text;
}

function labelled(button, text, key) {
  button.textContent = text;
  const hint = document.createElement("kbd");
  hint.textContent = key;
  hint.setAttribute("aria-hidden", "true");
  button.append(hint);
  button.setAttribute("aria-keyshortcuts", key);
}

function speak() {
  const said = words();
  document.documentElement.lang = page.language;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = said[each.dataset.word];
  $("language").textContent = said.other;
  $("language").lang = page.language === "en" ? "fr" : "en";
  $("grades").setAttribute("aria-label", said.grades);
  for (const [id, key] of [["note", "n"], ["undo", "u"], ["skip", "s"], ["mark", "h"], ["around", "c"]]) labelled($(id), said[id], key);
  labelled($("model"), said.reveal, "m");
  $("model").hidden = !page.about.reveal;
  labelled($("back"), said.back, "u");
  const meanings = rubric();
  $("grades").replaceChildren(...[1, 2, 3, 4, 5, null].map((grade) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = grade === null ? "?" : String(grade);
    const meaning = grade === null ? said.unsure : meanings[grade];
    button.title = meaning || "";
    button.setAttribute("aria-label", meaning ? `${button.textContent}: ${meaning}` : `${said.grades} ${button.textContent}`);
    button.setAttribute("aria-keyshortcuts", button.textContent);
    button.addEventListener("click", () => give(grade));
    return button;
  }));
  const entry = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
  $("meanings").replaceChildren(
    ...[5, 4, 3, 2, 1].filter((grade) => meanings[grade]).flatMap((grade) => [entry("dt", String(grade)), entry("dd", meanings[grade])]),
    entry("dt", "?"), entry("dd", said.unsure),
  );
  $("rules").textContent = inLanguage(page.about.text) || "";
  $("rules").hidden = !$("rules").textContent;
  $("between").hidden = !$("rules").hidden;
  standing();
}

const inLanguage = (all) => all[page.language] || all.en || Object.values(all)[0];
const rubric = () => inLanguage(page.about.rubric) || {};

function standing() {
  const said = words();
  $("who").textContent = page.who || "";
  const open = page.waiting ? page.waiting.steps.length : 0;
  $("saved").textContent = page.who ? (open ? said.waiting(open) : said.saved) : "";
  $("saved").classList.toggle("waiting", open > 0);
  const progress = page.progress;
  if (!progress) return;
  const all = progress.done + progress.left;
  $("done").max = all || 1;
  $("done").value = progress.done;
  $("done").setAttribute("aria-label", `${progress.done} / ${all}`);
  const minutes = Math.max(1, Math.round((progress.left * (progress.pace || 0)) / 60));
  $("pace").textContent = said.pace(progress.done, progress.left, progress.left && progress.pace, said.minutes(minutes));
}

// --- one passage ---------------------------------------------------------------------------------------------------

function render() {
  clearTimeout(page.again);
  const view = page.deck[0];
  $("noting").hidden = true;
  $("note").setAttribute("aria-expanded", "false");
  $("words").value = "";
  for (const id of ["before", "after"]) { $(id).hidden = true; $(id).textContent = ""; }
  $("around").setAttribute("aria-expanded", "false");
  if (page.view !== "grade") return;
  if (!view) { pause(); return; }
  show("work");
  const asked = $("question").textContent;
  $("question").textContent = view.question;
  $("title").textContent = view.title || words().untitled;
  $("source").textContent = view.source;
  $("source").hidden = !view.source;
  $("around").hidden = !view.around;
  $("text").textContent = view.text;
  if (page.marking) highlight();
  $("told").textContent = `${asked === view.question ? "" : view.question} ${words().next}: ${view.title}`;
  window.scrollTo(0, 0);
  page.seen = 0;
  page.since = document.hidden ? 0 : performance.now();
}

function pause() {
  const said = words(), open = page.waiting.steps.length, left = page.progress ? page.progress.left : 0;
  show("end");
  $("ended").textContent = open ? said.wait : left ? said.nearly : said.allDone;
  $("why").textContent = open ? said.offline : left ? said.busy : said.thanks;
  if (left && !open) page.again = setTimeout(fetchNext, 2000);
}

function seconds() {
  const now = performance.now();
  return Math.round(page.seen + (page.since ? now - page.since : 0)) / 1000;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { page.seen = seconds() * 1000; page.since = 0; } else { page.since = performance.now(); }
});

const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// Words of the question in the passage, by their beginnings.
function highlight() {
  const view = page.deck[0], box = $("text");
  box.textContent = view.text;
  if (!page.marking) return;
  const stems = view.terms.map((term) => (term.length > 5 ? term.slice(0, -1) : term));
  const parts = view.text.split(/([\p{L}\p{N}\p{M}]+)/u);
  box.replaceChildren(...parts.map((part, place) => {
    if (place % 2 && stems.some((stem) => plain(part).startsWith(stem))) {
      return Object.assign(document.createElement("mark"), { textContent: part });
    }
    return document.createTextNode(part);
  }));
}

async function neighbours() {
  const view = page.deck[0], open = $("around").getAttribute("aria-expanded") === "true";
  if (!view || !view.around) return;
  if (!open && !$("before").textContent && !$("after").textContent) {
    try {
      const found = await post("/api/around", { ...me(), item: view.item });
      if (page.deck[0] !== view) return;
      $("before").textContent = found.before;
      $("after").textContent = found.after;
    } catch (error) { trouble(words().refused(error.message)); return; }
  }
  $("around").setAttribute("aria-expanded", String(!open));
  for (const id of ["before", "after"]) $(id).hidden = open || !$(id).textContent;
}

// --- what one does -------------------------------------------------------------------------------------------------

const me = () => ({ who: page.who, tab: page.tab });

function give(grade) {
  const view = page.deck[0];
  if (!view || $("work").hidden) return;
  if (page.gone.length > 500) page.gone.shift();
  const body = { ...me(), item: view.item, grade, note: $("words").value.trim(), seconds: seconds() };
  page.deck.shift();
  page.gone.push({ id: page.waiting.add("/api/grade", body), view, line: null });
  $("told").textContent = words().given(grade === null ? "?" : grade);
  render();
  standing();
}

function skip() {
  const view = page.deck[0];
  if (!view || $("work").hidden) return;
  page.deck.shift();
  page.skipped.add(view.item);
  page.waiting.add("/api/skip", { ...me(), item: view.item });
  render();
  standing();
}

async function undo() {
  if (!page.waiting) return;
  const last = page.gone.pop();
  if (last && page.waiting.unsent(last.id)) {
    page.deck.unshift(last.view);
    render();
    standing();
    return;
  }
  if (page.waiting.steps.length) { // it is on its way: take it back when it has arrived
    if (last) page.gone.push(last);
    return;
  }
  try {
    const answer = await post("/api/undo", { ...me(), line: last ? last.line : null });
    page.deck = page.deck.filter((each) => each.item !== answer.ahead[0].item);
    page.deck.unshift(answer.ahead[0]);
    trouble("");
    take(answer);
    render();
  } catch (error) {
    if (last) page.gone.push(last);
    trouble(error.status ? words().refused(error.message) : words().offline);
  }
}

// What the model said of the passage that was graded last; the one on the page waits, and its time too.
async function model() {
  if (!page.about.reveal || page.waiting.steps.length || page.view !== "grade") return;
  const last = page.gone[page.gone.length - 1], before = seconds() * 1000;
  const close = () => {
    page.view = "grade";
    page.keys = null;
    $("view").replaceChildren();
    page.seen = before;
    page.since = performance.now();
    if (page.deck.length) show("work"); else pause();
    window.scrollTo(0, 0);
  };
  const changed = (item, line) => {
    for (const each of page.gone) if (each.view.item === item) each.line = line;
  };
  try {
    page.keys = await reveal(parts(), last ? last.view.item : null, close, changed);
    page.view = "model";
    clearTimeout(page.again);
    show("view");
    $("go-on").focus();
    trouble("");
  } catch (error) { trouble(error.status ? words().refused(error.message) : words().offline); }
}

function noting() {
  const open = $("noting").hidden;
  $("noting").hidden = !open;
  $("note").setAttribute("aria-expanded", String(open));
  if (open) $("words").focus(); else $("note").focus();
}

// --- what comes from the server ------------------------------------------------------------------------------------

function take(answer) {
  page.progress = answer.progress;
  const away = new Set(page.waiting.steps.map((step) => step.body.item));
  const here = new Set(page.deck.map((view) => view.item));
  for (const view of answer.ahead) if (!away.has(view.item) && !here.has(view.item)) page.deck.push(view);
  standing();
}

function arrived(step, answer) {
  const found = page.gone.find((each) => each.id === step.id);
  if (found) found.line = answer.line;
  if (step.path === "/api/skip") page.skipped.delete(step.body.item);
  const empty = !page.deck.length;
  take(answer);
  if (empty) render();
}

async function fetchNext() {
  try {
    const answer = await post("/api/next", me());
    trouble("");
    take(answer);
    render();
  } catch (error) {
    trouble(error.status === 403 ? words().closed : error.status ? words().refused(error.message) : words().offline);
    page.again = setTimeout(fetchNext, 3000);
  }
}

function tell(state, why) {
  const said = words();
  trouble(state === "ok" ? "" : state === "offline" ? said.offline : state === "closed" ? said.closed : said.refused(why));
  standing();
}

// --- other views ----------------------------------------------------------------------------------------------------

const parts = () => ({ box: $("view"), me, words, post, trouble, rubric: rubric(), rules: inLanguage(page.about.text), tell: (text) => { $("told").textContent = text; } });

async function turn(name) {
  page.view = name;
  page.keys = null;
  location.hash = name === "grade" ? "" : name;
  for (const id of ["done", "pace"]) $(id).hidden = name !== "grade";
  for (const each of $("views").children) each.setAttribute("aria-current", each.dataset.view === name ? "page" : "false");
  if (name === "grade") { render(); if (!page.deck.length) fetchNext(); return; }
  clearTimeout(page.again);
  show("view");
  $("view").replaceChildren(Object.assign(document.createElement("p"), { className: "soft", textContent: words().loading }));
  try {
    page.keys = await VIEWS[name](parts());
    trouble("");
  } catch (error) {
    trouble(error.status ? words().refused(error.message) : words().offline);
  }
}

// --- keys and the beginning ----------------------------------------------------------------------------------------

const KEYS = { "?": () => give(null), n: noting, u: undo, s: skip, m: model, h: () => $("mark").click(), c: neighbours };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !page.waiting || event.repeat) return;
  const writing = event.target.matches("textarea, input");
  if (writing) {
    if (event.target.matches("textarea") && (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey))) { event.target.blur(); event.preventDefault(); }
    return;
  }
  const digit = /^(?:Digit|Numpad)([1-5])$/.exec(event.code); // also where digits need Shift
  if (event.key === "Enter" && event.target.matches("button:not(.card button, .row)")) return; // Enter presses the button
  if (page.view !== "grade") {
    const act = page.keys && (digit ? () => page.keys.digit?.(Number(digit[1])) : page.keys[event.key]);
    if (act && act(event) !== false) event.preventDefault();
    return;
  }
  const act = KEYS[event.key] || (digit || /^[1-5]$/.test(event.key) ? () => give(Number(digit ? digit[1] : event.key)) : null);
  if (act) { event.preventDefault(); act(); }
});

$("note").addEventListener("click", noting);
$("undo").addEventListener("click", undo);
$("back").addEventListener("click", undo);
$("skip").addEventListener("click", skip);
$("model").addEventListener("click", model);
$("around").addEventListener("click", neighbours);
$("mark").addEventListener("click", () => {
  page.marking = !page.marking;
  $("mark").setAttribute("aria-pressed", String(page.marking));
  if (page.deck.length) highlight();
});
$("language").addEventListener("click", () => {
  page.language = page.language === "en" ? "fr" : "en";
  keep("raggs.language", page.language);
  speak();
  if (page.view === "model") page.keys.Enter();
  if (page.view !== "grade") turn(page.view); else if (!$("end").hidden) pause();
});
for (const each of $("views").children) each.addEventListener("click", () => turn(each.dataset.view));
$("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  const who = $("name").value.replace(/\s+/g, " ").trim();
  if (!who) return;
  try {
    const found = await post("/api/known", { who, tab: page.tab });
    if (found.words && $("known").dataset.who !== who) {
      $("known").dataset.who = who;
      $("known").textContent = words().known(found.words, who);
      $("known").hidden = false;
      return;
    }
    keep("raggs.who", who);
    begin(who);
  } catch (error) { trouble(error.status ? words().refused(error.message) : words().offline); }
});
window.addEventListener("online", () => page.waiting && page.waiting.drain());

function begin(who) {
  page.who = who;
  page.waiting = new Waiting(who, tell, arrived);
  page.waiting.drain();
  standing();
  $("views").hidden = false;
  turn(location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "grade");
}

async function start() {
  page.language = kept("raggs.language") || (navigator.language.startsWith("fr") ? "fr" : "en");
  if (window.matchMedia("(max-width: 56rem)").matches) $("rubric").open = false;
  page.about = await (await fetch("/api/about")).json();
  document.title = `raggs review: ${page.about.title}`;
  $("look").hidden = !page.about.look;
  speak();
  const who = page.about.who || kept("raggs.who");
  if (who) begin(who); else { show("hello"); $("name").focus(); }
}

start();
