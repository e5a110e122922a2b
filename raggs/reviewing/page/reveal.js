// The model's grade of a passage that the annotator has labelled, and another grade after that.
import { el, gradeButtons, keyed, passage, voice } from "./el.js";
import { oneAtATime } from "./waiting.js";

// `close` returns to grading; `changed(item, grade)` is called after a change.
export async function reveal(at, item, close, changed) {
  const said = at.words();
  const changes = oneAtATime(at, "/api/change");
  let found = await at.post("/api/model", { ...at.me(), item });

  function shown() {
    const view = found.view, on = at.marking();
    const grades = el("div", { className: "grades six" }, ...gradeButtons({ ...said, grades: said.change }, at.rubric, [1, 2, 3, 4, 5, null], change, found.own.grade));
    grades.setAttribute("role", "group");
    grades.setAttribute("aria-label", said.change);
    const back = Object.assign(keyed(said.goOn, close, "Enter"), { id: "go-on" });
    at.box.replaceChildren(
      el("h1", { textContent: view.question, dir: "auto" }),
      el("div", { className: "beside said-first" },
        el("section", { className: "said" },
          el("ul", { className: "voices" }, voice(said, found.own), ...found.words.map((word) => voice(said, word))),
          found.words.length ? null : el("p", { className: "soft", textContent: said.silent }),
          el("p", { className: "soft", textContent: said.seen })),
        el("article", {}, ...passage(said, view, on)),
        el("section", { className: "act" }, el("h2", { textContent: said.change }), grades, el("p", { className: "tools" }, back))));
    back.focus();
  }

  function change(grade) {
    return changes.ask("/api/change", { ...at.me(), item: found.view.item, grade }, (answer) => {
      found = answer;
      changed(found.view.item, found.own.grade);
      shown();
    });
  }

  at.redraw(shown);
  shown();
  return { digit: change, 0: () => change(null), Enter: close, Escape: close, m: close };
}
