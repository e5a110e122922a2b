// An element with properties and children. All that comes from the server becomes text.

export function el(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

// What one said: the grade large, then who, and why.
export const voice = (said, word) =>
  el("li", { className: word.model ? "model" : "" },
    el("strong", { className: "grade", textContent: word.grade === null ? "?" : String(word.grade) }),
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

// What the grades mean, to be opened: grade by grade, or the judge's instructions as they are.
export const meanings = (said, rubric, rules) =>
  el("details", {}, el("summary", { textContent: said.rubric }),
    rules ? el("div", { className: "text rules", textContent: rules, tabIndex: 0 }) : null,
    el("dl", {}, ...[5, 4, 3, 2, 1].filter((grade) => rubric[grade]).flatMap((grade) => [el("dt", { textContent: String(grade) }), el("dd", { textContent: rubric[grade] })])));
