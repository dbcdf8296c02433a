// The operators' console: signing in and out, and opening what the address of the page names.

import { busy } from "./busy.js";
import { announce, ask, errorText, forgetKey, isAskedFor, keepKey, key } from "./console_ask.js";
import { clearFigures, watchFigures } from "./console_figures.js";
import { hideMailbox, lookUp, namedMailbox, unnameMailbox } from "./console_mailbox.js";
import { unplace } from "./console_place.js";
import { clearRequests, openRequests } from "./console_requests.js";
import { hideSuppressions } from "./console_suppressions.js";
import { hideTrial } from "./console_trial.js";

const at = (id) => document.getElementById(id);

function enter() {
  at("signed-out").hidden = true;
  at("signed-in").hidden = false;
  at("sign-out").hidden = !isAskedFor;
  watchFigures();
  openNamed();
}

// openNamed opens the mailbox and the requests that the page's address names, after a reload or by a link.
function openNamed() {
  if (at("signed-in").hidden) {
    return;
  }
  openRequests();
  open(namedMailbox());
}
addEventListener("hashchange", openNamed);
addEventListener("mailgate-open", (event) => open(event.detail));

function open(email) {
  if (email !== "") {
    at("email").value = email;
    lookUp(email);
  }
}

// leave forgets the key and everything shown with it.
function leave(why = "") {
  clearFigures();
  clearRequests();
  hideMailbox();
  hideTrial();
  hideSuppressions();
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
    enter(); // which changes the page's address: a password manager looks then at what was typed
    at("key").value = "";
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
  unnameMailbox();
  unplace();
  announce("Signed out.");
});
addEventListener("mailgate-unauthorized", () => {
  leave("This key is no longer valid.");
  unnameMailbox();
});

if (!isAskedFor || key() !== "") {
  enter();
} else {
  leave();
}
