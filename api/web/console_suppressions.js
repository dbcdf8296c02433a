// The suppression list: its pages, adding to it and removing from it.

import { writeAddress } from "./address.js";
import { busy, free } from "./busy.js";
import { announce, ask, errorText } from "./console_ask.js";
import { tableRow } from "./console_table.js";
import { moment } from "./lengths.js";

const at = (id) => document.getElementById(id);
const show = at("show-suppressions");
let next = ""; // the name of the page to show
let visit = 0; // counts the operators that signed in

show.addEventListener("click", () => busy(show, showPage));

at("suppress").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("suppress-now"), suppress);
});

// during asks, and returns nothing to an operator who signed in after that.
async function during(...asked) {
  const mine = visit;
  const answer = await ask(...asked);
  return mine === visit ? answer : undefined;
}

// say writes what was done, or what was wrong.
function say(done, wrong = "") {
  at("suppress-done").textContent = done;
  at("suppress-note").textContent = wrong;
  announce(done);
}

const entryOf = (email) => `/admin/suppressions/${encodeURIComponent(email)}`;

async function suppress() {
  const email = at("suppress-email").value.trim();
  if (email === "") {
    say("", "Type an address.");
    at("suppress-email").focus();
    return;
  }
  const answer = await during(entryOf(email), { source: at("suppress-source").value.trim() }, "PUT");
  if (!answer) {
    return;
  }
  if (answer.status !== 204) {
    say("", errorText(answer));
    return;
  }
  at("suppress-email").value = "";
  at("suppress-source").value = "";
  say(`${email} gets no email until you remove it.`);
  if (!at("suppressed").hidden) {
    clear();
    await showPage();
  }
}

async function showPage() {
  const answer = await during(`/admin/suppressions?after=${encodeURIComponent(next)}`);
  if (!answer) {
    return;
  }
  if (answer.status !== 200) {
    say("", errorText(answer));
    return;
  }
  next = answer.body.next ?? "";
  at("suppressions").append(...answer.body.suppressions.map(row));
  const n = at("suppressions").rows.length;
  at("suppressed").hidden = n === 0;
  show.hidden = next === "" && n > 0;
  show.textContent = next === "" ? "The list is empty. Look again" : "Show more";
  announce(n === 0 ? "The list is empty." : `${n} shown.`);
}

function row(entry) {
  const until = entry.until ? moment(Date.parse(entry.until)) : "it is removed";
  const line = tableRow(["", entry.reason, until, entry.source, moment(Date.parse(entry.since)), ""]);
  writeAddress(line.cells[0], entry.email);
  const remove = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "Remove", ariaLabel: `Remove ${entry.email}` });
  remove.addEventListener("click", () => busy(remove, () => removeEntry(entry.email)));
  line.cells[5].append(remove);
  return line;
}

async function removeEntry(email) {
  const answer = await during(entryOf(email), undefined, "DELETE");
  if (!answer) {
    return;
  }
  if (answer.status !== 204) {
    say("", errorText(answer));
    return;
  }
  clear();
  await showPage();
  say(`${email} was removed, for all reasons.`);
  at("suppressions-title").focus();
}

function clear() {
  next = "";
  at("suppressions").replaceChildren();
}

// hideSuppressions forgets the list.
export function hideSuppressions() {
  visit++;
  clear();
  free(show);
  free(at("suppress-now"));
  at("suppressed").hidden = true;
  show.hidden = false;
  show.textContent = "Show the list";
  for (const id of ["suppress-email", "suppress-source"]) {
    at(id).value = "";
  }
  say("");
}
