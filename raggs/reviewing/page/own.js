// The annotator's own labels, latest first and by query: filtered by grade and text, and opened again.
import { el, start } from "./el.js";
import { keep, kept } from "./local.js";

function time(at, language) {
  const then = new Date(at), today = then.toDateString() === new Date().toDateString();
  return then.toLocaleString(language === "en" ? "en-GB" : language, today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

export async function own(at) {
  const said = at.words();
  const filter = kept("filter", { grade: "", text: "" });
  const list = el("ol", { className: "labels" }), count = el("p", { className: "soft", role: "status" });
  const more = el("button", { type: "button", textContent: said.moreLabels, onclick: () => load(false) });
  const grade = el("select", { id: "by-grade", onchange: () => changed() }, ...["", "5", "4", "3", "2", "1", "0"].map((each) => el("option", { value: each, textContent: each === "" ? said.allGrades : each === "0" ? `? (${said.unsure})` : each, selected: each === filter.grade })));
  const text = el("input", { id: "by-text", type: "search", value: filter.text, oninput: () => { clearTimeout(timer); timer = setTimeout(changed, 250); } });
  let timer = 0, shown = 0, asked = 0, before = null; // the last label of the list

  function changed() {
    Object.assign(filter, { grade: grade.value, text: text.value });
    keep("filter", filter);
    load(true).catch((error) => at.trouble(error.status ? said.refused(error.message) : said.offline));
  }

  async function load(anew) {
    const turn = ++asked;
    const found = await at.post("/api/own", { ...at.me(), start: anew ? 0 : shown, grade: filter.grade === "" ? null : Number(filter.grade), text: filter.text });
    if (turn !== asked) return;
    if (anew) { list.replaceChildren(); before = null; }
    for (const each of found.labels) {
      const same = before?.view.qid === each.view.qid;
      list.append(row(each, same, same && before.view.title === each.view.title));
      before = each;
    }
    shown = list.children.length;
    count.textContent = found.total ? said.labels(shown, found.total) : filter.text || filter.grade !== "" ? said.noMatch : said.noLabels;
    more.hidden = shown >= found.total;
  }

  function row(each, same, sameTitle) {
    const { view } = each, title = !sameTitle && view.title ? [el("bdi", { textContent: view.title }), " · "] : [];
    return el("li", {}, same ? null : el("h2", { textContent: view.question, dir: "auto" }),
      el("button", { type: "button", className: "label", onclick: () => at.open(each) },
        el("strong", { className: `grade g${each.grade ?? 0}`, textContent: each.grade === null ? "?" : String(each.grade) }),
        el("span", {}, el("span", { className: "name", textContent: start(view) || said.untitled, dir: "auto" }),
          el("span", { className: "soft" }, ...title, el("bdi", { textContent: view.qid }), ` · ${time(each.at, document.documentElement.lang)}`),
          each.note ? el("span", { className: "noted", textContent: each.note, dir: "auto" }) : null)));
  }

  await load(true);
  at.box.replaceChildren(
    el("h1", { textContent: said.mine }), el("p", { className: "soft", textContent: said.mineHow }),
    el("div", { className: "filters" }, el("p", {}, el("label", { htmlFor: "by-grade", textContent: said.grades }), grade), el("p", {}, el("label", { htmlFor: "by-text", textContent: said.byText }), text)),
    count, list, more);
  const step = (by) => {
    const buttons = [...list.querySelectorAll("button")], now = buttons.indexOf(document.activeElement);
    buttons[Math.max(0, Math.min(buttons.length - 1, now + by))]?.focus();
  };
  return { j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), "/": () => text.focus() };
}
