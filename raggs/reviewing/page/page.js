// The page: annotator, views and keys, and the view that shows one passage at a time. All data from the server is text.
import { coded, copy, el, foldOnPhone, formatted, gradeButtons, keyed, keysDialog, marked, meanings, narrow, passageText, titled } from "./el.js";
import { durable, identify, keep, kept, setPlace, tab } from "./local.js";
import { reveal } from "./reveal.js";
import { VIEWS } from "./views.js";
import { Waiting, post, takeOver } from "./waiting.js";
import { WORDS } from "./words.js";

const $ = (id) => document.getElementById(id);
const DOUBLE = 250; // milliseconds: the same grade again within this time is a double press
const UNMARKED = ["own", "agree"]; // views without words to highlight
const SITTING = 20; // passages to grade in a row, where neither a plan nor a sample limits them
const IDLE = 30 * 60_000; // milliseconds without a key or click, after which the page asks for the name again
const TRAIL = 500; // passages that Back can show without the server

const page = {
  about: null, who: null, tab: null, waiting: null, language: "en", marking: false,
  view: "grade", keys: null, redraw: null, // the view that is shown, with its keys and how it is drawn again
  deck: [], // passages to grade; the first one is shown
  trail: [], at: 0, // passages that were shown in this tab, and the place of Back and Next in them
  links: 0, // links to queries that were opened
  opened: false, // whether the passage was opened from the list of labels
  progress: null, queries: new Map(), since: 0, seen: 0, again: null, noticed: 0, last: { grade: undefined, at: 0 }, active: Date.now(),
};
const words = () => WORDS[page.language];
const me = () => ({ who: page.who, tab: page.tab });
const inLanguage = (all) => all[page.language] || all.en || Object.values(all)[0];
const rubric = () => inLanguage(page.about.rubric) || {};

function show(id) {
  for (const each of ["hello", "work", "end", "view"]) $(each).hidden = each !== id;
}

function trouble(text) {
  $("trouble").hidden = !text;
  $("trouble").textContent = text;
}

const fault = (error) => trouble(error.status === 403 ? words().closed : error.status ? words().refused(error.message) : words().offline);
const tell = (text) => { $("told").textContent = text; };

// A short notice in place of "saved", also for screen readers. It ends with the view.
function notice(text) {
  clearTimeout(page.noticed);
  tell(text);
  $("saved").textContent = text;
  $("saved").classList.add("notice");
  page.noticed = setTimeout(endNotice, 2500);
}

function endNotice() {
  clearTimeout(page.noticed);
  $("saved").classList.remove("notice");
  standing();
}

function labelled(button, text, key) {
  button.replaceChildren(...keyed(text, null, key).childNodes);
  button.setAttribute("aria-keyshortcuts", key);
}

function speak() {
  const said = words();
  document.documentElement.lang = page.language;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = said[each.dataset.word];
  $("language").textContent = said.other;
  $("language").lang = page.language === "en" ? "fr" : "en";
  $("theme").textContent = said.themes[theme.now];
  $("views").setAttribute("aria-label", said.views);
  $("grades").setAttribute("aria-label", said.grades);
  labelled($("help"), said.help, "?");
  for (const [id, key] of [["back", "k"], ["next", "j"], ["note", "n"], ["undo", "u"], ["skip", "s"], ["mark", "h"], ["around", "c"]]) labelled($(id), said[id], key);
  labelled($("model"), said.reveal, "m");
  $("model").hidden = !page.about.reveal;
  labelled($("last"), said.undoLast, "u");
  $("mark").setAttribute("aria-pressed", String(page.marking));
  explain();
  greet();
  standing();
}

// The meaning of each grade: beside the passage, or above it on a phone.
function explain() {
  $("rubric").replaceChildren(meanings(words(), rubric(), inLanguage(page.about.text), words().unsure));
  if (narrow.matches) $("work").prepend($("rubric")); else $("work").lastElementChild.append($("rubric"));
}

