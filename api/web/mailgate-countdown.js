// <mailgate-countdown> counts down to the next email, beside the button that requests it, and solves challenges.
// mailgate-countdown.d.ts says how to use it.
//
// It never ends early: it counts on the monotonic clock from the moment an answer arrived, and
// asks the server again whenever that clock may have stopped. There are two exceptions: if the
// server cannot be reached after a reload, the visitor's clock decides; and without a token, or
// in a hidden page, a wait of many hours follows the monotonic clock, which drifts by 50 ppm.

const tag = "mailgate-countdown";
const units = { day: 864e5, hour: 36e5, minute: 6e4, second: 1e3 };
const margin = 100; // a browser may blur its clock by as much, and clocks drift
const jump = 2000; // if the clocks differ by more, one was set or the machine slept
const stale = 300e3; // ask again after
const patience = 5e3; // with a worker that does not answer
const marks = ["aria-disabled", "data-mailgate-held"]; // of the held button
const moments = ["click", "storage", "visibilitychange", "pageshow", "online"];
const words = "Zero One Two Three Four Five Six Seven Eight Nine Ten".split(" ");

const amount = (lang, n, unit) => new Intl.NumberFormat(lang, { style: "unit", unit, unitDisplay: "long" }).format(n);
const parted = () => Date.now() - performance.now();
const isWait = (wait) => Number.isFinite(wait) && wait >= 0;
// FNV-1a: the visitor's storage has a checksum of the address, not the address.
const mark = (text) => ([...text].reduce((sum, c) => Math.imul(sum ^ c.codePointAt(), 16777619), 2166136261) >>> 0).toString(36);

// work finds the number up to maxnumber that gives the challenge with the salt before it. Its text runs in a worker.
async function work({ algorithm, challenge, salt, maxnumber }, tell) {
  const encoder = new TextEncoder();
  const wanted = challenge.match(/../g).map((byte) => parseInt(byte, 16));
  for (let n = 0; n <= maxnumber; n++) {
    const sum = new Uint8Array(await crypto.subtle.digest(algorithm, encoder.encode(salt + n)));
    if (wanted.every((byte, i) => sum[i] === byte)) return n;
    if (n % 200 === 0 && await tell(n / maxnumber) === false) return -1;
  }
  return -1;
}

function workBeside(asked, tell, run) {
  return new Promise((resolve, reject) => {
    const code = `onmessage=async({data})=>postMessage({n:await(${work})(data,(done)=>postMessage({done})).catch(()=>-1)})`;
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const worker = run.worker = new Worker(url);
    const giveUp = () => {
      worker.terminate();
      reject();
    };
    let silent = setTimeout(giveUp, patience);
    worker.onmessage = ({ data: { n, done } }) => {
      clearTimeout(silent);
      if (n === undefined) {
        silent = setTimeout(giveUp, patience);
        return tell(done);
      }
      worker.terminate();
      resolve(n);
    };
    worker.onerror = reject; // the page's policy
    worker.postMessage(asked);
    URL.revokeObjectURL(url);
  });
}

// spoken is "12 minutes, 30 seconds"; clock is 0:42, 12:30 or 23:59:59.
function spoken(lang, seconds) {
  let rest = seconds * 1e3;
  const parts = [];
  for (const unit in units) {
    const n = Math.floor(rest / units[unit]);
    rest %= units[unit];
    if (n) parts.push(amount(lang, n, unit));
  }
  return new Intl.ListFormat(lang, { type: "unit" }).format(parts);
}

function clock(seconds) {
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  if (seconds >= 3600) parts.unshift(Math.floor(seconds / 3600));
  return parts.map((n, i) => String(n).padStart(i && 2, "0")).join(":");
}

// The nearest lang attribute may be outside of the tree that the element is in.
function languageOf(element) {
  for (let at = element; at?.closest; at = at.getRootNode().host) {
    const named = at.closest("[lang]");
    if (named) return named.lang;
  }
  return document.documentElement.lang;
}

function make(parent, attributes) {
  const element = document.createElement("span");
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  parent.append(element);
  return element;
}

const css = `:host{display:block}:host([hidden]){display:none}
:host([waiting]) [part=text]{display:block;padding-block:.5em;font-size:.875em;font-variant-numeric:tabular-nums}
[part=wait]{white-space:nowrap}
.aloud{position:relative}
[role=status]{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}`;

// The style of a held button, which any rule of the page's overrides.
const heldCSS = ":where([data-mailgate-held]){opacity:.5;cursor:not-allowed}";

