// Looking a mailbox up and resetting it.

import { writeAddress } from "./address.js";
import { busy, free, isBusy } from "./busy.js";
import { announce, ask, errorText } from "./console_ask.js";
import { drawLanes } from "./console_lanes.js";
import { place, placed } from "./console_place.js";
import { findRequests } from "./console_requests.js";
import { hideTimeline, showTimeline } from "./console_timeline.js";
import { clock, count, moment, spoken } from "./lengths.js";
import { forget, recall, remember } from "./memory.js";

const at = (id) => document.getElementById(id);
let shown; // the answer on the page
let question; // what the dialog asks: which mailbox to reset, and why
let asked = 0;
let visit = 0; // counts the operators that signed in
let ticking = 0; // the timer of what is shown
let redraw = () => {};
let pausing = 0; // the timer of the note

at("reset").addEventListener("submit", (event) => {
  event.preventDefault();
  if (isBusy(at("ask-reset"))) {
    return;
  }
  asked++; // a lookup in progress does not change the page under the dialog
  question = { email: shown.email, reason: at("reason").value.trim() };
  at("confirm-text").textContent = `Removes ${count(shown.sends.length, "email")} and the guesses at codes of ${question.email} from the record. The audit log keeps your name and the reason.`;
  at("confirm").showModal();
  at("keep").focus();
});

at("look").addEventListener("submit", (event) => {
  event.preventDefault();
  lookUp(at("email").value.trim());
});

addEventListener("resize", () => redraw());

// The address of the page names the mailbox as the log does, and the tab remembers whose name that is.
const storageKey = "mailgate-console-mailbox";

function nameMailbox({ mailbox, email }) {
  remember(storageKey, `${mailbox} ${email}`);
  place({ email: "", mailbox });
}

export function unnameMailbox() {
  forget(storageKey);
  place({ email: "", mailbox: "" });
}

// namedMailbox is the address that a link has, or else that of the name in the address of the page.
export function namedMailbox() {
  const [name, email] = recall(storageKey).split(" ");
  return placed("email") || (placed("mailbox") === name ? email ?? "" : "");
}

at("keep").addEventListener("click", () => at("confirm").close());

at("reset-now").addEventListener("click", () => {
  at("confirm").close();
  busy(at("ask-reset"), () => reset(question));
});

// hideMailbox forgets what was looked up.
export function hideMailbox() {
  asked++;
  visit++;
  clearInterval(ticking);
  at("confirm").close();
  hideFound();
  at("email").value = "";
  showNote("");
}

// hideFound clears the reason with the mailbox: it is an audit entry for that one only.
function hideFound() {
  shown = undefined;
  redraw = () => {};
  for (const id of ["found-title", "found-pill", "found-why", "found-cases", "found-guesses", "lanes", "sends-title", "confirm-text"]) {
    at(id).replaceChildren();
  }
  hideTimeline();
  at("found").hidden = true;
  at("reason").value = "";
}

// lookUp shows a mailbox, and reports whether it did.
export async function lookUp(email) {
  if (email === "") {
    showNote("Type an address.");
    at("email").focus();
    return false;
  }
  const mine = ++asked;
  const answer = await ask(`/admin/mailboxes/${encodeURIComponent(email)}`);
  if (mine !== asked) {
    return false; // there was another lookup meanwhile, or the operator has signed out
  }
  clearInterval(ticking);
  if (answer.status !== 200) {
    hideFound();
    unnameMailbox();
    refused(answer);
    return false;
  }
  showNote("");
  show(answer.body);
  nameMailbox(answer.body);
  findRequests(answer.body);
  announce(spokenState(answer.body));
  at("found-title").focus();
  return true;
}

// refused says why there is no answer, and how long to wait after too many lookups.
function refused(answer) {
  if (answer.status === 429 && Number.isFinite(answer.body.wait_ms)) {
    showWaitNote(answer.body.wait_ms);
    announce(`Try again in ${spoken(answer.body.wait_ms)}.`);
    return;
  }
  showNote(errorText(answer));
}

function showNote(text) {
  clearTimeout(pausing);
  at("look-note").textContent = text;
  at("look-wait").textContent = "";
}

// showWaitNote writes the alert once, as it is read aloud whenever it is written.
function showWaitNote(ms) {
  const end = performance.now() + ms;
  showNote("Too many lookups.");
  const show = () => {
    const wait = end - performance.now();
    if (wait <= 0) {
      showNote("");
      return;
    }
    at("look-wait").textContent = `Try again in ${clock(wait)}.`;
    pausing = setTimeout(show, 250);
  };
  show();
}

