// The view Agreement, and the list of views. All data from the server becomes text.
import { decide } from "./decide.js";
import { coded, copy, el, narrow } from "./el.js";
import { evidence } from "./evidence.js";
import { order } from "./order.js";
import { own } from "./own.js";

const MOST_PAIRS = 10; // pairs of annotators with a matrix
const MOST_COLUMNS = 4; // annotators in columns on a narrow page
const HALF_WIDTH = 0.1; // of a 95% interval that is narrow enough to name the agreement
const LEVELS = [[0, 0], [0.2, 1], [0.4, 2], [0.6, 3], [0.8, 4], [Infinity, 5]]; // Landis and Koch 1977

const table = (caption, head, rows, shade = () => "") =>
  el("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: caption },
    el("table", {},
      el("caption", { textContent: caption }),
      el("thead", {}, el("tr", {}, ...head.map((cell, place) => el("th", { scope: "col", textContent: cell, className: place ? shade(null, place - 1) : "" })))),
      el("tbody", {}, ...rows.map((row, line) => el("tr", {}, ...row.map((cell, place) => el(place ? "td" : "th", { textContent: cell ?? "–", ...(place ? { className: shade(line, place - 1) } : { scope: "row" }) })))))));

// A number as the language of the page writes it.
const decimal = (value) => String(value).replace(".", document.documentElement.lang === "fr" ? "," : ".");

const level = (figure) => (figure.value === null ? null : LEVELS.find(([limit]) => figure.value < limit)[1]);

// How many shared passages the interval needs: 0 if it is narrow enough, null if unknown.
function needed(figure) {
  if (figure.value === null || figure.low === null) return null;
  const half = (figure.high - figure.low) / 2;
  return half <= HALF_WIDTH ? 0 : Math.ceil((figure.cases * (half / HALF_WIDTH) ** 2) / 10) * 10;
}

// The coefficient in words, and how many shared passages its interval needs.
function inWords(said, figure) {
  if (figure.value === null) return said.undefinedAgreement(figure.cases);
  const name = said.levels[level(figure)], wanted = needed(figure);
  return wanted === 0 ? name : said.tooFew(name, figure.cases, wanted);
}

// The same for a row of the table of pairs, which states the number of passages in a column.
function pairWords(said, figure) {
  const wanted = needed(figure), name = said.levels[level(figure)];
  return level(figure) === null ? said.unknown : wanted ? said.needs(name, wanted) : wanted === null ? said.unsureLevel(name) : name;
}

// What to do next: more shared passages, a talk about the differences, or the check of the judge.
const step = (said, figure, shared) => (needed(figure) !== 0 ? `${said.share(needed(figure))}${shared ? "" : ` ${said.overlap}`}` : level(figure) < 3 ? said.discuss : said.machine);

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
  const told = (figure) => (figure.value === null ? "–" : decimal(figure.value.toFixed(2)));
  const range = (figure) => (figure.low === null ? "–" : `${decimal(figure.low.toFixed(2))}\u00a0…\u00a0${decimal(figure.high.toFixed(2))}`);
  const columns = [(each) => each.who, (each) => each.graded, (each) => each.unsure || null, (each) => each.mean, (each) => each.lenient, (each) => each.again || null, (each) => share(each), (each) => each.drift];
  const share = (person) => (person.again ? `${person.same} / ${person.again}` : null);
  const pairs = (rows) => {
    const cells = rows.map((pair) => [`${pair.one} · ${pair.other}`, pairWords(said, pair.kappa), pair.kappa.cases, told(pair.kappa), range(pair.kappa)]);
    return table(said.pairs, said.pairColumns, cells, (_, column) => (column ? "" : "words"));
  };
  const differ = found.pairs.length === 1 && level(found.alpha) !== level(found.pairs[0].kappa);
  at.box.replaceChildren(
    el("h1", { textContent: said.agree }),
    ...(found.pairs.length ? [
      el("p", { className: "lead" }, el("strong", { textContent: said.altogether(inWords(said, found.alpha)) })),
      el("p", {}, el("strong", { textContent: said.nextStep }), " ", ...coded(step(said, found.alpha, at.shared))),
      found.alpha.value === null ? "" : el("p", { className: "soft", textContent: said.alpha(told(found.alpha), range(found.alpha), found.alpha.cases) }),
      pairs(found.pairs),
      found.pairs.some((pair) => pair.kappa.value !== null) ? el("p", { className: "soft", textContent: differ ? `${said.kappa} ${said.apart}` : said.kappa }) : "",
      el("div", { className: "matrices" }, ...found.pairs.slice(0, MOST_PAIRS).map((pair) => el("div", { className: "matrix" }, table(said.table(pair.one, pair.other), [said.grades, 1, 2, 3, 4, 5], pair.table.map((row, place) => [place + 1, ...row]), (row, column) => (row === null ? "" : pair.shades[row][column])), el("p", { className: "soft", textContent: counted(said, pair.table) })))),
      el("p", { className: "soft colours" }, ...said.colours.map((text, place) => el("span", {}, el("span", { className: `swatch ${["same2", "near2", "far2"][place]}`, ariaHidden: "true" }), text)), said.stronger),
      found.pairs.length > MOST_PAIRS ? el("p", { className: "soft", textContent: said.morePairs(MOST_PAIRS, found.pairs.length) }) : "",
    ] : [
      el("p", { textContent: found.people.length ? said.nothing : said.noLabelsYet }),
      el("p", {}, el("strong", { textContent: said.nextStep }), " ", ...coded(`${said.second(found.people.map((each) => each.who))}${at.shared ? "" : ` ${said.overlap}`}`)),
      copyAddress(said),
    ]),
    ...(found.people.length ? people(said, found.people, columns) : []),
    found.stale ? el("p", { textContent: said.stale(found.stale) }) : "",
    found.people.length && step(said, found.alpha) !== said.machine ? el("p", { className: "soft" }, ...coded(`${said.machine[0].toUpperCase()}${said.machine.slice(1)}`)) : "");
  return {};
}

// One row per annotator, or one column on a narrow page; only figures that exist, and what they mean.
function people(said, rows, columns) {
  const here = columns.map((_, place) => place).filter((place) => rows.some((each) => columns[place](each) !== null));
  const means = here.map((place) => said.columnsMean[place]).filter(Boolean);
  const head = here.map((place) => said.columns[place]), cell = (value) => (typeof value === "number" ? decimal(value) : value);
  const lines = [head, ...rows.map((each) => here.map((place) => cell(columns[place](each))))];
  const upright = rows.length <= MOST_COLUMNS && narrow.matches;
  const [first, ...rest] = upright ? head.map((_, place) => lines.map((line) => line[place])) : lines;
  return [
    table(said.people, first, rest),
    means.length ? el("p", { className: "soft", textContent: means.join(" ") }) : "",
  ];
}

export const VIEWS = { own, order, evidence, decide, agree };