function standing() {
  const said = words(), open = page.waiting ? page.waiting.steps.length : 0;
  $("who").textContent = page.who || "";
  $("me").hidden = !page.who;
  $("leave").hidden = Boolean(page.about.who);
  if (!$("saved").classList.contains("notice")) $("saved").textContent = page.who ? (open ? said.waiting(open) : said.saved) : "";
  $("saved").classList.toggle("waiting", open > 0);
  const progress = page.progress;
  for (const id of ["done", "pace"]) $(id).hidden = page.view !== "grade" || !progress || !page.who;
  if (!progress) return;
  const all = progress.done + progress.left, short = !page.about.chosen && all > SITTING;
  const [done, wanted] = short ? sitting(progress) : [progress.done, all], left = wanted - done;
  $("done").max = wanted || 1;
  $("done").value = done;
  const text = short ? said.sitting(done, wanted, all) : said.graded(done, wanted);
  $("done").setAttribute("aria-label", text);
  const minutes = Math.max(1, Math.round((left * (progress.pace || 0)) / 60));
  $("pace").textContent = text + (left && progress.pace ? said.pace(progress.pace, said.minutes(minutes)) : short && !left ? said.sat : "");
}

// Passages graded in this sitting, and its target. A sitting starts anew after half an hour without an answer.
function sitting({ done, left }) {
  const place = `sitting.${page.who}`, was = kept(place, null), now = Date.now();
  const begun = was && now - was.at < IDLE && was.from <= done ? was : { from: done, done };
  const from = done > begun.from + SITTING ? begun.from + SITTING : begun.from;
  if (!was || done !== was.done || from !== was.from) keep(place, { from, done, at: now });
  return [done - from, Math.min(SITTING, done - from + left)];
}

// --- one passage ---------------------------------------------------------------------------------------------------

// What is shown: a passage of the trail, else the first of the deck.
const current = () => page.trail[page.at] || (page.deck[0] ? { view: page.deck[0] } : null);
const drafts = () => kept(`drafts.${page.who}`, {});

function draft(item, text) {
  const all = drafts();
  if (text) all[item] = text; else delete all[item];
  keep(`drafts.${page.who}`, all);
}

function render() {
  clearTimeout(page.again);
  if (page.view !== "grade") return;
  const entry = current(), said = words();
  for (const id of ["before", "after"]) { $(id).hidden = true; $(id).textContent = ""; }
  $("around").setAttribute("aria-expanded", "false");
  if (!entry) { pause(); return; }
  const { view } = entry, graded = entry.grade !== undefined, asked = $("question").textContent;
  show("work");
  const note = drafts()[view.item] ?? entry.note ?? "";
  $("words").value = note;
  $("noting").hidden = !note;
  $("note").setAttribute("aria-expanded", String(Boolean(note)));
  $("question").textContent = view.question;
  $("source").textContent = view.source;
  $("source").hidden = !view.source;
  $("around").hidden = !view.around;
  $("given").hidden = !graded;
  $("given").textContent = graded ? said.already(entry.grade ?? "?") : "";
  $("grades").replaceChildren(...gradeButtons(said, rubric(), [1, 2, 3, 4, 5, null], give, graded ? entry.grade : undefined));
  $("skip").hidden = page.at < page.trail.length;
  $("next").hidden = !$("skip").hidden;
  highlight();
  part(view);
  tell(`${asked === view.question ? "" : view.question} ${said.nextPassage}: ${view.title}`);
  window.scrollTo(0, 0);
  page.seen = 0;
  page.since = document.hidden ? 0 : performance.now();
}

function part(view) {
  const progress = page.queries.get(view.qid);
  $("part").textContent = progress ? words().part(progress.done, progress.done + progress.left) : "";
}

function pause() {
  const said = words(), open = page.waiting.steps.length, left = page.progress ? page.progress.left : 0;
  show("end");
  $("ended").textContent = open ? said.wait : left ? said.nearly : page.progress?.done ? said.allDone : said.noneFree;
  $("why").replaceChildren(...coded(open ? said.unsentFirst : left ? said.busy : page.progress?.done ? said.thanks : said.shared));
  $("last").hidden = !open && !left && !page.progress?.done;
  if (left && !open) page.again = setTimeout(fetchNext, 2000);
}

function seconds() {
  const now = performance.now();
  return Math.round(page.seen + (page.since ? now - page.since : 0)) / 1000;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { page.seen = seconds() * 1000; page.since = 0; } else { page.since = performance.now(); }
});

function highlight() {
  const entry = current();
  if (!entry) return;
  const { view } = entry;
  $("text").replaceChildren(...passageText(view, page.marking));
  $("title").classList.toggle("unseen", titled(view));
  $("title").replaceChildren(...marked(view.title || words().untitled, view.terms, page.marking));
}

