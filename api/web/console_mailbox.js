// Looking a mailbox up, and forgetting it.

import { busy, free, isBusy } from "./busy.js";
import { ask, complaint } from "./console_ask.js";
import { drawLanes } from "./console_lanes.js";
import { clock, count, spoken } from "./lengths.js";

const at = (id) => document.getElementById(id);
let shown; // the answer on the page
let question; // what the dialog asks: whose mails to forget, and for what reason
let asked = 0;
let visit = 0; // of one operator, until the key is forgotten
let ticking = 0; // the timer of what is shown
let pausing = 0; // and of what is said

// useMailbox wires the card up. left is called when the key does not open it any more.
export function useMailbox(announce, left) {
  at("look").addEventListener("submit", (event) => {
    event.preventDefault();
    look(at("email").value.trim(), announce, left);
  });
  at("reset").addEventListener("submit", (event) => {
    event.preventDefault();
    if (isBusy(at("forget"))) {
      return;
    }
    asked++; // what is still being looked up is not shown under the question
    question = { email: shown.email, reason: at("reason").value.trim() };
    at("confirm-text").textContent = `${count(shown.sends.length, "mail")} of ${question.email}, and the guesses at its codes. No rule that counts by mailbox refuses the next mail then, and the audit log says who did it.`;
    at("confirm").showModal();
    at("keep").focus();
  });
  at("keep").addEventListener("click", () => at("confirm").close());
  at("forget-now").addEventListener("click", () => {
    at("confirm").close();
    busy(at("forget"), () => forget(question, announce, left));
  });
}

// hideMailbox forgets what was looked up.
export function hideMailbox() {
  asked++;
  visit++;
  clearInterval(ticking);
  shown = undefined;
  at("confirm").close();
  at("found").hidden = true;
  for (const id of ["email", "reason"]) {
    at(id).value = "";
  }
  tell("");
}

async function look(email, announce, left) {
  if (email === "") {
    tell("Type an address.");
    at("email").focus();
    return false;
  }
  const mine = ++asked;
  const answer = await ask(`/admin/mailboxes/${encodeURIComponent(email)}`);
  if (mine !== asked) {
    return false; // another question was asked meanwhile
  }
  clearInterval(ticking);
  at("found").hidden = answer.status !== 200;
  if (answer.status !== 200) {
    refused(answer, announce, left);
    return false;
  }
  tell("");
  show(answer.body);
  announce(spokenState(answer.body));
  at("found-title").focus();
  return true;
}

// refused says why there is no answer; too many lookups with how long to wait, where mailgate
// itself has refused.
function refused(answer, announce, left) {
  if (answer.status === 401) {
    left("This key does not open the console any more.");
    return;
  }
  if (answer.status === 429 && Number.isFinite(answer.body.wait_ms)) {
    tellToWait(answer.body.wait_ms);
    announce(`The next one is answered in ${spoken(answer.body.wait_ms)}.`);
    return;
  }
  tell(complaint(answer));
}

function tell(text) {
  clearTimeout(pausing);
  at("look-note").textContent = text;
  at("look-wait").textContent = "";
}

// tellToWait writes the alert once, as it is read aloud whenever it is written.
function tellToWait(ms) {
  const end = performance.now() + ms;
  tell("Too many lookups.");
  const show = () => {
    const wait = end - performance.now();
    if (wait <= 0) {
      tell("");
      return;
    }
    at("look-wait").textContent = `The next one is answered in ${clock(wait)}.`;
    pausing = setTimeout(show, 250);
  };
  show();
}

function show(body) {
  shown = body;
  at("found-title").textContent = body.email;
  at("sends-title").textContent = `${count(body.sends.length, "mail")} on record`;
  at("sends").replaceChildren(...body.sends.map((send) => row(send, Date.parse(body.server_time))).reverse());
  free(at("forget"));
  const lanes = drawLanes(at("lanes"), body);
  const began = performance.now();
  const tick = () => {
    const gone = performance.now() - began;
    lanes(gone);
    showWait(body, Math.max(0, body.wait_ms - gone));
    at("found-guesses").textContent = guessesLeft(body.guesses, gone);
  };
  tick();
  ticking = setInterval(tick, 250);
}

// A look knows no caller, no visitor and no template, so their rules are not asked.
const nobodyRefuses = "No rule that counts by mailbox, domain or all refuses the next mail";

function showWait(body, wait) {
  at("found-pill").textContent = wait > 0 ? clock(wait) : "may be mailed";
  at("found-pill").className = `pill ${wait > 0 ? "wait" : "good"}`;
  at("found-why").textContent = wait > 0
    ? `The rule ${body.rule} refuses by its limit ${body.limit} until ${new Date(body.retry_at).toLocaleString()}.`
    : `${nobodyRefuses}.`;
}

// guessesLeft says how many guesses at the codes are left, or until when none is.
function guessesLeft(limits = [], gone) {
  if (limits.length === 0) {
    return "";
  }
  const wait = Math.max(...limits.map((limit) => limit.wait_ms)) - gone;
  if (wait > 0) {
    return `No guess at its codes is left; the next one in ${clock(wait)}.`;
  }
  const least = limits.reduce((few, limit) => (open(limit) < open(few) ? limit : few));
  return `${open(least)} of ${least.limit} guesses at its codes are left.`;
}

// open is how many a limit admits; one that had none has one again once its wait is over.
const open = (limit) => Math.max(1, limit.remaining);

function spokenState(body) {
  return body.wait_ms > 0
    ? `${body.email} has to wait ${spoken(body.wait_ms)}, because of the limit ${body.limit} of the rule ${body.rule}.`
    : `${nobodyRefuses} to ${body.email}.`;
}

function row(send, now) {
  const line = document.createElement("tr");
  const ago = clock(Math.max(0, now - Date.parse(send.at)));
  for (const [text, name] of [[new Date(send.at).toLocaleString(), ""], [ago, ""], [send.id, "code-text"]]) {
    const cell = document.createElement("td");
    cell.textContent = text;
    cell.className = name;
    line.append(cell);
  }
  return line;
}

// forget stays with another mailbox that was looked up meanwhile, and says nothing to who has
// signed out or to who came after.
async function forget({ email, reason }, announce, left) {
  const mine = asked;
  const during = visit;
  const answer = await ask(`/admin/mailboxes/${encodeURIComponent(email)}/reset`, reason === "" ? {} : { reason });
  if (during !== visit) {
    return;
  }
  if (answer.status === 401 || (answer.status === 429 && mine === asked)) {
    refused(answer, announce, left);
    return;
  }
  if (answer.status !== 200) {
    tell(`${complaint(answer)} ${notForgotten(answer.status, email)}`);
    return;
  }
  const { cleared, guesses_cleared: guesses } = answer.body;
  const done = `Forgotten: ${count(cleared, "mail")} and ${count(guesses, "guess", "guesses")} of ${email}.`;
  if (mine !== asked) {
    announce(done);
    return;
  }
  at("reason").value = "";
  if (await look(email, () => {}, left)) {
    announce(done);
  }
}

// notForgotten names the mailbox, as another may be on the page. Where the server failed or
// nothing came back, nobody knows how far it got.
const notForgotten = (status, email) => (status === 0 || status >= 500
  ? `The mails of ${email} may be forgotten all the same.`
  : `The mails of ${email} are not forgotten.`);