function show(body) {
  if (body.mailbox !== shown?.mailbox) {
    hideFound();
  }
  shown = body;
  shown.began = performance.now();
  at("found").hidden = false;
  writeAddress(at("found-title"), body.email);
  at("found-cases").textContent = body.cases.filter((one) => !denies(one)).map(caseText).join("\n");
  at("sends-title").textContent = `${count(body.sends.length, "email")} on record`;
  showTimeline(body);
  free(at("ask-reset"));
  draw();
}

// whyNone says why the mailbox gets no email, whatever its limits; nothing if it does.
function whyNone({ cases, suppressions }) {
  const reasons = suppressions.map(({ reason, until, since, source }) => {
    const began = since ? ` since ${moment(Date.parse(since))}` : "";
    return `${reason}${began}, until ${until ? moment(Date.parse(until)) : "it is removed"}.${source ? ` Source: ${source}.` : ""}`;
  });
  reasons.unshift(...cases.filter(denies).map((one) => `denied by the rule ${one.rule}${written(one)}.`));
  return reasons.map((reason) => `Gets no email: ${reason}`).join(" ");
}

const denies = ({ does, shadow }) => does === "deny" && !shadow;

// written is the comment of a case, and where it is written.
function written({ comment, file, line }) {
  const texts = [comment, file && (line ? `${file}:${line}` : file)].filter(Boolean);
  return texts.length > 0 ? ` (${texts.join(", ")})` : "";
}

// caseText says which entry of the rules file excepts the mailbox from a rule.
const caseText = (one) => `${one.rule}: ${one.shadow ? "shadow " : ""}${one.does}${written(one)}`;

// draw shows the mailbox as time passes.
function draw() {
  const body = shown;
  const none = whyNone(body);
  const lanes = drawLanes(at("lanes"), body, none === "");
  const tick = () => {
    const gone = performance.now() - body.began;
    lanes(gone);
    if (none === "") {
      showWait(body, Math.max(0, body.wait_ms - gone));
    } else {
      showPill("bad", "no email", none);
    }
    at("found-guesses").textContent = guessesLeft(body.guesses, gone);
  };
  clearInterval(ticking);
  redraw = tick;
  tick();
  ticking = setInterval(tick, 250);
}

// A lookup has no API key, visitor or template, so rules by these are not asked.
const noLimit = "No limit reached. Rules by api_key, client_ip, purpose or template are not checked here.";

function showPill(kind, text, why) {
  at("found-pill").textContent = text;
  at("found-pill").className = `pill ${kind}`;
  at("found-why").textContent = why;
}

function showWait(body, wait) {
  if (wait > 0) {
    showPill("wait", clock(wait), `${limitReached(body)} Next email at ${moment(Date.parse(body.retry_at))}.`);
  } else {
    showPill("good", "ready", noLimit);
  }
}

const limitReached = ({ rule, limit }) => (rule === "mailbox"
  ? `${limit.charAt(0).toUpperCase()}${limit.slice(1)} limit reached.`
  : `Rule ${rule}: ${limit} limit reached.`);

// guessesLeft says how many guesses are left, or how long until the next.
function guessesLeft(limits = [], gone) {
  if (limits.length === 0) {
    return "";
  }
  const wait = Math.max(...limits.map((limit) => limit.wait_ms)) - gone;
  if (wait > 0) {
    return `No guesses at codes left. Next one in ${clock(wait)}.`;
  }
  const least = limits.reduce((few, limit) => (open(limit) < open(few) ? limit : few));
  return `${open(least)} of ${least.limit} guesses at codes left.`;
}

// open is how many a limit admits; an empty one has one again when its wait is over.
const open = (limit) => Math.max(1, limit.remaining);

function spokenState(body) {
  return `${body.email}: ${whyNone(body) || (body.wait_ms > 0 ? `${limitReached(body)} Next email in ${spoken(body.wait_ms)}.` : noLimit)}`;
}

// reset does not disturb another mailbox that was looked up meanwhile, and says nothing to
// an operator who signed in after it began.
async function reset({ email, reason }) {
  const mine = asked;
  const during = visit;
  const answer = await ask(`/admin/mailboxes/${encodeURIComponent(email)}/reset`, reason === "" ? {} : { reason });
  if (during !== visit) {
    return;
  }
  if (answer.status === 429 && mine === asked) {
    refused(answer);
    return;
  }
  if (answer.status !== 200) {
    showNote(`${email}: ${answer.status === 0 ? "No answer. The reset may or may not be done." : errorText(answer)}`);
    return;
  }
  const { cleared, guesses_cleared: guesses } = answer.body;
  const done = `${email} was reset: ${count(cleared, "email")} and ${count(guesses, "guess", "guesses")} removed.`;
  if (mine !== asked) {
    announce(done);
    return;
  }
  at("reason").value = "";
  if (await lookUp(email)) {
    announce(done);
  }
}