function marking() {
  page.marking = !page.marking;
  keep("marking", page.marking);
  $("mark").setAttribute("aria-pressed", String(page.marking));
  if (page.view === "grade") highlight(); else page.redraw?.();
}

async function neighbours() {
  const view = current()?.view, open = $("around").getAttribute("aria-expanded") === "true";
  if (!view || !view.around) return;
  if (!open && !$("before").textContent && !$("after").textContent) {
    try {
      const found = await post("/api/around", { ...me(), item: view.item });
      if (current()?.view !== view) return;
      for (const id of ["before", "after"]) $(id).replaceChildren(...formatted(found[id], [], false));
    } catch (error) { fault(error); return; }
  }
  $("around").setAttribute("aria-expanded", String(!open));
  for (const id of ["before", "after"]) $(id).hidden = open || !$(id).textContent;
}

// --- steps ---------------------------------------------------------------------------------------------------------

function give(grade) {
  const entry = current();
  if (!entry || $("work").hidden) return;
  const now = performance.now();
  if (grade === page.last.grade && now - page.last.at < DOUBLE) { notice(words().doubled); return; }
  page.last = { grade, at: now };
  const { item } = entry.view, note = $("words").value.trim(), correct = entry.grade !== undefined;
  if (!correct || entry.grade !== grade || (entry.note || "") !== note) {
    entry.id = page.waiting.add("/api/grade", { ...me(), item, grade, note, seconds: correct ? null : seconds(), correct });
  }
  entry.grade = grade;
  entry.note = note;
  draft(item, "");
  tell(words().given(grade === null ? "?" : grade));
  leave(entry);
  if (foldOnPhone("rubric")) explain();
  if (page.opened) { page.opened = false; turn("own"); return; }
  render();
  standing();
}

// Go on from a passage, which Back shows again.
function leave(entry) {
  const { item } = entry.view;
  page.deck = page.deck.filter((each) => each.item !== item);
  if (page.at < page.trail.length) { page.at += 1; return; }
  page.trail = page.trail.filter((each) => each.view.item !== item).slice(-TRAIL);
  page.trail.push(entry);
  page.at = page.trail.length;
}

function skip() {
  const entry = current();
  if (!entry || $("work").hidden || $("skip").hidden) return;
  page.waiting.add("/api/skip", { ...me(), item: entry.view.item });
  leave(entry);
  render();
  standing();
}

function next() {
  if (page.at < page.trail.length) { page.at += 1; render(); } else if (current()) notice(words().noLater);
}

async function back() {
  if (page.view !== "grade") return;
  if (page.opened) { page.opened = false; turn("own"); return; }
  if (!page.at) await older();
  if (!page.at) { notice(words().noEarlier); return; }
  page.at -= 1;
  render();
}

// Labels from before this tab was opened go to the start of the trail.
async function older() {
  try {
    await page.waiting.idle();
    const here = new Set(page.trail.map((each) => each.view.item));
    const found = await post("/api/own", { ...me(), start: page.trail.filter((each) => each.grade !== undefined).length });
    const more = found.labels.filter((each) => !here.has(each.view.item)).reverse();
    page.trail.unshift(...more);
    page.at += more.length;
  } catch (error) { fault(error); }
}

// Withdraw the label of the passage that is shown, else the latest one, and show its passage.
async function undo() {
  if (!page.waiting || page.view !== "grade") return;
  const shown = page.trail[page.at];
  let entry = shown?.grade !== undefined ? shown : page.trail.findLast((each) => each.grade !== undefined);
  if (!entry) { await older(); entry = page.trail.at(-1); }
  if (!entry) { notice(words().noEarlier); return; }
  if (!page.waiting.unsent(entry.id)) page.waiting.add("/api/undo", { ...me(), item: entry.view.item });
  if (entry.note) draft(entry.view.item, entry.note);
  page.opened = false;
  page.trail = page.trail.filter((each) => each !== entry);
  page.at = page.trail.length;
  page.deck = [entry.view, ...page.deck.filter((each) => each.item !== entry.view.item)];
  render();
  standing();
}

