// Which passages suffice together: the sets of a query are accepted, rejected, changed and added, one query at a time.
import { clipTexts, el, focusHeading, keyed, narrow, passage } from "./el.js";
import { keep, kept, tab } from "./local.js";
import { oneAtATime } from "./waiting.js";

const same = (one, other) => one.length === other.length && one.every((each) => other.includes(each));

export async function evidence(at) {
  const said = at.words();
  const drafts = `evidence.${at.me().who}`, consent = `evidence.seen.${at.me().who}`;
  const note = el("textarea", { id: "why-so", rows: 2, maxLength: 10000, oninput: save });
  const later = JSON.parse(tab.get("evidence.later") || "[]"); // queries that were skipped in this tab
  const sent = []; // the annotator's decisions in this view: line, query and draft
  let wanted = kept("evidence.wanted", "open"), since = 0;
  let sets = [], chosen = 0, past = []; // a set: its passages, whether it is accepted (null: open), and where it is from
  let whole = new Set(); // passages that are shown in full
  const answers = oneAtATime(at, "/api/evidence");
  const choice = () => ({ ...at.me(), wanted, later, seen: kept(consent, false) });
  let found = await at.post("/api/evidence/next", choice());
  begin();

  const first = () => found.first;
  const number = (doc) => first().passages.findIndex((each) => each.doc_id === doc) + 1;
  const named = (set) => (set.members.length ? set.members.map(number).sort((one, other) => one - other).join(" + ") : said.emptySet);
  const open = () => sets.filter((each) => each.accepted === null && each.members.length).length;
  const blank = () => sets.some((each) => each.accepted === null && !each.members.length);

  // The sets of a query as a draft left them, else as they are stored, or as annotators gave them.
  function begin() {
    since = performance.now();
    whole = new Set();
    past = [];
    chosen = 0;
    sets = [];
    note.value = "";
    if (!found.first) return;
    const draft = kept(drafts, {})[found.first.query];
    for (const members of found.first.proposed) add(members).stored = true;
    for (const each of found.first.given) for (const members of each.sets) add(members).by.push(each.who);
    if (draft && draft.wanted === wanted) ({ sets, chosen, past } = draft); else if (found.withdrawn) restore(found.withdrawn.sets);
    note.value = draft?.note || found.withdrawn?.note || "";
    chosen = Math.max(0, Math.min(chosen, sets.length - 1));
  }

  // The decisions of an answer that was withdrawn: sets that it does not contain were rejected.
  function restore(accepted) {
    past.push({ sets: structuredClone(sets), chosen });
    for (const each of sets) each.accepted = false;
    for (const members of accepted) {
      const here = add(members);
      here.own = here.accepted === null;
      here.accepted = true;
    }
    if (!sets.length) sets = [created(false)];
  }

  function add(members) {
    const here = sets.find((each) => same(each.members, members));
    if (!here) sets.push({ members: [...members], accepted: null, stored: false, own: false, by: [] });
    return here || sets.at(-1);
  }

  const created = (accepted) => ({ members: [], accepted, stored: false, own: true, by: [] });

  function save() {
    if (!found.first) return;
    const all = kept(drafts, {});
    if (past.length || note.value) all[found.first.query] = { wanted, sets, chosen, past, note: note.value }; else delete all[found.first.query];
    keep(drafts, all);
  }

  function shown(focus) {
    save();
    const query = found.first;
    if (!query) {
      at.box.replaceChildren(kinds(), ...(found.unblinds ? [warning()] : [el("h1", { textContent: wanted === "open" ? said.evidenceDone : said.evidenceAgreed }), tools()]));
      document.getElementById("show-evidence")?.focus();
      return;
    }
    at.box.replaceChildren(
      kinds(),
      el("p", { className: "soft", textContent: wanted === "open" ? `${said.evidenceHow} ${query.proposed.length ? said.evidenceStored : said.evidenceNew}` : said.evidenceDiffer }),
      el("h1", { textContent: query.question, dir: "auto" }),
      ...(query.given.length ? [given()] : []),
      el("div", { className: "beside evidence" }, el("div", {}, ...query.passages.map(card)), tray()));
    clipTexts(at.box, whole, said);
    const list = at.box.querySelector(".rows"), now = list?.querySelector("[aria-pressed=true]");
    if (now) list.scrollTop = now.offsetTop - list.offsetTop - list.clientHeight / 2;
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  }

  function kinds() {
    const group = el("p", { className: "tools kinds" }, ...[["open", found.left], ["differ", found.differ]].map(([kind, count]) => {
      const button = el("button", { type: "button", textContent: `${said.evidenceKinds[kind]} (${count})`, onclick: async () => { wanted = kind; keep("evidence.wanted", kind); await next(); focusHeading(at.box); } });
      button.setAttribute("aria-pressed", String(kind === wanted));
      return button;
    }));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", said.evidenceKind);
    return group;
  }

  // Nothing is shown until the annotator agrees that later grades of these passages are not blind.
  function warning() {
    const button = Object.assign(keyed(said.showEvidence, agree, "Enter"), { id: "show-evidence" });
    return el("div", {}, el("h1", { textContent: said.unblindsTitle }), el("p", { textContent: said.unblinds(found.unblinds) }), el("p", { className: "tools" }, button));
  }

  function agree() {
    keep(consent, true);
    return next();
  }

  // --- passages -------------------------------------------------------------------------------------------------------

  function card(view, place) {
    const inside = [...sets.keys()].filter((each) => sets[each].members.includes(view.doc_id));
    const here = inside.includes(chosen);
    const name = said.place(place + 1), step = here ? said.removeFrom(chosen + 1) : sets.length ? said.addTo(chosen + 1) : said.addNew;
    const button = Object.assign(keyed(step, () => toggle(view.doc_id), "x"), { id: `pick-${place + 1}`, className: "pick", ariaLabel: `${step}: ${name}` });
    const member = inside.length ? said.inSets(inside.map((each) => each + 1).join(", ")) : "";
    const grade = view.grade === null ? [] : [el("span", { className: "soft", textContent: said.runGrade }), el("strong", { className: `grade g${view.grade}`, textContent: String(view.grade) })];
    const unfold = el("button", { type: "button", className: "whole plain", textContent: said.showAll, onclick: () => { if (!whole.delete(place)) whole.add(place); clipTexts(at.box, whole, said); } });
    const body = view.text ? passage(said, { ...view, terms: first().terms }, at.marking())
      : [el("h2", { textContent: view.doc_id, dir: "auto" }), el("p", { className: "soft", textContent: said.noText })];
    return el("article", { id: `passage-${place + 1}`, className: `card${here ? " picked" : ""}`, tabIndex: -1, ariaLabel: `${name} ${member}` },
      el("p", { className: "tools" }, el("strong", { textContent: name }), ...grade, button, member && el("span", { className: "soft", textContent: member })), ...body, unfold);
  }

  // --- sets -----------------------------------------------------------------------------------------------------------

  function tray() {
    const box = el("div", { className: "act sets" },
      el("h2", { id: "sets-title" }, said.sets, sets.length > 1 ? el("kbd", { textContent: "← →", ariaHidden: "true" }) : null),
      sets.length ? el("ul", { className: "rows" }, ...sets.map(row)) : null,
      el("p", { className: "soft", role: "status", textContent: outcome() }),
      el("p", { className: "tools" }, keyed(said.accept, () => decide(true), "a", !sets[chosen]?.members.length), keyed(said.reject, () => decide(false), "r", !sets[chosen]), keyed(said.newSet, create, "+"), keyed(said.noSet, none, "0")),
      tools());
    const side = el("section", { className: "side" }, box, el("label", { htmlFor: "why-so" }, said.evidenceNote, el("kbd", { textContent: "n", ariaHidden: "true" })), note);
    side.setAttribute("aria-labelledby", "sets-title");
    return side;
  }

  const mark = (set) => (set.accepted === null ? "?" : set.accepted ? "✓" : "✗");

  function row(set, place) {
    const state = set.accepted === null ? said.openSet : set.accepted ? said.acceptedSet : said.rejectedSet;
    const button = el("button", { type: "button", id: `set-${place + 1}`, className: `combination ${set.accepted === null ? "" : set.accepted ? "accepted" : "rejected"}`, onclick: () => choose(place, `set-${place + 1}`) },
      el("strong", { textContent: mark(set), ariaHidden: "true" }),
      el("span", {}, said.set(place + 1), el("span", { className: "unseen", textContent: `, ${state}` }), ": ", el("span", { className: "noun", textContent: said.members(set.members.length) }), el("span", { className: "name", textContent: named(set) })), el("span", { className: "soft by", textContent: [set.stored && said.stored, set.own && said.own, ...set.by].filter(Boolean).join(", "), dir: "auto" }), place < 5 ? el("kbd", { textContent: String(place + 1), ariaHidden: "true" }) : null);
    button.setAttribute("aria-pressed", String(place === chosen));
    return el("li", {}, button);
  }

  function outcome() {
    const yes = sets.filter((each) => each.accepted && each.members.length).length;
    return open() ? said.openSets(open()) : blank() ? said.blankSet : yes ? said.acceptedSets(yes) : sets.length ? said.noneSuffices : said.noSets;
  }

  // What each annotator of a disputed query gave.
  function given() {
    const { given: all } = first();
    return el("ul", { className: "voices" }, ...all.map((each) => el("li", { className: "sets-of" }, el("div", {},
      el("strong", { textContent: each.who, dir: "auto" }), el("p", { textContent: each.sets.length ? each.sets.map((members) => said.members(members.length) + named({ members })).join("; ") : said.noneSuffices }),
      each.note ? el("p", { className: "soft", textContent: each.note, dir: "auto" }) : null))));
  }

  function tools() {
    return el("p", { className: "tools" }, keyed(said.undo, back, "u"), ...(found.first ? [keyed(said.skip, skip, "s"), keyed(said.send, send, "Enter", !ready())] : []));
  }

  // An answer needs a decision on each set, or that no set suffices.
  const ready = () => Boolean(found.first) && !open() && !blank() && sets.length > 0;

  // --- steps ----------------------------------------------------------------------------------------------------------

  function change(focus, work) {
    if (answers.busy || !found.first) return;
    past.push({ sets: structuredClone(sets), chosen });
    if (past.length > 200) past.shift();
    work();
    at.trouble("");
    at.tell(sets[chosen] ? `${said.set(chosen + 1)}: ${named(sets[chosen])}, ${mark(sets[chosen])}. ${outcome()}` : outcome());
    shown(focus);
  }

  function choose(place, focus) {
    if (answers.busy || !sets[place]) return;
    chosen = place;
    at.tell(`${said.set(place + 1)}: ${named(sets[place])}`);
    shown(focus);
  }

  // A changed set is the annotator's own, and accepted. Without a set, the passage starts one.
  function toggle(doc) {
    change(document.activeElement.id, () => {
      if (!sets.length) { sets = [created(true)]; chosen = 0; }
      const set = sets[chosen];
      set.members = set.members.includes(doc) ? set.members.filter((each) => each !== doc) : [...set.members, doc];
      set.accepted = set.members.length ? true : null;
      Object.assign(set, { stored: false, own: true, by: [] });
    });
  }

  // To reject a set without passages removes it.
  function decide(accepted) {
    if (!sets[chosen] || (accepted && !sets[chosen].members.length)) return;
    change(document.activeElement.id, () => {
      if (sets[chosen].members.length) sets[chosen].accepted = accepted;
      else sets.splice(chosen, 1);
      chosen = Math.max(0, Math.min(chosen, sets.length - 1));
      const next = sets.findIndex((each) => each.accepted === null && each.members.length);
      if (next >= 0) chosen = next;
    });
  }

  function create() {
    change("passage-1", () => {
      sets = [...sets.filter((each) => each.members.length), created(null)];
      chosen = sets.length - 1;
    });
    reveal();
  }

  function none() {
    change(document.activeElement.id, () => {
      sets = sets.filter((each) => each.members.length);
      for (const each of sets) each.accepted = false;
      if (!sets.length) sets = [created(false)];
      chosen = 0;
    });
  }

  function step(path, body, after = () => {}) {
    return answers.ask(path, { ...choice(), ...body }, (answer) => {
      found = answer;
      after();
      begin();
      shown();
      window.scrollTo(0, 0);
    });
  }

  const next = () => step("/api/evidence/next", {});

  function send(event) {
    if (event.target.matches?.(".card button, .combination:not([aria-pressed=true])")) return false; // Enter presses the button
    if (found.unblinds) return agree();
    if (answers.busy || !found.first) return;
    if (!ready()) return at.trouble(said.notSent(outcome()));
    const { query, passages, proposed } = first();
    const accepted = sets.filter((each) => each.accepted && each.members.length).map((each) => each.members);
    const draft = { wanted, sets, chosen, past, note: note.value };
    const body = { query, shown: passages.map((each) => each.doc_id), proposed, sets: accepted, note: note.value.trim(), seconds: Math.round(performance.now() - since) / 1000 };
    return step("/api/evidence", body, () => {
      const { [query]: _, ...others } = kept(drafts, {});
      keep(drafts, others);
      sent.push({ line: found.line, query, draft });
    });
  }

  function skip() {
    if (answers.busy || !found.first) return;
    later.push(found.first.query);
    if (later.length > 500) later.shift();
    tab.set("evidence.later", JSON.stringify(later));
    next();
  }

  function back() {
    if (answers.busy) return;
    if (past.length) {
      ({ sets, chosen } = past.pop());
      shown(document.activeElement.id);
    } else step("/api/evidence/undo", { line: sent.at(-1)?.line ?? null }, () => { // after a reload: the latest
      const last = sent.pop();
      if (last) keep(drafts, { ...kept(drafts, {}), [last.query]: last.draft });
    });
  }

  function move(by) {
    const cards = [...at.box.querySelectorAll(".card")], now = cards.indexOf(document.activeElement.closest(".card"));
    const goal = cards[Math.max(0, Math.min(cards.length - 1, now < 0 && by < 0 ? 0 : now + by))];
    goal?.focus({ preventScroll: true });
    reveal();
  }

  function reveal() {
    document.activeElement.closest(".card")?.scrollIntoView({ block: narrow.matches ? "start" : "nearest" });
  }

  function pick() {
    if (!document.activeElement.closest(".card")) move(1);
    document.activeElement.closest(".card")?.querySelector(".pick").click();
  }

  at.redraw(() => shown(document.activeElement.id));
  shown();
  return {
    digit: (n) => choose(n - 1, document.activeElement.id), 0: none, "+": create, a: () => decide(true), r: () => decide(false), x: pick, j: () => move(1), k: () => move(-1),
    ArrowDown: () => move(1), ArrowUp: () => move(-1),
    ArrowLeft: () => choose(chosen - 1, document.activeElement.id), ArrowRight: () => choose(chosen + 1, document.activeElement.id), n: () => found.first && note.focus(), u: back, s: skip, Enter: send,
    " ": (event) => (event.target.matches(".card") ? pick() : false),
  };
}