// On a server that renders, the module loads and there are no elements.
export class MailgateCountdown extends (globalThis.HTMLElement ?? class {}) {
  static observedAttributes = ["src", "wait-ms", "mailbox", "name", "for", "challenge"];
  static texts = {
    en: {
      limit({ n, count, unit, span, plural }) {
        const window = count !== 1 ? span : (unit === "hour" ? "an " : "a ") + unit;
        return plural === "one"
          ? `One email ${count !== 1 ? "every " : ""}${window}.`
          : `${words[n] ?? n} emails in ${window}: limit reached.`;
      },
      wait: "Next in {time}.",
      end: "You can request another email now.",
      check: "Security check: {done}",
      checked: "Security check done.",
      unchecked: "The security check failed. Reload the page to try again.",
      insecure: "The security check works on secure (https) pages only.",
    },
    zh: {
      limit: ({ n, count, span }) =>
        n > 1 ? `${span}内最多 ${n} 封邮件，已达上限。` : `每${count > 1 ? span : span.replace(/^1\s*/, "")}限发一封邮件。`,
      wait: "{time}后可再次发送。",
      end: "现在可以再次发送。",
      check: "安全检查：{done}",
      checked: "安全检查已完成。",
      unchecked: "安全检查失败，请刷新页面后重试。",
      insecure: "安全检查只能在 https 页面上进行。",
    },
  };