// The model's grade of the latest labelled passage. The time of the passage that is shown stops meanwhile.
async function model() {
  if (!page.about.reveal || page.waiting.steps.length || page.view !== "grade") return;
  const shown = page.trail[page.at], last = shown?.grade !== undefined ? shown : page.trail.findLast((each) => each.grade !== undefined);
  const before = seconds() * 1000;
  const close = () => {
    page.view = "grade";
    page.keys = null;
    $("view").replaceChildren();
    render();
    page.seen = before;
    standing();
  };
  const changed = (item, grade) => {
    for (const each of page.trail) if (each.view.item === item) each.grade = grade;
  };
  try {
    page.keys = await reveal(parts(), last ? last.view.item : null, close, changed);
    page.view = "model";
    clearTimeout(page.again);
    show("view");
    $("go-on").focus();
    trouble("");
  } catch (error) { fault(error); }
}

function noting() {
  const open = $("noting").hidden;
  $("noting").hidden = !open;
  $("note").setAttribute("aria-expanded", String(open));
  if (open) $("words").focus(); else $("note").focus();
}

async function copyLink(event, id) {
  await copy(`${location.origin}/#question=${encodeURIComponent(id)}`);
  const button = event.currentTarget ?? event.target, text = words().copied;
  button.textContent = text;
  tell(text);
  setTimeout(() => { button.textContent = words().link; }, 2000);
}

// --- answers of the server -----------------------------------------------------------------------------------------

function take(answer) {
  page.progress = answer.progress;
  const away = new Set(page.waiting.steps.map((step) => step.body.item));
  const here = new Set(page.deck.map((view) => view.item));
  answer.ahead.forEach((view, place) => {
    page.queries.set(view.qid, answer.queries[place]);
    if (!away.has(view.item) && !here.has(view.item)) page.deck.push(view);
  });
  const shown = current();
  if (shown && page.view === "grade") part(shown.view);
  standing();
}

function arrived(who, step, answer) {
  if (who !== page.who || !answer.ahead) return;
  const empty = !current();
  take(answer);
  if (empty) render();
}

// The passages that come next. An answer from before the latest grade or skip is out of date, so the page asks again.
async function upcoming(query = null) {
  for (;;) {
    await page.waiting.idle();
    const { last } = page.waiting, answer = await post("/api/next", { ...me(), query });
    if (last === page.waiting.last) return answer;
  }
}

async function fetchNext() {
  try {
    const answer = await upcoming();
    trouble("");
    take(answer);
    render();
  } catch (error) {
    fault(error);
    page.again = setTimeout(fetchNext, 3000);
  }
}

function state(who, name, why) {
  const said = words();
  if (who === page.who && name !== "waiting") trouble(name === "ok" ? "" : name === "offline" ? said.offline : name === "closed" ? said.closed : said.refused(why));
  standing();
}

// An answer that the server refuses is shown until it is dismissed, also after a reload.
function refused(step, why) {
  const { grade, note } = step.body;
  keep("refused", [...kept("refused", []), words().lost(grade === undefined ? "" : grade ?? "?", note || "", why)]);
  showRefused();
}

function showRefused() {
  const all = kept("refused", []);
  $("refused").hidden = !all.length;
  $("refused").replaceChildren(...all.map((each) => el("p", { textContent: each })),
    el("button", { type: "button", textContent: words().dismiss, onclick: () => { keep("refused", null); showRefused(); } }));
}

// --- views ---------------------------------------------------------------------------------------------------------

const parts = (box = $("view")) => ({
  box, me, words, post, trouble, tell, marking: () => page.marking, waiting: page.waiting, link: copyLink,
  rubric: rubric(), rules: inLanguage(page.about.text), shared: page.about.shared, open: openLabel, again: () => turn(page.view), redraw: (draw) => { if (box.isConnected) page.redraw = draw; },
});

const VIEW_NAMES = ["grade", ...Object.keys(VIEWS)];
const beside = (by) => turn(VIEW_NAMES[(VIEW_NAMES.indexOf(page.view) + by + VIEW_NAMES.length) % VIEW_NAMES.length]);

