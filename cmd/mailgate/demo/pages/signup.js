// The sign-up page: an address, an email with a code, and what mailgate answered.

import "/countdown.js";
import { writeAddress } from "./address.js";
import { ask, codeIn, copyText, post, showBadge, watchMails } from "./ask.js";
import { busy, free, isBusy } from "./busy.js";
import { count } from "./lengths.js";
import { forget, recall, remember } from "./memory.js";
import { announce, hideVerdict, showPending, showRest, showVerdict } from "./verdict.js";

const at = (id) => document.getElementById(id);
const storageKey = "mailgate.signup"; // of the address that was mailed
const waitKey = "mailgate.signup.wait"; // of one that has to wait in the first step
let email = ""; // the address in use; an answer about an earlier one is ignored
let latest; // the email that arrived last
let solution; // of the challenge that the next send answers
let sends = 0; // limits from before the last send are ignored

// step shows one of the three steps and puts the focus where the visitor continues.
function step(name, focus) {
  for (const id of ["ask", "prove", "done"]) {
    at(id).hidden = id !== name;
  }
  at(focus).focus();
  offerCode();
}

// Each button that may have to wait has a countdown, which holds it meanwhile.
const waits = { send: at("send-wait"), again: at("again-wait"), verify: at("verify-wait") };

// waitBeside gives the countdowns of one step the mailbox that is waited for. The others
// have none then, and tabs of other mailboxes get no message.
function waitBeside(name, address) {
  const mailbox = address.toLowerCase();
  waits.send.mailbox = name === "send" ? mailbox : null;
  waits.again.mailbox = waits.verify.mailbox = name === "again" ? mailbox : null;
  return waits[name];
}

// errorText is the sentence to show for an error.
function errorText(body) {
  const reasons = (body.errors ?? []).map((error) => error.detail ?? error.reason);
  const sentence = reasons[0] ?? body.detail ?? body.title ?? "That did not work.";
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

// send asks for an email. Each click has a key of its own, so that a retry after a lost
// answer sends no second email.
async function send(button, note) {
  await busy(button, async () => {
    const asked = email;
    showPending();
    const locale = document.querySelector("input[name=locale]:checked").value;
    sends++;
    const { status, body } = await post("/demo/send-code", { email: asked, locale, challenge: solution }, { "Idempotency-Key": crypto.randomUUID() });
    if (asked !== email || (status !== 200 && !isSeen())) {
      return;
    }
    solution = undefined;
    const denied = status === 429 || !!body.challenge;
    showVerdict(status, body);
    note.classList.toggle("wait", denied);
    note.textContent = status === 200 || denied ? "" : errorText(body); // an alert, so it is heard
    if (status === 200) {
      forget(waitKey);
      remember(storageKey, email);
      writeAddress(at("to"), email);
      if (button === at("send")) {
        clearCode(); // else what is being typed stays: the previous code is valid too
      }
      at("prove-note").textContent = "";
      step("prove", "code");
      waitBeside("again", email).update(body);
    } else if (denied) {
      if (button === at("send")) {
        remember(waitKey, email);
      }
      waitBeside(button.id, email).update(body);
    } else if (button === at("send")) {
      at("email").setAttribute("aria-invalid", String(status === 422));
    }
  }, () => waits[button.id].waiting);
}

// isSeen says whether the visitor sees the address in use.
const isSeen = () => at("ask").hidden || at("email").value.trim() === email;

function clearCode() {
  at("code").value = "";
  at("code").removeAttribute("aria-invalid");
}

for (const [name, wait] of Object.entries(waits)) {
  const what = name === "verify" ? "code" : "email";
  wait.addEventListener("mailgate-tick", ({ detail }) => showRest(detail.seconds * 1000, what));
  wait.addEventListener("mailgate-solved", ({ detail }) => {
    solution = detail.challenge;
    wait.button.click();
  });
  wait.addEventListener("mailgate-end", () => showRest(0, what));
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (isBusy(at("send"))) {
    return;
  }
  email = at("email").value.trim();
  at("email").setAttribute("aria-invalid", String(email === ""));
  if (email === "") {
    hideVerdict();
    at("ask-note").textContent = "Enter your email address.";
    at("email").focus();
    return;
  }
  send(at("send"), at("ask-note"));
});

// Another address does not wait for this one, and has no answer yet.
at("email").addEventListener("input", () => {
  forget(waitKey);
  waitBeside("send", at("email").value.trim());
  hideVerdict();
});

at("again").addEventListener("click", () => send(at("again"), at("prove-note")));

