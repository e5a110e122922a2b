// Elements with properties and children. All data from the server becomes text.
import { keep, kept } from "./local.js";

export const narrow = window.matchMedia("(max-width: 56rem)"); // one column: controls are fixed below the text

export function el(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const SNIPPET = 200; // characters of the start of a passage
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// The text as nodes, with the words that start like a term of the query marked.
export function marked(text, terms, on) {
  if (!on) return [text];
  const stems = terms.map((term) => (term.length > 5 ? term.slice(0, -1) : term));
  return text.split(/([\p{L}\p{N}\p{M}]+)/u).map((part, place) =>
    place % 2 && stems.some((stem) => plain(part).startsWith(stem)) ? el("mark", { textContent: part }) : part);
}

// Whether the first line of a passage is its title, with or without a mark of a heading.
export const titled = (view) => Boolean(view.title.trim()) && firstLine(view.text).replace(/^#+\s*/, "").trim() === view.title.trim();
const firstLine = (text) => text.split("\n", 1)[0];

const UNDERLINE = /^[ \t]*([*=~^#+"-])\1{2,}[ \t]*$/;
const TABLE_ROW = /^\s*(?:\||\+[-=+]{3,})/;
const LONGEST_CODE = 100; // characters of a line of code; longer lines are prose
const SIGNS = 0.06; // share of a line's characters that are signs, from which an indented line is code

// Whether the lines between two blank lines are code: a session, or indented lines of which half have many signs.
function isCode(lines) {
  if (/^\s*(?:>>> |\$ )/.test(lines[0])) return true;
  const signs = (line) => line.replace(/[\p{L}\p{N}\s.,:;!?'"’‘“”*-]/gu, "").length > SIGNS * line.trim().length;
  const indented = (line) => /^(?: {2}|\t)(?!\s*[*•-] )/.test(line) && line.length <= LONGEST_CODE;
  return lines.every(indented) && 2 * lines.filter(signs).length >= lines.length;
}

// The kind of each line: "code" also for tables, "title" for a line that the next one underlines.
function kinds(lines) {
  const found = [];
  let fenced = false, start = 0;
  for (const [place, line] of lines.entries()) {
    if (!line.trim()) start = place + 1;
    const fence = line.trim().startsWith("```"), end = lines.findIndex((each, at) => at > place && !each.trim());
    if (fence) fenced = !fenced;
    if (fence || fenced || TABLE_ROW.test(line)) found.push("code");
    else if (place && UNDERLINE.test(line) && lines[place - 1].trim()) { found[place - 1] = "title"; found.push("line"); }
    else if (line.trim()) found.push(place > start ? (found[place - 1] === "code" ? "code" : "prose") : isCode(lines.slice(start, end < 0 ? undefined : end)) ? "code" : "prose");
    else found.push("prose");
  }
  return found;
}

// A code span that is wider than the page can be scrolled by keyboard.
const wide = new ResizeObserver((changes) => { for (const { target } of changes) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1; });

// The text as nodes with its words marked: code and tables in a fixed-width font, underlined lines bold.
export function formatted(text, terms, on) {
  const lines = text.split("\n"), of = kinds(lines), made = [];
  for (let start = 0; start < lines.length;) {
    let end = start + 1;
    while (end < lines.length && of[end] === of[start]) end += 1;
    const words = lines.slice(start, end).join("\n"), nodes = () => marked(words, terms, on);
    if (of[start] !== "line") {
      const block = { code: () => [el("span", { className: "code" }, ...nodes())], title: () => [el("strong", {}, ...nodes())], prose: nodes }[of[start]]();
      if (of[start] === "code") wide.observe(block[0]);
      made.push(...(made.length ? ["\n"] : []), ...block);
    }
    start = end;
  }
  return made;
}

// The text as nodes; a first line that is the title is bold, so that the title need not stand above it.
export function passageText(view, on) {
  if (!titled(view)) return formatted(view.text, view.terms, on);
  const first = firstLine(view.text), rest = view.text.slice(first.length + 1), under = firstLine(rest);
  return [el("strong", {}, ...marked(first.replace(/^#+\s*/, ""), view.terms, on)), "\n", ...formatted(UNDERLINE.test(under) ? rest.slice(under.length + 1) : rest, view.terms, on)];
}

// The start of a passage on one line, without its title, underlines, and the lines of tables.
export function start(view) {
  const words = view.text.replace(/^[ \t]*[^\p{L}\p{N}\s]{3,}[ \t]*$/gmu, " ").replace(/[\s|]+/g, " ").trim().replace(/^#+ /, ""), title = view.title.trim();
  const rest = title && words.startsWith(title) ? words.slice(title.length).trim() : words;
  return (rest || words).slice(0, SNIPPET);
}

// A sentence in which backquotes enclose commands.
export const coded = (text) => text.split("`").map((part, place) => (place % 2 ? el("code", { textContent: part }) : part));

// Heading and text of a passage.
export const passage = (said, view, on) => [
  el("h2", { dir: "auto", className: titled(view) ? "unseen" : "" }, ...marked(view.title || said.untitled, view.terms, on)),
  view.source ? el("p", { className: "soft", textContent: view.source }) : null,
  el("div", { className: "text", dir: "auto" }, ...passageText(view, on))];

// The label of an annotator or a model: grade, name, note.
export const voice = (said, word) =>
  el("li", { className: word.model ? "model" : "" },
    el("strong", { className: `grade g${word.grade ?? 0}`, textContent: word.grade === null ? "?" : String(word.grade) }),
    el("div", {},
      el("span", { className: "soft", textContent: `${word.model ? said.model : said.person} ` }), el("span", { textContent: word.who, dir: "auto" }),
      word.grade === null ? el("p", { textContent: said.cannot }) : null,
      word.note ? el("p", { textContent: word.note, dir: "auto" }) : null));

let sizes = null; // watches the size of the view: a narrower page clips more

// Fold long texts of the cards of a view. A text that is cut off ends in a fade and has a button; `whole`: places of the
// texts that are shown in full.
export function clipTexts(box, whole, said) {
  clip(box, whole, said);
  sizes?.disconnect();
  sizes = new ResizeObserver(() => clip(box, whole, said));
  sizes.observe(box);
}

function clip(box, whole, said) {
  for (const [place, card] of [...box.querySelectorAll(".card")].entries()) {
    const text = card.querySelector(".text"), button = card.querySelector(".whole"), open = whole.has(place);
    text?.classList.toggle("open", open);
    const clipped = Boolean(text) && !open && text.scrollHeight > text.clientHeight + 2;
    text?.classList.toggle("clipped", clipped);
    button.hidden = !open && !clipped;
    button.firstChild.textContent = open ? said.showLess : said.showAll;
    button.setAttribute("aria-expanded", String(open));
  }
}

// Focus the heading of a view if the button that drew the view again is gone.
export function focusHeading(box) {
  const heading = box.querySelector("h1");
  if (document.activeElement !== document.body || !heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

// A button with its key beside its name.
export function keyed(text, onclick, key, disabled = false) {
  const button = el("button", { type: "button", textContent: text, onclick, disabled });
  button.append(el("kbd", { textContent: key, ariaHidden: "true" }));
  button.setAttribute("aria-keyshortcuts", key);
  return button;
}

// Buttons for grades; null is "cannot tell" with the key 0.
export function gradeButtons(said, rubric, grades, give, pressed) {
  return grades.map((grade) => {
    const text = grade === null ? "?" : String(grade), meaning = grade === null ? said.unsure : rubric[grade];
    const button = el("button", { type: "button", className: `g${grade ?? 0}`, textContent: text, title: meaning || "", onclick: () => give(grade) });
    button.setAttribute("aria-label", meaning ? `${text}: ${meaning}` : `${said.grades} ${text}`);
    button.setAttribute("aria-keyshortcuts", grade === null ? "0" : text);
    if (grade === null) button.append(el("kbd", { textContent: "0", ariaHidden: "true" }));
    if (pressed !== undefined) button.setAttribute("aria-pressed", String(pressed === grade));
    return button;
  });
}

// The dialog of the keys: rows of keys, separated by spaces, and what they do.
export function keysDialog(rows) {
  document.getElementById("keys-list").replaceChildren(...rows.flatMap(([key, text]) => [el("dt", {}, ...key.split(" ").map((each) => el("kbd", { textContent: each }))), el("dd", { textContent: text })]));
  document.getElementById("keys").showModal();
}

// Instructions that are open until the reader folds them, which the browser stores under `name`.
export function instructions(name, title, ...children) {
  const box = el("details", { open: kept(name, true) }, el("summary", { textContent: title, onclick: () => keep(name, !box.open) }), ...children);
  return box;
}

// Fold instructions after the first answer on a phone, where they take the place of the text. Returns whether they were open.
export function foldOnPhone(name) {
  const first = narrow.matches && kept(name) === null;
  if (first) keep(name, false);
  return first;
}

// The meaning of each grade, or the judge's instructions if they do not list meanings.
export const meanings = (said, rubric, rules, unsure) => {
  const rows = [...[5, 4, 3, 2, 1].filter((grade) => rubric[grade]).map((grade) => [grade, rubric[grade]]), ...(unsure ? [["?", unsure]] : [])];
  return instructions("rubric", said.rubric,
    rules ? el("div", { className: "text rules", textContent: rules, tabIndex: 0 }) : null,
    el("dl", {}, ...rows.flatMap(([grade, text]) => [el("dt", { textContent: String(grade) }), el("dd", { textContent: text })])),
    rules ? null : el("p", { className: "soft", textContent: said.between }));
};

// Copy a link; where a page without TLS has no clipboard, the older command does it.
export async function copy(text) {
  try { await navigator.clipboard.writeText(text); return; } catch { /* the older command */ }
  const box = el("textarea", { value: text, className: "unseen" });
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}
