// The view Agreement, and the list of views. All data from the server becomes text.
import { decide } from "./decide.js";
import { copy, el } from "./el.js";
import { order } from "./order.js";
import { own } from "./own.js";

const HALF_WIDTH = 0.1; // of a 95% interval that is narrow enough to name the agreement
const LEVELS = [[0, 0], [0.2, 1], [0.4, 2], [0.6, 3], [0.8, 4], [Infinity, 5]]; // Landis and Koch 1977

const table = (caption, head, rows, shade = () => "") =>
  el("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: caption },
    el("table", {},
      el("caption", { textContent: caption }),
      el("thead", {}, el("tr", {}, ...head.map((cell, place) => el("th", { scope: "col", textContent: cell, className: place ? shade(null, place - 1) : "" })))),
      el("tbody", {}, ...rows.map((row, line) => el("tr", {}, ...row.map((cell, place) => el(place ? "td" : "th", { textContent: cell ?? "–", ...(place ? { className: shade(line, place - 1) } : { scope: "row" }) })))))));

// The coefficient in words, and how many shared passages its interval needs.
function inWords(said, figure) {
  if (figure.value === null) return said.undefinedAgreement(figure.cases);
  const name = said.levels[LEVELS.find(([limit]) => figure.value < limit)[1]];
  const half = figure.low === null ? Infinity : (figure.high - figure.low) / 2;
  if (half <= HALF_WIDTH) return name;
  const needed = Number.isFinite(half) ? Math.ceil((figure.cases * (half / HALF_WIDTH) ** 2) / 10) * 10 : null;
  return said.tooFew(name, figure.cases, needed);
}

// Cells with the same grade are blue and others orange; the more passages, the stronger.
function shade(counts) {
  const most = Math.max(1, ...counts.flat());
  return (row, column) => (row === null ? "" : counts[row][column] ? `${row === column ? "same" : "other"}${Math.ceil((3 * counts[row][column]) / most)}` : "zero");
}

// The shares of equal and differing grades in words, for readers who do not see the colours.
function counted(said, counts) {
  const apart = [0, 0, 0];
  for (const [row, cells] of counts.entries()) for (const [column, count] of cells.entries()) apart[Math.min(2, Math.abs(row - column))] += count;
  return said.counted(...apart);
}

function copyAddress(said) {
  const button = el("button", { type: "button", textContent: said.copyAddress, onclick: async () => { await copy(`${location.origin}/`); button.textContent = said.copied; } });
  return el("p", { className: "tools" }, button);
}

async function agree(at) {
  const said = at.words();
  const found = await at.post("/api/agreement", at.me());
  const told = (figure) => (figure.value === null ? "–" : figure.value.toFixed(2));
  const range = (figure) => (figure.low === null ? "–" : `${figure.low.toFixed(2)} … ${figure.high.toFixed(2)}`);
  const columns = [(each) => each.who, (each) => each.graded, (each) => each.unsure || null, (each) => each.mean, (each) => each.lenient, (each) => each.again || null, (each) => share(each), (each) => each.drift];
  const share = (person) => (person.again ? `${person.same} / ${person.again}` : null);
  // The words of a single pair are those of the sentence above the table.
  const pairs = (rows) => {
    const several = rows.length > 1, cells = rows.map((pair) => [`${pair.one} · ${pair.other}`, ...(several ? [inWords(said, pair.kappa)] : []), pair.kappa.cases, told(pair.kappa), range(pair.kappa)]);
    return table(said.pairs, said.pairColumns.filter((_, place) => several || place !== 1), cells, (_, column) => (several && !column ? "words" : ""));
  };
  at.box.replaceChildren(
    el("h1", { textContent: said.agree }),
    ...(found.pairs.length ? [
      el("p", {}, el("strong", { textContent: said.altogether(inWords(said, found.alpha)) }), found.alpha.value === null ? "" : ` ${said.alpha(told(found.alpha), range(found.alpha), found.alpha.cases)}`),
      pairs(found.pairs),
      found.pairs.some((pair) => pair.kappa.value !== null) ? el("p", { className: "soft", textContent: said.kappa }) : "",
      el("div", { className: "matrices" }, ...found.pairs.slice(0, 10).map((pair) => el("div", {}, table(said.table(pair.one, pair.other), [said.grades, 1, 2, 3, 4, 5], pair.table.map((row, place) => [place + 1, ...row]), shade(pair.table)), el("p", { className: "soft", textContent: counted(said, pair.table) })))),
      el("p", { className: "soft", textContent: said.colours }),
    ] : [
      el("p", { textContent: found.people.length ? said.nothing : said.noLabelsYet }),
      el("p", {}, el("strong", { textContent: said.nextStep }), ` ${said.second(found.people.map((each) => each.who))}`),
      copyAddress(said),
    ]),
    ...(found.people.length ? people(said, found.people, columns) : []),
    found.stale ? el("p", { textContent: said.stale(found.stale) }) : "",
    found.people.length ? el("p", { className: "soft", textContent: said.machine }) : "");
  return {};
}

// One row per annotator; only columns with a figure, and what these columns mean.
function people(said, rows, columns) {
  const here = columns.map((_, place) => place).filter((place) => rows.some((each) => columns[place](each) !== null));
  const means = here.map((place) => said.columnsMean[place]).filter(Boolean);
  return [
    table(said.people, here.map((place) => said.columns[place]), rows.map((each) => here.map((place) => columns[place](each)))),
    means.length ? el("p", { className: "soft", textContent: means.join(" ") }) : "",
  ];
}

export const VIEWS = { own, order, decide, agree };
