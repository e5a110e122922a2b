// Where grades differ: people among themselves, or people and a model; side by side, one at a time.
import { el, keyed, meanings, voice } from "./el.js";

function putOff(place) {
  try {
    const found = JSON.parse(sessionStorage.getItem(place) || "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch { return []; }
}

export async function decide(at) {
  const said = at.words();
  const decided = []; // lines of one's own decisions here, the latest last
  const place = `raggs.later.${at.me().who}`;
  const later = putOff(place); // items that were put off, in this tab; a reload does not bring them back
  const note = el("textarea", { id: "why-so", rows: 2, maxLength: 10000 });
  let wanted = "all", busy = false;
  const choice = () => ({ ...at.me(), wanted, later });
  let found = await at.post("/api/differences", choice());

  const heading = () => el("h1", { textContent: found.waiting ? said.decideLater : said.agreed });

  function shown() {
    const first = found.first;
    note.value = "";
    at.box.replaceChildren(
      kinds(),
      el("p", { className: "soft", textContent: [said.sorted(found), found.waiting ? said.waitingFor(found.waiting) : ""].join(" ") }),
      ...(first ? [el("h1", { textContent: first.view.question, dir: "auto" }), beside(first)] : [heading(), tools()]));
    window.scrollTo(0, 0);
  }

  function kinds() {
    const counts = { all: found.people + found.model, people: found.people, model: found.model };
    const group = el("p", { className: "tools" }, ...Object.entries(counts).map(([kind, count]) => {
      const button = el("button", { type: "button", textContent: `${said.kinds[kind]} (${count})`, onclick: () => choose(kind) });
      button.setAttribute("aria-pressed", String(kind === wanted));
      return button;
    }));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", said.kind);
    return group;
  }

  function beside(first) {
    const view = first.view;
    const grade = (each) => {
      const button = el("button", { type: "button", textContent: String(each), title: at.rubric[each] || "", onclick: () => settle(each) });
      button.setAttribute("aria-label", at.rubric[each] ? `${each}: ${at.rubric[each]}` : `${said.decision} ${each}`);
      button.setAttribute("aria-keyshortcuts", String(each));
      return button;
    };
    const grades = el("div", { className: "grades" }, ...[1, 2, 3, 4, 5].map(grade));
    grades.setAttribute("role", "group");
    grades.setAttribute("aria-label", said.decision);
    return el("div", { className: "beside" },
      el("article", {},
        el("h2", { textContent: view.title || said.untitled, dir: "auto" }),
        view.source ? el("p", { className: "soft", textContent: view.source }) : null,
        el("div", { className: "text", textContent: view.text, dir: "auto" })),
      el("section", {},
        el("p", { className: `kind ${first.kind}`, textContent: said.differ[first.kind] }),
        el("ul", { className: "voices" }, ...first.words.map((word) => voice(said, word))),
        first.why ? el("p", { className: "soft", textContent: said.moves(first.why) }) : null,
        el("label", { htmlFor: "why-so", textContent: said.note }), note,
        el("div", { className: "act" }, el("h2", { textContent: said.decision }), grades, tools()),
        meanings(said, at.rubric, at.rules)));
  }

  function tools() {
    return el("p", { className: "tools" }, keyed(said.undo, reopen, "u"), keyed(said.skip, skip, "s", !found.first));
  }

  // Asks the server, one step at a time; `after` is told when it has answered.
  async function step(path, body, after = () => {}) {
    if (busy) return;
    busy = true;
    try {
      found = await at.post(path, { ...choice(), ...body });
      at.trouble("");
      after();
      shown();
    } catch (error) {
      at.trouble(error.status ? said.refused(error.message) : said.offline);
      if (error.status === 400) { // somebody else was quicker
        found = await at.post("/api/differences", choice()).catch(() => found);
        shown();
      }
    }
    busy = false;
  }

  function choose(kind) {
    wanted = kind;
    return step("/api/differences", {});
  }

  function skip() {
    if (busy || !found.first) return;
    later.push(found.first.view.item);
    if (later.length > 500) later.shift();
    try { sessionStorage.setItem(place, JSON.stringify(later)); } catch { /* a browser that keeps nothing */ }
    step("/api/differences", {});
  }

  function settle(grade) {
    if (found.first) step("/api/settle", { item: found.first.view.item, grade, note: note.value.trim() }, () => decided.push(found.line));
  }

  function reopen() {
    step("/api/reopen", { line: decided.at(-1) ?? null }, () => decided.pop()); // after a reload: the latest
  }

  shown();
  return { digit: settle, u: reopen, s: skip, n: () => note.focus() };
}
