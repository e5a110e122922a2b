// Answers that the server has not confirmed: stored in the browser, sent in order, and sent again until they arrive.
// The server stores a repeated answer once.
import { keep, kept } from "./local.js";

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

export class Waiting {
  // tell(state, why): "ok", "offline", "closed" or "refused"; done(step, answer): a step arrived; refused(step, why).
  constructor(who, tell, done, refused) {
    this.place = `waiting.${who}`;
    Object.assign(this, { tell, done, refused, sending: null, pause: 500, running: false, timer: null });
    this.waiters = new Map(); // by step id: resolve and reject
    this.idlers = [];
  }

  get steps() { return kept(this.place, []); }

  add(path, body) {
    const step = { id: crypto.getRandomValues(new Uint32Array(3)).join("-"), path, body };
    keep(this.place, [...this.steps, step]);
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
    keep(this.place, steps.slice(0, -1));
    return true;
  }

  async drain() {
    if (this.running) return;
    this.running = true;
    clearTimeout(this.timer);
    try {
      // Of several windows, one sends at a time.
      const locks = navigator.locks;
      await (locks ? locks.request(`raggs.${this.place}`, () => this.sendAll()) : this.sendAll());
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
    keep(this.place, this.steps.filter((each) => each.id !== step.id));
  }

  later(state, why) {
    this.tell(state, why);
    this.timer = setTimeout(() => this.drain(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 2);
  }
}
