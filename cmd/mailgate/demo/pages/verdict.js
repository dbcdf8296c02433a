// What mailgate answered, made visible: the countdown, the limit behind it, and every limit.

import { clock, span, spoken } from "./lengths.js";

const at = (id) => document.getElementById(id);
let draw = () => {}; // draws the current wait
let about = ""; // email or code: what the answer on the page is about
let opened = false; // the JSON, since there is nothing else to show

const words = {
  email: { ready: "to send", statuses: { 429: "not yet" } },
  code: { ready: "to check", statuses: { 200: "verified", 410: "no valid code", 422: "wrong code", 429: "too many guesses" } },
};

// showVerdict draws an answer about an email or a code, with all of its wait still to come.
export function showVerdict(status, body, what = "email") {
  about = what;
  at("said-empty").hidden = true;
  showStatus(status, body);
  at("json").textContent = JSON.stringify(body, null, 2);
  const hasVerdict = Array.isArray(body.limits);
  at("verdict").hidden = false;
  at("verdict").classList.toggle("bare", !hasVerdict);
  at("verdict").classList.toggle("denied", status === 429);
  at("operator").hidden = !hasVerdict;
  const details = document.querySelector("#verdict details");
  if (!hasVerdict) {
    opened ||= !details.open;
    details.open = true;
    draw = () => {};
    return;
  }
  details.open &&= !opened; // the visitor has not opened it
  opened = false;
  if (what === "email") { // an alert beside the field announces a code
    announceVerdict(status, body);
  }
  const bars = body.limits.map(tierLine);
  at("tiers").replaceChildren(...bars.map((bar) => bar.line));
  const window = body.limits.find((tier) => tier.name === body.limit)?.window_ms ?? 1;
  const limit = limitOf(body);
  draw = (left) => {
    showClock(left, left / window, limit);
    bars.forEach((bar) => bar.show(body.wait_ms - left));
  };
  draw(body.wait_ms);
}

// showRest draws how much of the wait is left, as the countdown beside a button counts it.
export function showRest(left, what) {
  if (what === about) {
    draw(left);
  }
}

// hideVerdict forgets the last answer.
export function hideVerdict() {
  draw = () => {};
  for (const id of ["verdict", "status", "operator"]) {
    at(id).hidden = true;
  }
  at("said-empty").hidden = false;
}

// showPending replaces the status of the answer before while the next one is awaited.
export function showPending() {
  at("status").textContent = "…";
  at("status").className = "pill";
}

function showStatus(status, body) {
  const pill = at("status");
  const word = body.status === "sent" ? "sent" : body.errors ? "invalid" : words[about].statuses[status] ?? "";
  pill.hidden = false;
  pill.textContent = `${status || "no answer"} ${word}`.trim();
  pill.className = `pill ${status === 200 ? "good" : status === 429 ? "wait" : "bad"}`;
}

function showClock(left, share, limit) {
  const over = left === 0;
  at("ring").style.strokeDashoffset = String(100 - 100 * Math.min(1, share));
  at("left").textContent = over ? "Ready" : clock(left);
  at("why").textContent = over ? words[about].ready : limit;
  at("left").parentElement.parentElement.classList.toggle("over", over);
}

// limitOf names the limit that decides, with its rule where the limits on the page are not the rule's.
const limitOf = ({ limit, rule }) => `${limit} limit${rule === "mailbox" || rule === "guesses" ? "" : ` of ${rule}`}`;

// tierLine is one limit: its name, what is left of it, and when it opens.
function tierLine(tier) {
  const line = document.createElement("li");
  const name = document.createElement("span");
  const state = document.createElement("span");
  const bar = document.createElement("span");
  name.className = "name";
  state.className = "state";
  bar.className = "meter";
  const rule = document.createElement("small");
  rule.textContent = `${tier.limit} in ${span(tier.window_ms)}`;
  name.append(tier.name, rule);
  for (let i = 0; i < Math.min(tier.limit, 20); i++) {
    const step = document.createElement("i");
    step.className = i < (tier.limit - tier.remaining) * Math.min(1, 20 / tier.limit) ? "used" : "";
    bar.append(step);
  }
  line.append(name, bar, state);
  const show = (gone) => {
    const wait = Math.max(0, tier.wait_ms - gone);
    const free = tier.remaining > 0 || wait === 0;
    line.classList.toggle("full", !free);
    state.textContent = tier.remaining > 0 ? `${tier.remaining} left` : free ? "free again" : `next in ${clock(wait)}`;
  };
  return { line, show };
}

function announceVerdict(status, body) {
  const wait = body.wait_ms > 0 ? ` Next email in ${spoken(body.wait_ms)}: ${limitOf(body)}.` : "";
  const outcome = status === 429 ? "Not sent." : body.status === "sent" ? "Sent." : "";
  if (outcome + wait !== "") {
    announce(outcome + wait);
  }
}

// announce says something to screen readers.
export function announce(text) {
  at("announce").textContent = text;
}