at("prove").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("verify"), verify, () => waits.verify.waiting); // else a double click is two guesses
});

async function verify() {
  const asked = email;
  showPending();
  const { status, body } = await post("/demo/verify-code", { email: asked, code: at("code").value });
  if (asked !== email) {
    return;
  }
  showVerdict(status, body, "code");
  at("code").setAttribute("aria-invalid", String(status === 422));
  if (body.verified) {
    forget(storageKey);
    step("done", "done-title");
    return;
  }
  const left = body.guesses_left;
  at("prove-note").classList.remove("wait");
  at("prove-note").textContent = status === 429 ? "" // the countdown says it
    : left > 0 ? `Wrong code. ${count(left, "guess", "guesses")} left.` : errorText(body);
  if (status === 429) {
    waits.verify.update(body);
  }
  at("code").select();
}

at("reset").addEventListener("click", () => busy(at("reset"), async () => {
  const asked = email;
  const { status, body } = await post(`/demo/admin/mailboxes/${encodeURIComponent(asked)}/reset`, { reason: "sign-up page of mailgate dev" });
  if (asked !== email) {
    return;
  }
  if (status !== 200) {
    announce(errorText(body));
    return;
  }
  announce(`Mailbox reset. ${count(body.cleared, "email")} removed from the record.`);
  for (const wait of Object.values(waits).filter((one) => one.mailbox === email.toLowerCase())) {
    wait.reset();
  }
  at("prove-note").textContent = "";
  at("ask-note").textContent = "";
  await resume();
}));

function startOver() {
  forget(storageKey);
  forget(waitKey);
  email = "";
  waitBeside("send", email);
  hideVerdict();
  free(at("verify"));
  clearCode();
  at("email").value = "";
  at("email").removeAttribute("aria-invalid");
  at("ask-note").textContent = "";
  at("prove-note").textContent = "";
  step("ask", "email");
}
at("other").addEventListener("click", startOver);
at("restart").addEventListener("click", startOver);

// resume asks for the mailbox's limits, so that a reloaded page shows them.
async function resume() {
  const asked = email;
  const before = sends;
  const { status, body } = await ask(`/demo/mailboxes/${encodeURIComponent(asked)}`);
  if (status === 200 && asked === email && before === sends && isSeen()) {
    showVerdict(status, body);
    (at("prove").hidden ? waits.send : waits.again).update(body);
  }
}

email = recall(storageKey);
if (email !== "") {
  writeAddress(at("to"), email);
  at("email").value = email;
  waitBeside("again", email);
  step("prove", "code");
  resume();
} else if (recall(waitKey) !== "") {
  email = recall(waitKey);
  at("email").value = email;
  waitBeside("send", email);
  resume();
}

let hideToast = 0;

// offerCode offers the code of the latest email where it can be entered. The email may arrive
// before the answer that leads there.
function offerCode() {
  const isMine = latest?.to.some((to) => to.toLowerCase() === email.toLowerCase());
  at("fill").value = (isMine && codeIn(latest)) || "";
  at("fill").hidden = at("prove").hidden || at("fill").value === "";
}

watchMails((mails, arrived) => {
  showBadge(mails);
  const mail = arrived.find((one) => one.unread);
  if (!mail) {
    return;
  }
  at("toast-text").textContent = mail.subject;
  at("toast").hidden = false;
  latest = mail;
  offerCode();
  clearTimeout(hideToast);
  hideToast = setTimeout(dropToast, 8000);
});

at("fill").addEventListener("click", () => {
  at("code").value = at("fill").value;
  at("toast").hidden = true;
  at("verify").focus();
});

// dropToast hides the notice, unless the visitor is about to use it.
function dropToast() {
  if (at("toast").matches(":focus-within, :hover")) {
    hideToast = setTimeout(dropToast, 1000);
    return;
  }
  at("toast").hidden = true;
}

// showSMTP shows how to point an app at mailgate.
async function showSMTP() {
  const { status, body } = await ask("/demo/smtp");
  if (status !== 200) {
    return;
  }
  const settings = [["Host", body.host], ["Port", body.port], ["Security", "none"], ...(body.user ? [["User", body.user], ["Password", "the API key"]] : []), ["Sender", body.senders]];
  at("smtp-settings").textContent = settings.map(([name, value]) => name.padEnd(10) + value).join("\n");
  at("smtp").hidden = false;
}

at("smtp-copy").addEventListener("click", () => copyText(at("smtp-copy"), at("smtp-settings").textContent));
showSMTP();
