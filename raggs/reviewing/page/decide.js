// Passages with different grades, by annotators or by annotators and a model; one at a time, to be adjudicated.
import { el, focusHeading, gradeButtons, keyed, meanings, passage, voice } from "./el.js";
import { keep, kept, tab } from "./local.js";
import { oneAtATime } from "./waiting.js";

const AGAIN = 1_500; // milliseconds until the page asks again whether the order is computed

function postponed() {
  try {
    const found = JSON.parse(tab.get("later") || "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch { return []; }
}

export async function decide(at) {
  const said = at.words();
  const decided = []; // lines of the annotator's decisions in this view, the latest last
  const later = postponed(); // items that were skipped in this tab; a reload keeps them at the end
  const drafts = `reasons.${at.me().who}`;
  const note = el("textarea", { id: "why-so", rows: 2, maxLength: 10000, oninput: () => save(note.value) });
  let wanted = kept("kind", "all"), timer = 0;
  const decisions = oneAtATime(at, "/api/settle");
  const state = el("p", { className: "soft", role: "status" }); // how the passages are sorted
  const hidden = el("p", { className: "soft" }); // disputes that the annotator may not see yet
  const effect = el("p", { className: "soft" }); // of a decision on the comparison of systems
  const choice = () => ({ ...at.me(), wanted, later });
  let found = await at.post("/api/differences", choice());

  const heading = () => el("h1", { textContent: found.waiting ? said.decideLater : said.agreed });

  function save(text) {
    const all = kept(drafts, {});
    if (text) all[found.first.view.item] = text; else delete all[found.first.view.item];
    keep(drafts, all);
  }

  function shown() {
    const first = found.first;
    note.value = first ? kept(drafts, {})[first.view.item] || "" : "";
    sorted();
    at.box.replaceChildren(
      kinds(),
      state,
      ...(first ? [el("h1", { textContent: first.view.question, dir: "auto" }), beside(first)] : [hidden, heading(), tools()]));
    window.scrollTo(0, 0);
  }

  function sorted() {
    const first = found.first;
    state.textContent = first ? said.sorted(found) : "";
    state.hidden = !first;
    hidden.textContent = found.waiting ? said.waitingFor(found.waiting) : "";
    hidden.hidden = !found.waiting;
    effect.textContent = first?.why ? said.moves(first.why) : "";
    effect.hidden = !effect.textContent;
    clearTimeout(timer);
    if (found.weighing) timer = setTimeout(weighed, AGAIN);
  }

  // Ask whether the effects are computed; the passage that is shown stays.
  async function weighed() {
    if (!state.isConnected) return;
    const shownItem = found.first?.view.item;
    try {
      const now = decisions.busy ? null : await at.post("/api/differences", { ...choice(), shown: shownItem ?? null });
      if (!state.isConnected || found.first?.view.item !== shownItem) return;
      if (now && !decisions.busy && now.first?.view.item === shownItem) found = now;
    } catch { /* asked again below */ }
    sorted();
  }

  function kinds() {
    const counts = { all: found.people + found.model, people: found.people, model: found.model };
    const group = el("p", { className: "tools kinds" }, ...Object.entries(counts).map(([kind, count]) => {
      const button = el("button", { type: "button", textContent: `${said.kinds[kind]} (${count})`, onclick: () => choose(kind) });
      button.setAttribute("aria-pressed", String(kind === wanted));
      return button;
    }));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", said.kind);
    return group;
  }

  function beside(first) {
    const view = first.view, on = at.marking();
    const grades = el("div", { className: "grades" }, ...gradeButtons({ ...said, grades: said.decision }, at.rubric, [1, 2, 3, 4, 5], settle));
    grades.setAttribute("role", "group");
    grades.setAttribute("aria-label", said.decision);
    return el("div", { className: "beside said-first" },
      el("section", { className: "said" },
        el("p", { className: `kind ${first.kind}`, textContent: said.differ[first.kind] }),
        el("ul", { className: "voices" }, ...first.words.map((word) => voice(said, word)))),
      el("article", {}, ...passage(said, view, on)),
      el("section", { className: "rest" },
        el("div", { className: "act" }, el("h2", { textContent: said.decision }), grades, tools()),
        el("label", { htmlFor: "why-so" }, said.reason, el("kbd", { textContent: "n", ariaHidden: "true" })), note,
        effect,
        meanings(said, at.rubric, at.rules), hidden));
  }

  function tools() {
    return el("p", { className: "tools" }, keyed(said.undo, reopen, "u"), keyed(said.skip, skip, "s", !found.first));
  }

  function step(path, body, after = () => {}) {
    return decisions.ask(path, { ...choice(), ...body }, (answer) => {
      found = answer;
      after();
      shown();
    }, async (error) => {
      if (error.status !== 400) return; // another annotator was faster
      found = await at.post("/api/differences", choice()).catch(() => found);
      shown();
    });
  }

  async function choose(kind) {
    wanted = kind;
    keep("kind", kind);
    await step("/api/differences", {});
    focusHeading(at.box);
  }

  function skip() {
    if (decisions.busy || !found.first) return;
    later.push(found.first.view.item);
    if (later.length > 500) later.shift();
    tab.set("later", JSON.stringify(later));
    step("/api/differences", {});
  }

  function settle(grade) {
    if (!found.first) return;
    const { item } = found.first.view;
    step("/api/settle", { item, grade, note: note.value.trim() }, () => {
      const { [item]: _, ...others } = kept(drafts, {});
      keep(drafts, others);
      decided.push(found.line);
    });
  }

  function reopen() {
    step("/api/reopen", { line: decided.at(-1) ?? null }, () => { // after a reload: the latest
      decided.pop();
      if (found.reason) save(found.reason);
    });
  }

  at.redraw(shown);
  shown();
  return { digit: settle, u: reopen, s: skip, n: () => note.focus() };
}
