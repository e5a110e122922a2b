// Steps that the server has not acknowledged yet: kept in the browser, sent one after the other, again until they arrive.
// The server notes a step once however often it comes, so that nothing is lost and nothing is doubled.

const LONGEST = 15_000; // milliseconds between attempts

export async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-raggs": "1" },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.error || String(answer.status)), { status: answer.status });
  return told;
}

export class Waiting {
  // tell(state, why): "ok", "offline", "closed" or "refused"; done(step, answer): a step arrived.
  constructor(who, tell, done) {
    this.place = `raggs.waiting.${who}`;
    this.tell = tell;
    this.done = done;
    this.memory = [];
    this.sending = null;
    this.pause = 500;
    this.running = false;
    this.timer = null;
  }

  get steps() {
    try {
      return JSON.parse(localStorage.getItem(this.place) || "[]");
    } catch {
      return this.memory;
    }
  }

  keep(steps) {
    this.memory = steps;
    try {
      localStorage.setItem(this.place, JSON.stringify(steps));
    } catch {
      /* a browser that keeps nothing: memory does */
    }
  }

  add(path, body) {
    const step = { id: crypto.getRandomValues(new Uint32Array(3)).join("-"), path, body };
    this.keep([...this.steps, step]);
    this.drain();
    return step.id;
  }

  // Take the latest step back if it is not on its way.
  unsent(id) {
    const steps = this.steps;
    const last = steps[steps.length - 1];
    if (!last || last.id !== id || this.sending === id) return false;
    this.keep(steps.slice(0, -1));
    return true;
  }

  async drain() {
    if (this.running) return;
    this.running = true;
    clearTimeout(this.timer);
    try {
      // Of several windows one sends at a time.
      const locks = navigator.locks;
      await (locks ? locks.request(this.place, () => this.send()) : this.send());
    } finally {
      this.running = false;
    }
  }

  async send() {
    for (let step = this.steps[0]; step; step = this.steps[0]) {
      this.sending = step.id;
      let answer = null;
      try {
        answer = await post(step.path, step.body);
      } catch (error) {
        this.sending = null;
        const wrong = error.status === 400 || error.status === 404 || error.status === 413;
        if (!wrong) {
          this.later(error.status === 403 ? "closed" : error.status ? "refused" : "offline", error.message);
          return;
        }
        this.drop(step);
        this.tell("refused", error.message);
        continue;
      }
      this.sending = null;
      this.drop(step);
      this.pause = 500;
      this.tell("ok", "");
      this.done(step, answer);
    }
  }

  drop(step) {
    this.keep(this.steps.filter((each) => each.id !== step.id));
  }

  later(state, why) {
    this.tell(state, why);
    this.timer = setTimeout(() => this.drain(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 2);
  }
}
