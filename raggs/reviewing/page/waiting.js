// Answers that the server has not confirmed: stored in the browser, sent in order, and sent again until they arrive.
// The server stores a repeated answer once. Each answer has a place of its own in the storage, so that two tabs that
// write at once keep both. A tab sends its own answers; those of a tab that was closed are sent by another one.
import { alone, keep, kept, names } from "./local.js";

const LONGEST = 15_000; // milliseconds between attempts
const TIMEOUT = 120_000; // milliseconds for an answer of the server

export async function post(path, body, timeout = TIMEOUT) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-raggs": "1" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(timeout),
  });
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.error || String(answer.status)), { status: answer.status });
  return told;
}

// The requests of a view, one at a time: meanwhile the view takes no key, and shows so. Requests to `path` are answers,
// which are sent until they arrive. `after` gets what the server answers, `failed` an error that was shown.
export function oneAtATime(at, path) {
  const said = at.words();
  const one = {
    busy: false,
    async ask(to, body, after, failed = () => {}) {
      if (one.busy) return;
      show(true);
      try {
        const found = await (to === path ? at.waiting.send(to, body) : at.post(to, body));
        at.trouble("");
        show(false);
        after(found);
      } catch (error) {
        at.trouble(error.status ? (to === path ? said.refused : said.unchanged)(error.message) : said.offline);
        await failed(error);
        show(false);
      }
    },
  };
  function show(busy) {
    one.busy = busy;
    at.box.classList.toggle("sending", busy);
    for (const each of at.box.querySelectorAll("textarea")) each.readOnly = busy;
  }
  return one;
}

const all = () => names("waiting.").map((name) => kept(name)).filter(Boolean).sort((one, other) => one.at - other.at);

// Send the answers that other annotators left in this tab, and those of other tabs as soon as they are closed.
export function takeOver(me, tab, queue) {
  const left = new Map(all().map((step) => [`${step.tab} ${step.who}`, step]));
  for (const { tab: other, who } of left.values()) {
    if (other !== tab) alone(other, () => queue(who, other).idle());
    else if (who !== me) queue(who).drain();
  }
}

export class Waiting {
  // tell(state, why): "waiting", "ok", "offline", "closed" or "refused"; done(step, answer): a step arrived; refused(step, why).
  constructor(who, tab, tell, done, refused) {
    Object.assign(this, { who, tab, tell, done, refused, sending: null, pause: 500, running: false, timer: null, last: 0 });
    this.waiters = new Map(); // by step id: resolve and reject
    this.idlers = [];
  }

  get steps() { return all().filter((step) => step.who === this.who && step.tab === this.tab); }

  add(path, body) {
    this.last = Math.max(Date.now(), this.last + 0.001); // also several in the same millisecond have an order
    const step = { id: crypto.getRandomValues(new Uint32Array(3)).join("-"), at: this.last, who: this.who, tab: this.tab, path, body };
    keep(`waiting.${step.id}`, step);
    this.tell("waiting", "");
    this.drain();
    return step.id;
  }

  // As `add`; the promise gets the answer, or the refusal. It waits as long as the server does not answer.
  send(path, body) {
    const id = this.add(path, body);
    return new Promise((resolve, reject) => this.waiters.set(id, { resolve, reject }));
  }

  // A promise that all steps have arrived.
  idle() {
    return this.steps.length ? new Promise((resolve) => { this.idlers.push(resolve); this.drain(); }) : Promise.resolve();
  }

  // Remove the latest step if it is not on its way.
  unsent(id) {
    const steps = this.steps;
    if (steps.at(-1)?.id !== id || this.sending === id) return false;
    this.drop(steps.at(-1));
    return true;
  }

  async drain() {
    if (this.running) return;
    this.running = true;
    clearTimeout(this.timer);
    try {
      await this.sendAll();
    } finally {
      this.running = false;
    }
    if (!this.steps.length) for (const resolve of this.idlers.splice(0)) resolve();
  }

  async sendAll() {
    for (let step = this.steps[0]; step; step = this.steps[0]) {
      this.sending = step.id;
      try {
        const answer = await post(step.path, step.body, 20_000);
        this.drop(step);
        this.pause = 500;
        this.tell("ok", "");
        this.done(step, answer);
        this.waiters.get(step.id)?.resolve(answer);
      } catch (error) {
        this.sending = null;
        if (![400, 404, 413].includes(error.status)) {
          this.later(error.status === 403 ? "closed" : error.status ? "refused" : "offline", error.message);
          return;
        }
        this.drop(step);
        this.tell("ok", "");
        const waiter = this.waiters.get(step.id);
        if (waiter) waiter.reject(error); else this.refused(step, error.message);
      }
      this.waiters.delete(step.id);
      this.sending = null;
    }
  }

  drop(step) {
    keep(`waiting.${step.id}`, null);
  }

  later(state, why) {
    this.tell(state, why);
    this.timer = setTimeout(() => this.drain(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 2);
  }
}
