// The sign-up page: an address, a mail, a code, and what mailgate said on the way.

import { post, showBadge, watchMails } from "./ask.js";
import { clock } from "./countdown.js";
import { announce, hideVerdict, showVerdict } from "./verdict.js";

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

const countAgain = (left) => {
  at("again-wait").textContent = left > 0 ? ` in ${clock(left)}` : "";
  at("again").classList.toggle("waiting", left > 0);
};

// complaint is the sentence to show for an answer that is neither yes nor not yet.
function complaint(body) {
  const reasons = (body.errors ?? []).map((error) => error.detail ?? error.reason);
  const sentence = reasons[0] ?? body.detail ?? body.title ?? "That did not work.";
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

async function send(button, note) {
  await busy(button, async () => {
    const locale = document.querySelector("input[name=locale]:checked").value;
    const { status, body } = await post("/demo/sign-up", { email, locale });
    showVerdict(status, body, countAgain);
    note.classList.toggle("wait", status === 429);
    if (status === 200) {
      note.textContent = "";
      sessionStorage.setItem(remembered, email);
      at("to").textContent = email;
      at("code").value = "";
      at("prove-note").textContent = "";
      step("prove", "code");
    } else if (status === 429) {
      note.textContent = `Not yet: the ${body.limit} limit holds the next code back.`;
    } else {
      note.textContent = complaint(body);
      announce(note.textContent);
    }
  });
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
  at("prove-note").textContent =
    status !== 200 ? complaint(body)
    : left > 0 ? `That is not the code. ${left} ${left === 1 ? "try" : "tries"} left.`
    : "That code no longer works. Ask for another one.";
  at("code").select();
});

at("reset").addEventListener("click", () => busy(at("reset"), async () => {
  const { status, body } = await post("/demo/reset", { email });
  if (status !== 200) {
    announce(complaint(body));
    return;
  }
  announce(`The mailbox starts afresh. ${body.cleared} ${body.cleared === 1 ? "send was" : "sends were"} forgotten.`);
  at("prove-note").textContent = "";
  at("ask-note").textContent = "";
  await resume();
}));

function startOver() {
  sessionStorage.removeItem(remembered);
  hideVerdict();
  at("email").value = "";
  at("ask-note").textContent = "";
  step("ask", "email");
}
at("other").addEventListener("click", startOver);
at("restart").addEventListener("click", startOver);

// resume asks how the mailbox stands, so that a page that was loaded again, or slept,
// counts on from where things are.
async function resume() {
  const { status, body } = await post("/demo/standing", { email });
  if (status === 200) {
    showVerdict(status, body, countAgain);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !at("prove").hidden) {
    resume();
  }
});

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