async function turn(name) {
  if ($("views").contains(document.activeElement)) document.activeElement.blur(); // keys are those of the view
  page.view = name;
  page.keys = page.redraw = null;
  history.replaceState(null, "", name === "grade" ? location.pathname : `#${name}`);
  for (const each of $("views").children) if (each.dataset.view === name) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  endNotice();
  if (name === "grade") { page.opened = false; page.at = page.trail.length; render(); if (!page.deck.length) await fetchNext(); return; }
  clearTimeout(page.again);
  show("view");
  const box = el("div"); // of this view alone: a view that answers late draws into a box that is gone
  $("view").replaceChildren(box);
  box.replaceChildren(el("p", { className: "soft", textContent: page.waiting.steps.length ? words().unsentFirst : words().loading }));
  try {
    await page.waiting.idle(); // an answer that is not sent yet decides what comes next
    if (!box.isConnected) return;
    const keys = await VIEWS[name](parts(box));
    if (!box.isConnected || page.view !== name) return;
    page.keys = keys;
    trouble("");
  } catch (error) {
    fault(error);
    if (!error.status && box.isConnected && page.view === name) page.again = setTimeout(() => turn(name), 3000);
  }
}

// A label from the list: its passage, to be graded again.
function openLabel(label) {
  const entry = { view: label.view, grade: label.grade, note: label.note };
  page.trail = [...page.trail.filter((each) => each.view.item !== label.view.item), entry];
  turn("grade");
  page.at = page.trail.length - 1;
  page.opened = true;
  render();
}

// A link to a query: its passages come first. The address is cleared, so that the same link works again. If another
// link is opened meanwhile, the answer to the first one has no effect.
async function go() {
  const asked = /^#question=(.*)$/s.exec(location.hash), name = location.hash.slice(1);
  if (!asked) { if (name in VIEWS && name !== page.view) turn(name); return; }
  let query = asked[1];
  try { query = decodeURIComponent(query); } catch { /* as it is */ }
  const link = page.links += 1;
  await turn("grade");
  try {
    const answer = await upcoming(query);
    if (link !== page.links) return;
    page.deck = [];
    take(answer);
    page.at = page.trail.length;
    render();
    trouble("");
  } catch (error) {
    if (link !== page.links) return;
    if (!page.deck.length) await fetchNext();
    fault(error);
  }
}

// --- keys ----------------------------------------------------------------------------------------------------------

const KEYS = { 0: () => give(null), n: noting, u: undo, s: skip, m: model, h: marking, c: neighbours, j: next, ArrowRight: next, k: back, ArrowLeft: back, Escape: () => page.opened && back() };

function help() {
  const { keys } = words();
  keysDialog([...(keys[page.view] || []), ...keys.all].filter(([key]) => (key === "m" ? page.about.reveal : key !== "h" || !UNMARKED.includes(page.view))));
}

function stale(event) {
  const idle = page.who && !page.about.who && Date.now() - page.active > IDLE;
  page.active = Date.now();
  if (page.who) tab.set("active", String(page.active));
  if (!idle) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  tab.set("who", null);
  location.reload();
}

for (const name of ["keydown", "pointerdown"]) document.addEventListener(name, stale, true);
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.repeat || $("keys").open) return;
  const writing = event.target.matches("textarea, input");
  if (writing && event.target.matches("textarea") && (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey))) {
    event.target.blur();
    event.preventDefault();
  }
  const enter = event.key === "Enter" && (event.ctrlKey || event.metaKey);
  const undoing = event.key === "z" && !event.shiftKey && (event.ctrlKey || event.metaKey) && !writing; // as in other tools
  if ((event.ctrlKey || event.metaKey) && !enter && !undoing) return;
  if (enter && !page.keys?.Enter) return;
  if (writing && event.target.matches("#view input") && event.key === "ArrowDown" && page.keys?.ArrowDown) event.target.blur();
  else if (writing && !(enter && event.target.matches("textarea"))) { if (event.key === "Escape") event.target.blur(); return; }
  if (event.target.matches("select")) {
    if (event.key === "Escape") event.target.blur();
    if (/^(?:[0-9 ]|Enter|Escape|Tab|Arrow.*|Home|End|Page.*)$/.test(event.key)) return;
  }
  if (event.key === "?") { event.preventDefault(); help(); return; }
  if (!page.waiting) return;
  const digit = /^(?:Digit|Numpad)([0-5])$/.exec(event.code) || /^([0-5])$/.exec(event.key); // also where digits need Shift
  if (!enter && event.key === "Enter" && event.target.matches("button:not(.card button, .row, .combination)")) return; // Enter presses the button
  const keys = page.view === "grade" ? KEYS : page.keys || {}, number = digit && Number(digit[1]);
  if (page.view === "grade" && number) { event.preventDefault(); give(number); return; }
  const act = keys[undoing ? "u" : event.key] || (number ? keys.digit && (() => keys.digit(number)) : number === 0 ? keys[0] : { h: marking, v: () => beside(1), V: () => beside(-1) }[event.key]);
  if (act && act(event) !== false) event.preventDefault();
});

