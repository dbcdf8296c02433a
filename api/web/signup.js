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

// held is what a "not yet" holds back: the button that was pressed, and the place in the
// note under it that says for how long.
let held = null;

function hold(button, note, limit) {
  const time = document.createElement("span");
  time.setAttribute("aria-hidden", "true"); // a screen reader was told once, in words
  note.replaceChildren(`Not yet: the ${limit} limit holds the next code back `, time);
  button.setAttribute("aria-disabled", "true");
  held = { button, note, time };
}

function release() {
  held?.button.removeAttribute("aria-disabled");
  held?.note.replaceChildren();
  held = null;
  at("send-wait").textContent = "";
}

// count shows the time left wherever it matters.
function count(left) {
  at("again-wait").textContent = left > 0 ? ` in ${clock(left)}` : "";
  at("again").classList.toggle("waiting", left > 0);
  if (held === null) {
    return;
  }
  if (left === 0) {
    release();
    return;
  }
  held.time.textContent = `for ${clock(left)}.`;
  at("send-wait").textContent = held.button === at("send") ? ` in ${clock(left)}` : "";
}

// complaint is the sentence to show for an answer that is neither yes nor not yet.
function complaint(body) {
  const reasons = (body.errors ?? []).map((error) => error.detail ?? error.reason);
  const sentence = reasons[0] ?? body.detail ?? body.title ?? "That did not work.";
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

async function send(button, note) {
  if (held?.button === button) {
    return;
  }
  await busy(button, async () => {
    const locale = document.querySelector("input[name=locale]:checked").value;
    const { status, body } = await post("/demo/sign-up", { email, locale });
    release();
    if (status === 429) {
      hold(button, note, body.limit);
    }
    note.classList.toggle("wait", status === 429);
    showVerdict(status, body, count);
    if (status === 200) {
      note.textContent = "";
      sessionStorage.setItem(remembered, email);
      at("to").textContent = email;
      at("code").value = "";
      at("prove-note").textContent = "";
      step("prove", "code");
    } else if (status !== 429) {
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
  release();
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

// resume asks how the mailbox stands, so that a page that was loaded again, or slept,
// counts on from where things are.
async function resume() {
  const { status, body } = await post("/demo/standing", { email });
  if (status === 200) {
    showVerdict(status, body, count);
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
