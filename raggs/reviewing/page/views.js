// Views beside grading; here how far people agree. All that comes from the server becomes text.
import { decide } from "./decide.js";
import { el } from "./el.js";
import { order } from "./order.js";

const table = (caption, head, rows) =>
  el("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: caption },
    el("table", {},
      el("caption", { textContent: caption }),
      el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col", textContent: cell })))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, place) => el(place ? "td" : "th", { textContent: cell ?? "–", ...(place ? {} : { scope: "row" }) })))))));

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
    ...(found.pairs.length ? [table(said.pairs, said.pairColumns, found.pairs.map((pair) => [`${pair.one} · ${pair.other}`, pair.kappa.cases, told(pair.kappa), range(pair.kappa)]))] : []),
    ...found.pairs.slice(0, 10).map((pair) => table(said.table(pair.one, pair.other), [said.grades, 1, 2, 3, 4, 5], pair.table.map((row, place) => [place + 1, ...row]))),
    found.stale ? el("p", { textContent: said.stale(found.stale) }) : "",
    el("p", { className: "soft", textContent: said.machine }));
  return {};
}

export const VIEWS = { order, decide, agree };
