// Elements with properties and children. All data from the server becomes text.

export function el(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

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

// The text as nodes; a first line that is the title is bold, so that the title need not stand above it.
export function passageText(view, on) {
  if (!titled(view)) return marked(view.text, view.terms, on);
  const first = firstLine(view.text);
  return [el("strong", {}, ...marked(first, view.terms, on)), ...marked(view.text.slice(first.length), view.terms, on)];
}

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
    if (pressed !== undefined) button.setAttribute("aria-pressed", String(pressed === grade));
    return button;
  });
}

// The dialog of the keys: rows of keys, separated by spaces, and what they do.
export function keysDialog(rows) {
  document.getElementById("keys-list").replaceChildren(...rows.flatMap(([key, text]) => [el("dt", {}, ...key.split(" ").map((each) => el("kbd", { textContent: each }))), el("dd", { textContent: text })]));
  document.getElementById("keys").showModal();
}

// The meaning of each grade, or the judge's instructions if they do not list meanings.
export const meanings = (said, rubric, rules) =>
  el("details", {}, el("summary", { textContent: said.rubric }),
    rules ? el("div", { className: "text rules", textContent: rules, tabIndex: 0 }) : null,
    el("dl", {}, ...[5, 4, 3, 2, 1].filter((grade) => rubric[grade]).flatMap((grade) => [el("dt", { textContent: String(grade) }), el("dd", { textContent: rubric[grade] })])));

// Copy a link; where a page without TLS has no clipboard, the older command does it.
export async function copy(text) {
  try { await navigator.clipboard.writeText(text); return; } catch { /* the older command */ }
  const box = el("textarea", { value: text, className: "unseen" });
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}