$("note").addEventListener("click", noting);
$("words").addEventListener("input", () => { const entry = current(); if (entry) draft(entry.view.item, $("words").value); });
for (const id of ["undo", "last"]) $(id).addEventListener("click", undo);
$("back").addEventListener("click", back);
$("next").addEventListener("click", next);
$("skip").addEventListener("click", skip);
$("model").addEventListener("click", model);
$("around").addEventListener("click", neighbours);
$("mark").addEventListener("click", marking);
$("help").addEventListener("click", help);
$("link").addEventListener("click", (event) => { const entry = current(); if (entry) copyLink(event, entry.view.qid); });
$("theme").addEventListener("click", () => { theme.turn(); $("theme").textContent = words().themes[theme.now]; });
narrow.addEventListener("change", explain);
$("language").addEventListener("click", () => {
  page.language = page.language === "en" ? "fr" : "en";
  try { localStorage.setItem("raggs.language", page.language); } catch { /* storage is disabled */ }
  speak();
  if (page.view === "model") page.keys.Enter();
  if (!page.who) return;
  if (page.view !== "grade") turn(page.view); else render();
});
for (const each of $("views").children) each.addEventListener("click", () => turn(each.dataset.view));
window.addEventListener("online", () => page.waiting && page.waiting.drain());
window.addEventListener("hashchange", () => page.who && go());
window.addEventListener("beforeunload", (event) => { if (page.waiting?.steps.length && !durable) event.preventDefault(); });

// --- the annotator -------------------------------------------------------------------------------------------------

function greet() {
  const said = words(), was = kept("who"), name = $("name").value.trim();
  $("begin").textContent = was && name === was ? said.goOnAs(was) : said.begin;
  $("again").hidden = !was;
  $("again").textContent = was ? said.again(was) : "";
}

$("name").addEventListener("input", greet);
$("leave").addEventListener("click", () => {
  keep("who", null);
  tab.set("who", null);
  location.reload(); // what is not sent yet stays in the browser, and is sent
});
$("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  const who = $("name").value.replace(/\s+/g, " ").trim();
  if (!who) return;
  try {
    const found = who === kept("who") ? { words: 0 } : await post("/api/known", { who, tab: page.tab });
    if (found.words && $("known").dataset.who !== who) {
      $("known").dataset.who = who;
      $("known").textContent = words().known(found.words, who);
      $("known").hidden = false;
      return;
    }
    begin(who);
  } catch (error) { fault(error); }
});

const queues = new Map(); // one per annotator and tab

function queue(who, from = page.tab) {
  const name = `${from} ${who}`;
  if (!queues.has(name)) queues.set(name, new Waiting(who, from, (state_, why) => state(who, state_, why), (step, answer) => arrived(who, step, answer), refused));
  return queues.get(name);
}

function begin(who) {
  keep("who", who);
  tab.set("who", who);
  tab.set("active", String(Date.now()));
  page.who = who;
  page.active = Date.now();
  page.waiting = queue(who);
  page.waiting.drain();
  standing();
  $("views").hidden = false;
  if (location.hash.startsWith("#question=")) go(); else turn(location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "grade");
}

async function start() {
  try { page.language = localStorage.getItem("raggs.language") || (navigator.language.startsWith("fr") ? "fr" : "en"); } catch { /* storage is disabled */ }
  page.about = await (await fetch("/api/about")).json();
  setPlace(page.about.place);
  page.tab = await identify();
  page.marking = kept("marking", false);
  document.title = `raggs review: ${page.about.title}`;
  $("look").hidden = !page.about.look;
  const who = page.about.who || kept("who");
  $("name").value = who || "";
  speak();
  showRefused();
  takeOver(who, page.tab, queue);
  const here = tab.get("who") === who && Date.now() - Number(tab.get("active")) < IDLE;
  if (who && (page.about.who || here)) begin(who); else { show("hello"); $("name").focus(); $("name").select(); }
}

start();
