// The operators' console: signing in and out, and opening what the address of the page names.

import { busy } from "./busy.js";
import { announce, ask, errorText, forgetKey, isAskedFor, keepKey, key } from "./console_ask.js";
import { stopWatching, watchFigures } from "./console_figures.js";
import { hideMailbox, lookUp } from "./console_mailbox.js";
import { hideTrial } from "./console_trial.js";

const at = (id) => document.getElementById(id);

function enter() {
  at("signed-out").hidden = true;
  at("signed-in").hidden = false;
  at("sign-out").hidden = !isAskedFor;
  watchFigures();
  const email = new URLSearchParams(location.search).get("email") ?? "";
  if (email !== "") {
    history.replaceState(null, "", location.pathname); // the next operator does not see it
    at("email").value = email;
    lookUp(email);
  }
}

// leave forgets the key and everything shown with it.
function leave(why = "") {
  stopWatching();
  hideMailbox();
  hideTrial();
  forgetKey();
  at("signed-in").hidden = true;
  at("sign-out").hidden = true;
  at("signed-out").hidden = false;
  at("sign-in-note").textContent = why;
  at("key").value = "";
  at("key").focus();
}

async function signIn(text) {
  if (!/^[!-~]+$/.test(text)) {
    leave(text === "" ? "Type a key." : "A key has only ASCII characters, and no spaces.");
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
  leave(answer.status === 401 ? "This is not an admin key." : errorText(answer));
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("enter"), () => signIn(at("key").value.trim()));
});
at("sign-out").addEventListener("click", () => {
  leave();
  announce("Signed out.");
});
addEventListener("mailgate-unauthorized", () => leave("This key is no longer valid."));

if (location.hash.startsWith("#key=")) { // the link from mailgate dev
  keepKey(location.hash.slice(5));
  history.replaceState(null, "", location.pathname + location.search);
}
if (!isAskedFor || key() !== "") {
  enter();
} else {
  leave();
}
