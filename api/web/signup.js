// The sign-up page: an address, a mail, a code, and what mailgate said on the way.

import "/countdown.js";
import { post, showBadge, watchMails } from "./ask.js";
import { announce, hideVerdict, showRest, showVerdict } from "./verdict.js";

const at = (id) => document.getElementById(id);
const remembered = "mailgate.signup";
let email = "";

// step shows one of the three steps and puts the focus where the visitor goes on.
function step(name, focus) {
  for (const id of ["ask", "prove", "done"]) {
    at(id).hidden = id !== name;
  }
  at(focus).focus();
}

async function busy(button, work) {
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  try {
    await work();
  } finally {
    button.disabled = false;
    button.removeAttribute("aria-busy");
  }
}

// Each button that asks for a mail has its countdown, which holds it while it has to wait.
const waits = { send: at("send-wait"), again: at("again-wait") };

function release() {
  waits.send.reset();
  waits.again.reset();
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
    const locale = document.querySelector("input[name=locale]:checked").value;
    const { status, body } = await post("/demo/sign-up", { email, locale, click: crypto.randomUUID() });
    const denied = status === 429;
    showVerdict(status, body);
    note.classList.toggle("wait", denied);
    note.textContent = status === 200 || denied ? "" : complaint(body);
    if (status === 200) {
      sessionStorage.setItem(remembered, email);
      at("to").textContent = email;
      if (button === at("send")) {
        at("code").value = ""; // what is being typed stays: the code of the mail before is right as well
      }
      at("prove-note").textContent = "";
      step("prove", "code");
      waits.send.reset();
      waits.again.update(body);
    } else if (denied) {
      waits[button.id].update(body);
    } else {
      announce(note.textContent);
    }
  });
}

for (const wait of Object.values(waits)) {
  wait.addEventListener("mailgate-tick", ({ detail }) => showRest(detail.seconds * 1000));
  wait.addEventListener("mailgate-end", () => showRest(0));
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  email = at("email").value.trim();
  at("email").setAttribute("aria-invalid", String(email === ""));
  if (email === "") {
    at("ask-note").textContent = "Type your address first.";
    at("email").focus();
    return;
  }
  send(at("send"), at("ask-note"));
});

// Another address does not wait for this one.
at("email").addEventListener("input", release);

at("again").addEventListener("click", () => send(at("again"), at("prove-note")));

at("prove").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { status, body } = await post("/demo/code", { email, code: at("code").value });
  if (body.verified) {
    sessionStorage.removeItem(remembered);
    step("done", "done-title");
    return;
  }
  const left = body.attempts_left;
  at("prove-note").classList.remove("wait");
  at("prove-note").textContent = left > 0
    ? `That is not the code. ${left} ${left === 1 ? "try" : "tries"} left.`
    : complaint(body);
  at("code").select();
});

at("reset").addEventListener("click", () => busy(at("reset"), async () => {
  const { status, body } = await post("/demo/reset", { email });
  if (status !== 200) {
    announce(complaint(body));
    return;
  }
  announce(`The mailbox starts afresh. ${body.cleared} ${body.cleared === 1 ? "send was" : "sends were"} forgotten.`);
  release();
  at("prove-note").textContent = "";
  at("ask-note").textContent = "";
  await resume();
}));

function startOver() {
  sessionStorage.removeItem(remembered);
  release();
  hideVerdict();
  at("email").value = "";
  at("ask-note").textContent = "";
  step("ask", "email");
}
at("other").addEventListener("click", startOver);
at("restart").addEventListener("click", startOver);

// resume asks how the mailbox stands, so that a page that was loaded again shows it.
async function resume() {
  const { status, body } = await post("/demo/standing", { email });
  if (status === 200) {
    showVerdict(status, body);
    waits.again.update(body);
  }
}

email = sessionStorage.getItem(remembered) ?? "";
if (email !== "") {
  at("to").textContent = email;
  at("email").value = email;
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
  hideToast = setTimeout(() => { at("toast").hidden = true; }, 8000);
});
