// The operators' console: signing in and out, and what is there in between.

import { busy } from "./busy.js";
import { ask, complaint, forgetKey, isAskedFor, keepKey, key } from "./console_ask.js";
import { stopWatching, watchFigures } from "./console_figures.js";
import { hideMailbox, useMailbox } from "./console_mailbox.js";
import { hideTrial, useTrial } from "./console_trial.js";

const at = (id) => document.getElementById(id);

// announce says something to screen readers.
const announce = (text) => { at("announce").textContent = text; };

function enter() {
  at("gate").hidden = true;
  at("desk").hidden = false;
  at("sign-out").hidden = !isAskedFor;
  watchFigures(leave);
}

// leave forgets the key and all that it has shown.
function leave(why = "") {
  stopWatching();
  hideMailbox();
  hideTrial();
  forgetKey();
  at("desk").hidden = true;
  at("sign-out").hidden = true;
  at("gate").hidden = false;
  at("sign-in-note").textContent = why;
  at("key").value = "";
  at("key").focus();
}

async function signIn(text) {
  if (!/^[!-~]+$/.test(text)) {
    leave(text === "" ? "Type a key." : "A key is letters, digits and signs, without blanks.");
    return;
  }
  keepKey(text);
  const answer = await ask("/admin/figures");
  if (answer.status === 200) {
    at("sign-in-note").textContent = "";
    at("key").value = "";
    enter();
    announce("Signed in.");
    at("email").focus();
    return;
  }
  leave(answer.status === 401 ? "No operator has this key." : complaint(answer));
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("enter"), () => signIn(at("key").value.trim()));
});
at("sign-out").addEventListener("click", () => {
  leave();
  announce("Signed out.");
});
useMailbox(announce, leave);
useTrial(announce, leave);

if (!isAskedFor || key() !== "") {
  enter();
} else {
  leave();
}
