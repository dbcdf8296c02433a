// Trying the rules file, or other tiers, on the emails of a day.

import { busy, free } from "./busy.js";
import { announce, ask, errorText } from "./console_ask.js";
import { tableRow } from "./console_table.js";
import { count } from "./lengths.js";

const at = (id) => document.getElementById(id);
let asked = 0;

at("try").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("try-now"), tryThem);
});

async function tryThem() {
  const mine = ++asked;
  const tiers = at("tiers").value.trim();
  const answer = await ask("/admin/what-if", tiers ? { tiers } : {});
  if (mine !== asked) {
    return;
  }
  at("try-note").textContent = answer.status === 200 ? "" : errorText(answer);
  at("tried").hidden = answer.status !== 200;
  if (answer.status === 200) {
    showTrial(answer.body);
    announce(at("tried-sum").textContent);
  }
}

// hideTrial forgets what was tried.
export function hideTrial() {
  asked++;
  free(at("try-now"));
  at("tried").hidden = true;
  at("tiers").value = "";
  for (const id of ["try-note", "tried-sum"]) {
    at(id).textContent = "";
  }
}

function showTrial({ complete, sends, refused, challenged, mailboxes, visitors, rules }) {
  at("tried-sum").textContent = `${complete ? "" : "The first "}${count(sends, "email")}: ${refused.toLocaleString()} refused, `
    + `to ${count(mailboxes, "mailbox", "mailboxes")} for ${count(visitors, "visitor")}; ${challenged.toLocaleString()} asked for a challenge.`;
  at("tried-rules").replaceChildren(...rules.map((one) => tableRow([one.shadow ? `${one.rule} (shadow)` : one.rule, one.refused.toLocaleString()], ["", "count"])));
}
