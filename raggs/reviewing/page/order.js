// Five passages in order, ties allowed: by keys, by tapping, or by dragging the rows of the list beside the texts.
import { clipTexts, el, foldOnPhone, instructions, keyed, narrow, passage, start } from "./el.js";
import { keep, kept } from "./local.js";
import { oneAtATime } from "./waiting.js";

const START = 6; // pixels that a pointer moves before it drags

export async function order(at) {
  const said = at.words();
  let found = await at.post("/api/order/next", at.me());
  const draft = `order.${at.me().who}`;
  let placed = [], past = []; // groups of ties, best first, of places on the page; and what was placed before each step
  const orders = oneAtATime(at, "/api/order");
  let whole = new Set(); // places of the passages that are shown in full
  let equal = false, since = performance.now();
  const sent = []; // lines of one's own orders here

  const count = () => placed.flat().length;
  const group = (place, groups = placed) => groups.findIndex((each) => each.includes(place));
  const without = (place) => placed.map((each) => each.filter((other) => other !== place)).filter((each) => each.length);

  // What was placed before a reload or in an order that was withdrawn, if the server shows the same passages.
  function restore() {
    const was = kept(draft), items = found.views.map((view) => view.item);
    const again = found.withdrawn.map((each) => each.map((item) => items.indexOf(item)));
    placed = again.length ? (again.flat().includes(-1) ? [] : again) : was && was.items.join() === items.join() ? was.placed : [];
    past = placed.flatMap((members, number) => members.map((_, nth) => ({ placed: [...placed.slice(0, number), ...(nth ? [members.slice(0, nth)] : [])], equal: nth > 0 })));
  }

  function save() {
    keep(draft, placed.length ? { items: found.views.map((view) => view.item), placed } : null);
  }

  function shown(focus) {
    save();
    if (!found.views.length) {
      at.box.replaceChildren(el("h1", { textContent: said.orderDone }), buttons());
      return;
    }
    at.box.replaceChildren(
      el("p", { className: "soft", textContent: said.ordered(found.done, found.left) }),
      instructions("how", said.how, el("p", { className: "soft", textContent: said.orderHow })),
      el("h1", { textContent: found.views[0].question, dir: "auto" }),
      el("div", { className: "beside ordering" }, el("div", {}, ...found.views.map(card)), tray()));
    clipTexts(at.box, whole, said);
    if (focus) document.getElementById(focus)?.focus({ preventScroll: focus.startsWith("row") });
  }

  function unfold(place) {
    if (!whole.delete(place)) whole.add(place);
    clipTexts(at.box, whole, said);
  }

  function unfoldAll() {
    const texts = [...at.box.querySelectorAll(".card .text")], clipped = [...texts.keys()].filter((place) => texts[place].classList.contains("clipped"));
    whole = new Set(clipped.length ? [...whole, ...clipped] : []);
    clipTexts(at.box, whole, said);
  }

  const rank = (place) => {
    const mine = group(place), others = mine < 0 ? [] : placed[mine].filter((each) => each !== place);
    if (mine < 0) return "";
    return `${said.rank(mine + 1)}${others.length ? `, ${said.equalTo(others.map((each) => each + 1).join(", "))}` : ""}`;
  };
  const label = (place) => [said.place(place + 1), rank(place)].filter(Boolean).join(": ");

  function card(view, place) {
    const button = el("button", { type: "button", id: `place-${place + 1}`, textContent: label(place), onclick: () => put(place, `place-${place + 1}`) });
    button.setAttribute("aria-pressed", String(group(place) >= 0));
    const unfolding = keyed(said.showAll, () => unfold(place), "a");
    unfolding.classList.add("whole", "plain");
    return el("article", { className: "card" }, button, ...passage(said, view, at.marking()), unfolding);
  }

  // --- the list: what is placed, then what is not ---------------------------------------------------------------------

  function tray() {
    const left = found.views.map((_, place) => place).filter((place) => group(place) < 0);
    const rows = placed.flatMap((members, number) => members.map((place, nth) => row(place, nth ? "=" : String(number + 1), nth > 0)));
    const box = el("section", { className: "tray act" },
      el("h2", { textContent: said.yourOrder, id: "your-order" }),
      el("div", { className: "rows placed" }, ...(rows.length ? rows : [el("p", { className: "soft", textContent: narrow.matches ? said.bestFirst : said.dropHere })])),
      el("div", { className: "rows open" }, ...left.map((place) => row(place, "", false))),
      buttons());
    box.setAttribute("aria-labelledby", "your-order");
    return box;
  }

  // The title of a passage, or its start if another passage here has the same title.
  const name = (view) => (found.views.filter((each) => each.title === view.title).length > 1 || !view.title ? start(view) || view.title : view.title);

  function row(place, sign, tied) {
    const view = found.views[place];
    const made = el("button", { type: "button", className: `row${tied ? " tied" : ""}`, id: `row-${place + 1}` },
      el("strong", { className: "sign", textContent: sign, ariaHidden: "true" }), el("span", { className: "number", textContent: String(place + 1) }),
      el("span", { className: "name", textContent: name(view), dir: "auto" }), el("span", { className: "unseen", textContent: rank(place) }));
    made.setAttribute("aria-keyshortcuts", "ArrowUp ArrowDown");
    made.title = name(view);
    made.addEventListener("click", () => put(place, made.id));
    made.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      nudge(place, step);
    });
    made.addEventListener("pointerdown", (event) => drag(event, made, place));
    return made;
  }

  function drag(event, made, place) {
    if (event.button !== 0 || orders.busy) return;
    const across = narrow.matches, where = (now) => (across ? now.clientX : now.clientY);
    const from = where(event), others = [...at.box.querySelectorAll(".row")].filter((each) => each !== made);
    let moving = false, aim = null;
    const stop = (apply) => {
      made.removeEventListener("pointermove", move);
      for (const [name, end] of ends) made.removeEventListener(name, end);
      document.removeEventListener("keydown", escape, true);
      if (!moving) return;
      made.addEventListener("click", (click) => click.stopImmediatePropagation(), { capture: true, once: true });
      setTimeout(() => { if (apply && aim) change(aim, made.id); else shown(made.id); }); // after the click that ends a drag
    };
    const move = (now) => {
      if (!moving && Math.abs(where(now) - from) < START) return;
      if (!moving) { moving = true; made.setPointerCapture(now.pointerId); made.classList.add("dragged"); }
      made.style.transform = `translate${across ? "X" : "Y"}(${where(now) - from}px)`;
      aim = target(where(now), place, others, across);
    };
    const escape = (key) => {
      if (key.key !== "Escape" || !moving) return;
      key.preventDefault();
      stop(false);
    };
    const ends = [["pointerup", () => stop(true)], ["pointercancel", () => stop(false)], ["lostpointercapture", (lost) => lost.target === made && stop(false)]];
    made.addEventListener("pointermove", move);
    for (const [name, end] of ends) made.addEventListener(name, end);
    document.addEventListener("keydown", escape, true);
  }

  // The groups as they would be if the row were dropped at a height, or on a narrow page at a distance from the left;
  // the middle of a row makes equal. Shows it, too.
  function target(at_, place, others, across) {
    const edges = (each) => { const box = each.getBoundingClientRect(); return across ? [box.left, box.right] : [box.top, box.bottom]; };
    const groups = without(place);
    const rows = others.filter((each) => each.closest(".placed")).map((each) => ({ each, at: group(Number(each.id.slice(4)) - 1, groups), edges: edges(each) }));
    for (const each of others) each.classList.remove("tie", "above", "below");
    at.box.querySelector(".rows.open").classList.remove("tie");
    const [open] = edges(at.box.querySelector(".rows.open"));
    if (at_ > open + 8 && group(place) < 0) return null;
    if (at_ > open + 8) { at.box.querySelector(".rows.open").classList.add("tie"); return groups; }
    for (const [number, { each, at: mine, edges: [start, end] }] of rows.entries()) {
      const last = number + 1 === rows.length;
      if (at_ > end && !last) continue;
      const quarter = (end - start) / 4;
      if (at_ < start + quarter && groups[mine][0] === Number(each.id.slice(4)) - 1) { each.classList.add("above"); return groups.toSpliced(mine, 0, [place]); }
      if (at_ > end - quarter && groups[mine].at(-1) === Number(each.id.slice(4)) - 1) { each.classList.add("below"); return groups.toSpliced(mine + 1, 0, [place]); }
      for (const row of rows) if (row.at === mine) row.each.classList.add("tie");
      return groups.with(mine, [...groups[mine], place]);
    }
    return [[place]];
  }

  // --- steps ------------------------------------------------------------------------------------------------------------

  function change(groups, focus) {
    past.push({ placed, equal });
    placed = groups;
    equal = false;
    at.trouble("");
    const place = focus ? Number(focus.split("-")[1]) - 1 : -1;
    if (place >= 0) at.tell(label(place));
    shown(focus);
  }

  function put(place, focus = `row-${place + 1}`) {
    if (orders.busy || place >= found.views.length || group(place) >= 0) return;
    change(equal && placed.length ? placed.with(-1, [...placed.at(-1), place]) : [...placed, [place]], focus);
  }

  // Half a step up or down: equal to the neighbour first, then past it.
  function nudge(place, step) {
    if (orders.busy) return;
    const mine = group(place), rest = without(place), focus = `row-${place + 1}`;
    if (mine < 0) { if (step < 0) put(place, focus); return; }
    if (placed[mine].length > 1) return change(rest.toSpliced(mine + (step > 0 ? 1 : 0), 0, [place]), focus);
    const next = mine + step;
    if (next < 0) return;
    if (next >= placed.length) return change(rest, focus);
    const into = step < 0 ? next : mine; // of `rest`, in which one's own group is gone
    change(rest.with(into, [...rest[into], place]), focus);
  }

  function tying() {
    if (orders.busy) return;
    equal = !equal && count() > 0;
    shown();
  }

  function buttons() {
    const tie = keyed(said.equal, tying, "=", !count() || !found.views.length);
    tie.setAttribute("aria-pressed", String(equal));
    return el("p", { className: "tools" }, tie, keyed(said.takeBack, back, "u"),
      keyed(said.send, send, "Enter", !found.views.length || count() < found.views.length));
  }

  function step(path, body, after) {
    return orders.ask(path, { ...at.me(), ...body }, (answer) => {
      found = answer;
      keep(draft, null);
      after();
      restore();
      whole = new Set();
      equal = false;
      since = performance.now();
      shown();
      window.scrollTo(0, 0);
    });
  }

  function back() {
    if (orders.busy) return;
    if (past.length) {
      ({ placed, equal } = past.pop());
      shown();
    } else step("/api/order/undo", { line: sent.at(-1) ?? null }, () => sent.pop()); // after a reload: the latest
  }

  function send() {
    const missing = found.views.length - count();
    if (!found.views.length) return;
    if (missing) { at.trouble(said.notSent(said.toPlace(missing))); return; }
    const items = found.views.map((view) => view.item);
    const body = { shown: items, order: placed.map((each) => each.map((place) => items[place])), seconds: Math.round(performance.now() - since) / 1000 };
    step("/api/order", body, () => { sent.push(found.line); foldOnPhone("how"); });
  }

  // On a row or card that is not placed, Enter places it as a click does.
  function enter(event) {
    if (count() < found.views.length && event.target.matches("button:not(.placed .row)")) return false;
    send();
  }

  at.redraw(shown);
  restore();
  shown();
  return { digit: (n) => put(n - 1), u: back, Backspace: back, "=": tying, a: unfoldAll, Enter: enter };
}
