// The sign-up page: an address, a mail, a code, and what mailgate said on the way.

import "/countdown.js";
import { post, showBadge, watchMails } from "./ask.js";
import { busy, free, isBusy } from "./busy.js";
import { count } from "./lengths.js";
import { forget, recall, remember } from "./memory.js";
import { announce, hideVerdict, showRest, showVerdict } from "./verdict.js";

const at = (id) => document.getElementById(id);
const place = "mailgate.signup";
let email = ""; // whom it is about: an answer that comes when it is another does not count
let sends = 0; // an answer about how things stood before one does not count either

// step shows one of the three steps and puts the focus where the visitor goes on.
function step(name, focus) {
  for (const id of ["ask", "prove", "done"]) {
    at(id).hidden = id !== name;
  }
  at(focus).focus();
}

// Each button that asks for a mail has its countdown, which holds it while it has to wait.
const waits = { send: at("send-wait"), again: at("again-wait") };

// waitBeside gives the countdown beside one button the mailbox that is waited for. The other
// has none then, and tabs that are about other mailboxes are told nothing.
function waitBeside(name, address) {
  for (const [button, wait] of Object.entries(waits)) {
    wait.mailbox = button === name ? address.toLowerCase() : null;
  }
  return waits[name];
}

// complaint is the sentence to show for an answer that is neither yes nor not yet.
function complaint(body) {
  const reasons = (body.errors ?? []).map((error) => error.detail ?? error.reason);
  const sentence = reasons[0] ?? body.detail ?? body.title ?? "That did not work.";
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

// send asks for a mail. A click has a key of its own, so that whoever loses the answer on
// the way can ask again and no second mail is sent.
async function send(button, note) {
  await busy(button, async () => {
    const asked = email;
    const locale = document.querySelector("input[name=locale]:checked").value;
    sends++;
    const { status, body } = await post("/demo/sign-up", { email: asked, locale, click: crypto.randomUUID() });
    if (asked !== email || (status !== 200 && !isSeen())) {
      return;
    }
    const denied = status === 429;
    showVerdict(status, body);
    note.classList.toggle("wait", denied);
    note.textContent = status === 200 || denied ? "" : complaint(body); // an alert, so it is heard
    if (status === 200) {
      remember(place, email);
      at("to").textContent = email;
      if (button === at("send")) {
        clearCode(); // else what is being typed stays: the code of the mail before is right as well
      }
      at("prove-note").textContent = "";
      step("prove", "code");
      waitBeside("again", email).update(body);
    } else if (denied) {
      waitBeside(button.id, email).update(body);
    } else if (button === at("send")) {
      at("email").setAttribute("aria-invalid", String(status === 422));
    }
  }, () => waits[button.id].waiting);
}

// isSeen says whether the address that it is about is the one that the visitor sees.
const isSeen = () => at("ask").hidden || at("email").value.trim() === email;

function clearCode() {
  at("code").value = "";
  at("code").removeAttribute("aria-invalid");
}

for (const wait of Object.values(waits)) {
  wait.addEventListener("mailgate-tick", ({ detail }) => showRest(detail.seconds * 1000));
  wait.addEventListener("mailgate-end", () => showRest(0));
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (isBusy(at("send"))) {
    return;
  }
  email = at("email").value.trim();
  at("email").setAttribute("aria-invalid", String(email === ""));
  if (email === "") {
    at("ask-note").textContent = "Type your address first.";
    at("email").focus();
    return;
  }
  send(at("send"), at("ask-note"));
});

// Another address does not wait for this one, and what was said of this one goes with its wait.
at("email").addEventListener("input", () => {
  waitBeside("send", at("email").value.trim());
  hideVerdict();
});

at("again").addEventListener("click", () => send(at("again"), at("prove-note")));

at("prove").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("verify"), verify); // else a double click is two guesses
});

async function verify() {
  const asked = email;
  const { status, body } = await post("/demo/code", { email: asked, code: at("code").value });
  if (asked !== email) {
    return;
  }
  at("code").setAttribute("aria-invalid", String(status === 422));
  if (body.verified) {
    forget(place);
    step("done", "done-title");
    return;
  }
  const left = body.attempts_left;
  at("prove-note").classList.remove("wait");
  at("prove-note").textContent = left > 0
    ? `That is not the code. ${count(left, "try", "tries")} left.`
    : complaint(body);
  at("code").select();
}

at("reset").addEventListener("click", () => busy(at("reset"), async () => {
  const asked = email;
  const { status, body } = await post("/demo/reset", { email: asked });
  if (asked !== email) {
    return;
  }
  if (status !== 200) {
    announce(complaint(body));
    return;
  }
  announce(`The mailbox starts afresh. ${count(body.cleared, "send was", "sends were")} forgotten.`);
  for (const wait of Object.values(waits).filter((one) => one.mailbox === email.toLowerCase())) {
    wait.reset();
  }
  at("prove-note").textContent = "";
  at("ask-note").textContent = "";
  await resume();
}));

function startOver() {
  forget(place);
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

// resume asks how the mailbox stands, so that a page that was loaded again shows it.
async function resume() {
  const asked = email;
  const before = sends;
  const { status, body } = await post("/demo/standing", { email: asked });
  if (status === 200 && asked === email && before === sends && isSeen()) {
    showVerdict(status, body);
    if (!at("prove").hidden) {
      waits.again.update(body);
    }
  }
}

email = recall(place);
if (email !== "") {
  at("to").textContent = email;
  at("email").value = email;
  waitBeside("again", email);
  step("prove", "code");
  resume();
}

let hideToast = 0;
watchMails((mails, arrived) => {
  showBadge(mails.length);
  if (arrived.length === 0) {
    return;
  }
  at("toast-text").textContent = arrived[0].subject;
  at("toast").hidden = false;
  clearTimeout(hideToast);
  hideToast = setTimeout(dropToast, 8000);
});

// dropToast takes the notice away, unless somebody is about to follow it.
function dropToast() {
  if (at("toast").matches(":focus, :hover")) {
    hideToast = setTimeout(dropToast, 1000);
    return;
  }
  at("toast").hidden = true;
}
