// What the model said of a passage that one has graded, and another grade after that.
import { el, keyed, voice } from "./el.js";

// `close` goes back to grading; `changed(item, line)` is told the line that holds now.
export async function reveal(at, item, close, changed) {
  const said = at.words();
  let found = await at.post("/api/model", { ...at.me(), item }), busy = false;

  function shown() {
    const view = found.view;
    const grade = (each) => {
      const text = each === null ? "?" : String(each), meaning = each === null ? said.unsure : at.rubric[each];
      const button = el("button", { type: "button", textContent: text, title: meaning || "", onclick: () => change(each) });
      button.setAttribute("aria-label", meaning ? `${text}: ${meaning}` : `${said.change} ${text}`);
      button.setAttribute("aria-pressed", String(found.own.grade === each));
      return button;
    };
    const grades = el("div", { className: "grades six" }, ...[1, 2, 3, 4, 5, null].map(grade));
    grades.setAttribute("role", "group");
    grades.setAttribute("aria-label", said.change);
    const back = Object.assign(keyed(said.goOn, close, "Enter"), { id: "go-on" });
    at.box.replaceChildren(
      el("h1", { textContent: view.question, dir: "auto" }),
      el("div", { className: "beside" },
        el("article", {}, el("h2", { textContent: view.title || said.untitled, dir: "auto" }), el("div", { className: "text", textContent: view.text, dir: "auto" })),
        el("section", {},
          el("ul", { className: "voices" }, voice(said, found.own), ...found.words.map((word) => voice(said, word))),
          found.words.length ? null : el("p", { className: "soft", textContent: said.silent }),
          el("p", { className: "soft", textContent: said.seen }),
          el("div", { className: "act" }, el("h2", { textContent: said.change }), grades, el("p", { className: "tools" }, back)))));
    back.focus();
  }

  async function change(grade) {
    if (busy) return;
    busy = true;
    try {
      found = await at.post("/api/change", { ...at.me(), item: found.view.item, grade });
      changed(found.view.item, found.line);
      at.trouble("");
      shown();
    } catch (error) {
      at.trouble(error.status ? said.refused(error.message) : said.offline);
    }
    busy = false;
  }

  shown();
  return { digit: change, "?": () => change(null), Enter: close, Escape: close, m: close };
}