  #state = null; // the wait, as it is stored
  #end = 0; // when it is over, by performance.now()
  #sure = true; // false until the server has confirmed a stored wait
  #guess = false; // the server did not answer, so the visitor's clock decides
  #free = false; // by that clock the wait is over: the button is released, and the server still asked
  #placed = false; // in the page, its attributes read
  #parted = 0;
  #ask = 0; // when to ask again
  #failed = 0;
  #asking = null;
  #given = true; // attributes were set that are not read yet
  #seconds = 0;
  #ticked = 0; // the seconds of the last tick
  #aloud = 0; // the seconds when something was said aloud
  #timer = 0;
  #held = null;
  #solving = null; // the challenge that is being solved
  #asked = null; // the one that was solved last
  #limit; #wait; #status;
  #root; // of the tree that it is in
  #heldSheet;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet(); // constructed, so a strict policy lets it pass
    sheet.replaceSync(css);
    root.adoptedStyleSheets = [sheet];
    root.append(document.createElement("slot"));
    const text = make(make(root, { part: "text", role: "timer" }), { dir: "auto" });
    this.#limit = make(text, { part: "limit" });
    text.append(" ");
    this.#wait = make(text, { part: "wait" });
    this.#status = make(make(root, { class: "aloud" }), { role: "status" });
  }

  get waiting() { return !!this.#solving || (!!this.#state && !this.#free); }
  get remaining() { return this.#state ? Math.max(0, this.#end - performance.now()) : 0; }
  get limits() { try { return JSON.parse(this.getAttribute("limits")); } catch { return null; } }
  set limits(tiers) { this.setAttribute("limits", JSON.stringify(tiers)); }
  get challenge() { try { return JSON.parse(this.getAttribute("challenge")); } catch { return null; } }
  set challenge(asked) { asked ? this.setAttribute("challenge", JSON.stringify(asked)) : this.removeAttribute("challenge"); }
  get button() {
    const id = this.htmlFor;
    return id ? this.getRootNode().getElementById?.(id) : this.querySelector("button, [type=submit]");
  }

  connectedCallback() {
    for (const name of [...Object.keys(attributes), "limits", "challenge"]) {
      if (!Object.hasOwn(this, name)) continue; // set before there was an element
      const value = this[name];
      delete this[name];
      this[name] = value;
    }
    for (const type of moments) addEventListener(type, this, true);
    this.#root = this.getRootNode();
    this.#root.addEventListener("click", this, true); // the window gets no events of a closed tree
    this.#heldSheet = new this.ownerDocument.defaultView.CSSStyleSheet();
    this.#heldSheet.replaceSync(heldCSS);
    this.#root.adoptedStyleSheets = [this.#heldSheet, ...this.#root.adoptedStyleSheets];
    const { src } = this;
    let kept = this.#read();
    if (kept && !kept.src && kept.until <= Date.now()) { // over, and no server to ask
      this.#forget();
      kept = null;
    }
    // Attributes count where nothing newer is stored.
    if (this.#given && (src ? src !== kept?.src : !kept && !this.#state)) this.#fromAttributes(false);
    else if (kept && !this.#remembers(kept)) this.#adopt(kept);
    else if (this.#state) { // it was moved within the page
      this.#tick();
      this.refresh();
    }
    this.#given = false;
    this.#placed = true;
    this.#solve();
    if (this.waiting || !this.hasAttribute("waiting")) return;
    this.#held = this.button; // a copy of what waited, button and all
    this.#hold(null);
  }

  disconnectedCallback() {
    this.#drop();
    for (const type of moments) removeEventListener(type, this, true);
    this.#root.removeEventListener("click", this, true);
    this.#root.adoptedStyleSheets = this.#root.adoptedStyleSheets.filter((sheet) => sheet !== this.#heldSheet);
    clearTimeout(this.#timer);
    this.#hold(null);
    this.#placed = false;
  }

  attributeChangedCallback(name, before, now) {
    if (name === "challenge") {
      if (this.#placed && before !== now) this.#solve();
      return;
    }
    if (["mailbox", "name", "for"].includes(name)) {
      if (before === now) return;
      if (name === "mailbox" && (this.#placed || this.#state)) this.#stop(); // what the other mailbox waits for stays remembered
      if (!this.#placed) return;
      const kept = !this.#state && this.#read();
      if (kept) this.#adopt(kept);
      else if (this.#state) this.#tick(); // it may be another button that is held
      return;
    }
    if (this.#given) return;
    this.#given = true; // once for all that change together
    queueMicrotask(() => {
      this.#given = !this.isConnected;
      if (!this.#given) this.#fromAttributes(true);
    });
  }

  update(answer) {
    const wait = answer?.wait_ms;
    if (!isWait(wait)) return false;
    this.challenge = answer.challenge;
    if (answer.challenge) return true; // it need not wait
    const { countdown: token, limit, limits, retry_at: retry } = answer;
    // Where another rule refuses, its limit is not one of the mailbox's, whatever the names.
    const other = limits?.some?.(({ name, wait_ms = wait }) => name === limit && wait_ms !== wait);
    // Without a token of its own it may be another mailbox's, unless the moment is the same.
    const src = token ? (this.base ?? "/countdown/") + token : retry && retry === this.#state?.retry ? this.#state.src : "";
    const again = !!(answer.replayed && src); // its wait is that of an earlier moment
    this.#begin({ src, limit, limits, retry, other }, wait, !again);
    this.#save();
    if (again) this.refresh();
    return true;
  }

  async refresh() {
    const asked = this.#state;
    if (!asked?.src || this.#asking === asked) return;
    this.#asking = asked;
    const since = performance.now();
    let answer, expired;
    try {
      const response = await fetch(asked.src, { cache: "no-store", signal: AbortSignal.timeout(5e3) });
      if (response.ok) answer = await response.json();
      else expired = [400, 404, 410].includes(response.status);
    } catch {} // continues with what it knows
    if (this.#asking === asked) this.#asking = null;
    if (this.#state !== asked) return; // something newer came in between
    const known = this.#remembers(this.#read()); // not what another tab waits for by now
    if (expired) asked.src = "";
    if (isWait(answer?.wait_ms)) {
      const { rule, limit, retry_at: retry, wait_ms: wait } = answer;
      this.#failed = 0;
      this.#ask = performance.now() + stale;
      if (since + wait > this.#end) asked.retry = null; // the server's clock was set back
      this.#begin({ ...asked, limit, retry, other: rule !== "mailbox" }, wait, true);
      if (known) this.#save();
      return;
    }
    if (known && !asked.src) this.#save();
    this.#ask = performance.now() + Math.min(60, 2 ** this.#failed++) * 1e3;
    if (this.#free ? asked.src : this.#sure) return;
    this.#guess = true;
    const left = Math.max(0, this.remaining - margin);
    if (left) this.#begin({ ...asked, retry: null }, left, true, true);
    else this.#over();
  }

  reset() {
    this.#forget();
    this.challenge = null;
    this.#stop();
  }

  handleEvent(event) {
    if (event.type === "click") {
      if (!this.waiting || !event.composedPath().includes(this.button)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.#write(this.#status, true, ...(this.#solving ? ["check"] : this.#seconds ? ["wait"] : []));
    } else if (event.type === "storage") {
      if (event.key !== this.#key) return;
      const kept = this.#read();
      if (!kept) this.refresh();
      else if (!kept.src ? !this.#knows(kept) : kept.src !== this.#state?.src) this.#adopt(kept);
      else if (kept.until - Date.now() > this.remaining + jump) this.refresh(); // else it asks in its own time
    } else if (!document.hidden && event.persisted !== false) {
      const kept = this.#read();
      if (kept && !this.#remembers(kept)) this.#adopt(kept);
      else this.refresh();
    }
  }

  // Solves the challenge beside the page, or where its policy has no workers in between its other work.
  async #solve() {
    const text = this.getAttribute("challenge");
    if (text === this.#asked) return;
    this.#drop();
    this.#fill("");
    this.#asked = text;
    if (!text) return;
    const { challenge } = this;
    const asked = challenge?.altcha ?? challenge;
    const run = { done: 0 };
    this.#stop();
    this.#solving = run;
    const tell = (done) => {
      if (this.#solving !== run) return false;
      run.done = done;
      this.#write(this.#wait, false, "check");
    };
    this.#hold(this.button);
    this.#write(this.#status, true, "check");
    let n = -1;
    try {
      n = await workBeside(asked, tell, run).catch(() => work(asked, (done) => new Promise((go) => setTimeout(() => go(tell(done))))));
    } catch {} // without crypto.subtle, or no challenge
    if (this.#solving !== run) return;
    this.#drop();
    this.#asked = text;
    if (n < 0) {
      for (const part of [this.#wait, this.#status]) this.#write(part, false, globalThis.isSecureContext ? "unchecked" : "insecure");
      return this.#emit("unsolved");
    }
    const solution = btoa(JSON.stringify({ ...asked, number: n }));
    this.#write(this.#status, true, "checked");
    this.#fill(solution);
    this.#emit("solved", { challenge: solution });
  }

  #drop() {
    const run = this.#solving;
    if (!run) return;
    this.#asked = this.#solving = null;
    run.worker?.terminate();
    this.#hold(null);
    this.#clear();
  }

  #fill(solution) {
    const field = this.button?.form?.elements.namedItem("challenge");
    if (field) field.value = solution;
  }

  get #key() {
    const { mailbox } = this;
    return `${tag}:${this.name ?? this.htmlFor ?? ""}${mailbox ? ":" + mark(mailbox) : ""}`;
  }
  #read() {
    try {
      const kept = JSON.parse(localStorage[this.#key]);
      return isWait(kept.wait) && kept.until > 0 ? kept : null;
    } catch { return null; }
  }
  #save() { try { if (this.#state) localStorage[this.#key] = JSON.stringify(this.#state); } catch {} }
  #forget() { try { localStorage.removeItem(this.#key); } catch {} }

  // Whether it is the wait that is known here, of a tab that cannot ask any more.
  #knows(kept) { return !kept.src && !!kept.retry && kept.retry === this.#state?.retry; }
  #remembers(kept) { return !!kept && (kept.src === this.#state?.src || this.#knows(kept)); }

  // The visitor's clock is trusted only until the server has answered.
  #adopt(kept) {
    this.#begin(kept, Math.max(0, Math.min(kept.wait, kept.until - Date.now())), !kept.src);
    this.refresh();
  }

  // The page may come from a cache, so the server is asked about its attributes.
  #fromAttributes(sure) {
    const { src, limit, limits } = this;
    const wait = isWait(Number(this.waitMs)) ? Number(this.waitMs) : 0;
    if (!src && !wait) return;
    this.#begin({ src, limit, limits }, wait, !src || (sure && wait > 0));
    this.#save();
    if (!this.#sure) this.refresh();
  }

  #begin(state, wait, sure, guess = false) {
    const old = this.#sure && !this.#free ? this.#state : null;
    let end = performance.now() + wait + (wait && margin);
    this.#guess = guess;
    if (sure && !wait) return this.#over();
    this.#free = false;
    if (old?.retry && old.retry === state.retry) end = Math.min(end, this.#end);
    const isNew = sure && !(old && old.limit === state.limit && Math.abs(end - this.#end) < jump);
    const begun = this.#state = { ...state, wait, until: Date.now() + wait };
    this.#end = end;
    this.#sure = sure;
    this.#parted = parted();
    this.#ask ||= performance.now() + stale;
    this.#seconds = 0;
    if (isNew) this.#ticked = 0;
    this.#tick();
    if (!isNew || this.#state !== begun) return; // a listener of the tick has updated or reset it
    this.#write(this.#status, true, "limit", "wait");
    this.#emit("start", { limit: state.limit, waitMs: wait });
  }

  #tick() {
    clearTimeout(this.#timer);
    const left = this.remaining;
    if (!left && this.#sure && !this.#free) return this.#over();
    const shown = Math.round(left - margin); // to the millisecond, lest a fraction make a second
    const seconds = Math.max(1, Math.ceil(shown / 1e3));
    this.#hold(this.#free ? null : this.button);
    const next = seconds !== this.#seconds && left > 0;
    if (next) {
      this.#seconds = seconds;
      this.#write(this.#limit, false, "limit");
      this.#write(this.#wait, false, "wait");
      if (seconds < this.#aloud - 5) this.#status.textContent = ""; // it was heard, and is out of date
    }
    if (Math.abs(parted() - this.#parted) > jump || (performance.now() > this.#ask && !document.hidden)) {
      this.#parted = parted();
      this.refresh();
    }
    if (this.isConnected) this.#timer = setTimeout(() => this.#tick(), shown > 0 ? shown % 1e3 || 1e3 : left || 1e3);
    if (!next || !this.#sure || seconds === this.#ticked) return;
    this.#ticked = seconds;
    this.#emit("tick", { seconds }); // last: a listener may update or reset
  }

  #over() {
    const begun = this.waiting && this.#sure;
    if (this.#guess && this.#state.src) {
      this.#free = this.#sure = true;
      this.#clear();
      this.#tick();
    } else {
      if (this.#remembers(this.#read())) this.#forget();
      this.#stop();
    }
    if (!begun) return;
    this.#write(this.#status, true, "end");
    this.#emit("end");
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#state = null;
    this.#sure = true;
    this.#guess = this.#free = false;
    this.#ask = this.#failed = 0;
    this.#hold(null);
    this.#clear();
  }

  #clear() {
    this.#seconds = this.#ticked = 0;
    for (const part of [this.#limit, this.#wait, this.#status]) part.textContent = "";
  }

  // aria-disabled keeps the focus where it is; the click is caught on its way.
  #hold(button) {
    if (this.#held !== button) for (const name of marks) this.#held?.removeAttribute(name);
    this.#held = button;
    for (const name of marks) button?.setAttribute(name, "true");
    this.toggleAttribute("waiting", this.waiting);
  }

  // Words that are not the page's own say which language they are in.
  #write(part, aloud, ...what) {
    if (aloud) this.#aloud = this.#seconds;
    let lang = (languageOf(this) || navigator.language).toLowerCase();
    while (lang && !MailgateCountdown.texts[lang]?.[what[0] ?? "wait"]) lang = lang.replace(/-?[^-]*$/, "");
    lang ||= "en";
    if (what.some((one) => this.hasAttribute(`${one}-text`))) part.removeAttribute("lang");
    else part.lang = lang;
    part.textContent = what.map((one) => this.#say(one, lang, aloud)).join(" ");
  }

  #say(what, lang, aloud) {
    const { texts } = MailgateCountdown;
    const values = { time: aloud ? spoken(lang, this.#seconds) : clock(this.#seconds) };
    if (this.#solving) values.done = new Intl.NumberFormat(lang, { style: "percent" }).format(this.#solving.done);
    const { limit, limits, other } = this.#state ?? {};
    const tier = other ? null : (limits ?? this.limits)?.find?.(({ name }) => name === limit);
    if (what === "limit" && !tier) return "";
    if (tier) {
      const [unit, size] = Object.entries(units).find(([, size]) => tier.window_ms % size === 0) ?? ["second", 1e3];
      const n = tier.limit, count = tier.window_ms / size, plural = new Intl.PluralRules(lang).select(n);
      Object.assign(values, { n, count, unit, plural, span: amount(lang, count, unit) });
    }
    const text = this.getAttribute(`${what}-text`) ?? texts[lang][what];
    return text.call ? text(values) : text.replace(/{(\w+)}/g, (all, name) => values[name] ?? all);
  }

  #emit(what, detail) {
    this.dispatchEvent(new CustomEvent(`mailgate-${what}`, { bubbles: true, composed: true, detail }));
  }
}

const attributes = {
  src: "src", waitMs: "wait-ms", limit: "limit", name: "name", mailbox: "mailbox", htmlFor: "for", base: "base",
};
for (const [name, attribute] of Object.entries(attributes)) {
  Object.defineProperty(MailgateCountdown.prototype, name, {
    configurable: true,
    get() { return this.getAttribute(attribute); },
    set(value) { value == null ? this.removeAttribute(attribute) : this.setAttribute(attribute, value); },
  });
}
const elements = globalThis.customElements;
if (elements && !elements.get(tag)) elements.define(tag, MailgateCountdown);
