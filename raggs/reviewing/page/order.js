// Five passages in order, equals allowed.
import { el } from "./el.js";

export async function order(at) {
  const said = at.words();
  let found = await at.post("/api/order/next", at.me());
  let placed = []; // groups of equals, best first, of places on the page
  let equal = false, busy = false, since = performance.now();
  const sent = []; // lines of one's own orders here

  const count = () => placed.flat().length;
  const group = (place) => placed.findIndex((each) => each.includes(place));

  function shown(focus) {
    if (!found.views.length) {
      at.box.replaceChildren(el("h1", { textContent: said.orderDone }), buttons());
      return;
    }
    at.box.replaceChildren(
      el("p", { className: "soft", textContent: `${said.ordered(found.done, found.left)}. ${said.orderHow}` }),
      el("h1", { textContent: found.views[0].question, dir: "auto" }),
      ...found.views.map(card), buttons());
    if (focus) document.getElementById(focus)?.focus();
  }

  function card(view, place) {
    const at = group(place), tied = at >= 0 && placed[at].length > 1;
    const state = at < 0 ? "" : `: ${said.rank(at + 1)}${tied ? " =" : ""}`;
    const button = el("button", { type: "button", id: `place-${place + 1}`, textContent: `${said.place(place + 1)}${state}`, onclick: () => put(place) });
    button.setAttribute("aria-pressed", String(at >= 0));
    return el("article", { className: "card" }, button, el("h2", { textContent: view.title, dir: "auto" }), el("div", { className: "text", textContent: view.text, dir: "auto" }));
  }

  function buttons() {
    const make = (text, act, disabled) => el("button", { type: "button", textContent: text, onclick: act, disabled });
    const tie = make(`${said.equal} (=)`, tying, !count() || !found.views.length);
    tie.setAttribute("aria-pressed", String(equal));
    return el("p", { className: "tools" }, tie, make(`${said.takeBack} (u)`, back, !count() && !sent.length),
      make(`${said.send} (Enter)`, send, !found.views.length || count() < found.views.length));
  }

  function put(place) {
    if (place >= found.views.length || group(place) >= 0) return;
    if (equal && placed.length) placed[placed.length - 1].push(place); else placed.push([place]);
    equal = false;
    shown(`place-${place + 1}`);
  }

  function tying() {
    equal = !equal && count() > 0;
    shown();
  }

  async function step(path, body, after) {
    if (busy) return;
    busy = true;
    try {
      found = await at.post(path, { ...at.me(), ...body });
      after();
      placed = [];
      equal = false;
      since = performance.now();
      at.trouble("");
      shown();
      window.scrollTo(0, 0);
    } catch (error) {
      at.trouble(error.status ? said.refused(error.message) : said.offline);
    }
    busy = false;
  }

  function back() {
    if (count()) {
      const last = placed[placed.length - 1];
      last.pop();
      if (!last.length) placed.pop();
      shown();
    } else if (sent.length) step("/api/order/undo", { line: sent[sent.length - 1] }, () => sent.pop());
  }

  function send() {
    if (!found.views.length || count() < found.views.length) return;
    const items = found.views.map((view) => view.item);
    const body = { shown: items, order: placed.map((each) => each.map((place) => items[place])), seconds: Math.round(performance.now() - since) / 1000 };
    step("/api/order", body, () => sent.push(found.line));
  }

  shown();
  return { digit: (n) => put(n - 1), u: back, Backspace: back, "=": tying, Enter: send };
}
