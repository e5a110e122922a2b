// Views beside grading: where people differ, and how far they agree. All that comes from the server becomes text.

function el(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const table = (caption, head, rows) =>
  el("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: caption },
    el("table", {},
      el("caption", { textContent: caption }),
      el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col", textContent: cell })))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, place) => el(place ? "td" : "th", { textContent: cell ?? "–", ...(place ? {} : { scope: "row" }) })))))));

async function decide(at) {
  const said = at.words();
  let found = await at.post("/api/differences", at.me());
  const decided = []; // lines of one's own decisions here, the latest last
  const note = el("textarea", { id: "why-so", rows: 2, maxLength: 10000 });

  function shown() {
    const first = found.first[0];
    if (!first) {
      at.box.replaceChildren(el("h1", { textContent: said.agreed }), undoing());
      return;
    }
    const view = first.view;
    note.value = "";
    const grade = (each) => {
      const button = el("button", { type: "button", textContent: String(each), title: at.rubric[each] || "", onclick: () => settle(each) });
      button.setAttribute("aria-label", at.rubric[each] ? `${each}: ${at.rubric[each]}` : `${said.decision} ${each}`);
      return button;
    };
    const grades = el("div", { className: "grades" }, ...[1, 2, 3, 4, 5].map(grade));
    grades.setAttribute("role", "group");
    grades.setAttribute("aria-label", said.decision);
    at.box.replaceChildren(
      el("p", { className: "soft", textContent: `${said.apart(found.total)}. ${said.decideFirst}` }),
      el("h1", { textContent: view.question, dir: "auto" }),
      el("div", { className: "beside" },
        el("article", {}, el("h2", { textContent: view.title, dir: "auto" }), el("div", { className: "text", textContent: view.text, dir: "auto" })),
        el("section", {},
          el("h2", { textContent: said.said }),
          el("dl", { className: "said" }, ...first.words.flatMap((word) => [
            el("dt", { textContent: word.who }),
            el("dd", {}, el("strong", { textContent: word.grade === null ? said.cannot : String(word.grade) }), word.note ? ` ${word.note}` : ""),
          ])),
          el("h2", { textContent: said.decision }),
          el("label", { htmlFor: "why-so", textContent: said.note }), note, grades, undoing())));
  }

  function undoing() {
    const button = el("button", { type: "button", textContent: `${said.undo} (u)`, onclick: reopen, disabled: !decided.length });
    return el("p", { className: "tools" }, button);
  }

  async function attempt(path, body, after) {
    try {
      found = await at.post(path, { ...at.me(), ...body });
      at.trouble("");
      after();
      shown();
    } catch (error) {
      at.trouble(error.status ? said.refused(error.message) : said.offline);
    }
  }

  let busy = false;
  async function settle(grade) {
    if (busy || !found.first[0]) return;
    busy = true;
    await attempt("/api/settle", { item: found.first[0].view.item, grade, note: note.value.trim() }, () => decided.push(found.line));
    busy = false;
  }

  async function reopen() {
    if (busy || !decided.length) return;
    busy = true;
    await attempt("/api/reopen", { line: decided[decided.length - 1] }, () => decided.pop());
    busy = false;
  }

  shown();
  return { digit: settle, u: reopen, n: () => note.focus() };
}

async function agree(at) {
  const said = at.words();
  const found = await at.post("/api/agreement", at.me());
  const told = (figure) => (figure.value === null ? "–" : figure.value.toFixed(2));
  const range = (figure) => (figure.low === null ? "–" : `${figure.low.toFixed(2)} … ${figure.high.toFixed(2)}`);
  const share = (person) => (person.again ? `${person.same} / ${person.again}` : null);
  at.box.replaceChildren(
    el("h1", { textContent: said.agree }),
    el("p", { textContent: found.pairs.length ? `${said.alpha}: ${told(found.alpha)} (${range(found.alpha)}, ${found.alpha.cases})` : said.nothing }),
    table(said.people, said.columns, found.people.map((each) => [each.who, each.graded, each.unsure, each.mean, each.lenient, each.again, share(each), each.drift])),
    table(said.pairs, said.pairColumns, found.pairs.map((pair) => [`${pair.one} · ${pair.other}`, pair.kappa.cases, told(pair.kappa), range(pair.kappa)])),
    ...found.pairs.slice(0, 10).map((pair) => table(said.table(pair.one, pair.other), [said.grades, 1, 2, 3, 4, 5], pair.table.map((row, place) => [place + 1, ...row]))),
    el("p", { className: "soft", textContent: said.machine }));
  return {};
}

async function order(at) {
  const said = at.words();
  let found = await at.post("/api/order/next", at.me());
  let placed = []; // groups of equals, best first, of places on the page
  let equal = false, busy = false, since = performance.now();
  const sent = []; // lines of one's own orders here

  const count = () => placed.flat().length;
  const group = (place) => placed.findIndex((each) => each.includes(place));

  function shown(focus) {
    if (!found.views.length) {
      at.box.replaceChildren(el("h1", { textContent: said.orderDone }), buttons());
      return;
    }
    at.box.replaceChildren(
      el("p", { className: "soft", textContent: `${said.ordered(found.done, found.left)}. ${said.orderHow}` }),
      el("h1", { textContent: found.views[0].question, dir: "auto" }),
      ...found.views.map(card), buttons());
    if (focus) document.getElementById(focus)?.focus();
  }

  function card(view, place) {
    const at = group(place), tied = at >= 0 && placed[at].length > 1;
    const state = at < 0 ? "" : `: ${said.rank(at + 1)}${tied ? " =" : ""}`;
    const button = el("button", { type: "button", id: `place-${place + 1}`, textContent: `${said.place(place + 1)}${state}`, onclick: () => put(place) });
    button.setAttribute("aria-pressed", String(at >= 0));
    return el("article", { className: "card" }, button, el("h2", { textContent: view.title, dir: "auto" }), el("div", { className: "text", textContent: view.text, dir: "auto" }));
  }

  function buttons() {
    const make = (text, act, disabled) => el("button", { type: "button", textContent: text, onclick: act, disabled });
    const tie = make(`${said.equal} (=)`, tying, !count() || !found.views.length);
    tie.setAttribute("aria-pressed", String(equal));
    return el("p", { className: "tools" }, tie, make(`${said.takeBack} (u)`, back, !count() && !sent.length),
      make(`${said.send} (Enter)`, send, !found.views.length || count() < found.views.length));
  }

  function put(place) {
    if (place >= found.views.length || group(place) >= 0) return;
    if (equal && placed.length) placed[placed.length - 1].push(place); else placed.push([place]);
    equal = false;
    shown(`place-${place + 1}`);
  }

  function tying() {
    equal = !equal && count() > 0;
    shown();
  }

  async function step(path, body, after) {
    if (busy) return;
    busy = true;
    try {
      found = await at.post(path, { ...at.me(), ...body });
      after();
      placed = [];
      equal = false;
      since = performance.now();
      at.trouble("");
      shown();
      window.scrollTo(0, 0);
    } catch (error) {
      at.trouble(error.status ? said.refused(error.message) : said.offline);
    }
    busy = false;
  }

  function back() {
    if (count()) {
      const last = placed[placed.length - 1];
      last.pop();
      if (!last.length) placed.pop();
      shown();
    } else if (sent.length) step("/api/order/undo", { line: sent[sent.length - 1] }, () => sent.pop());
  }

  function send() {
    if (!found.views.length || count() < found.views.length) return;
    const items = found.views.map((view) => view.item);
    const body = { shown: items, order: placed.map((each) => each.map((place) => items[place])), seconds: Math.round(performance.now() - since) / 1000 };
    step("/api/order", body, () => sent.push(found.line));
  }

  shown();
  return { digit: (n) => put(n - 1), u: back, Backspace: back, "=": tying, Enter: send };
}

export const VIEWS = { order, decide, agree };
