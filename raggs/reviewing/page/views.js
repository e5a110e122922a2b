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
      const button = el("button", { type: "button", textContent: String(each), title: at.rubric[each], onclick: () => settle(each) });
      button.setAttribute("aria-label", `${each}: ${at.rubric[each]}`);
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

export const VIEWS = { decide, agree };
