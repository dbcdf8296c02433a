// Trying other tiers on what is on record.

import { busy, free } from "./busy.js";
import { ask, complaint } from "./console_ask.js";
import { count, span } from "./lengths.js";

const at = (id) => document.getElementById(id);
let asked = 0;

// useTrial wires the card up. left is called when the key does not open it any more.
export function useTrial(announce, left) {
  at("try").addEventListener("submit", (event) => {
    event.preventDefault();
    busy(at("try-now"), () => tryThem(announce, left));
  });
}

async function tryThem(announce, left) {
  const mine = ++asked;
  const answer = await ask("/admin/what-if", { tiers: at("tiers").value.trim() });
  if (mine !== asked) {
    return;
  }
  if (answer.status === 401) {
    left("This key does not open the console any more.");
    return;
  }
  at("try-note").textContent = answer.status === 200 ? "" : complaint(answer);
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

function showTrial(body) {
  const looked = body.complete ? count(body.mailboxes, "mailbox", "mailboxes") : `The first ${count(body.mailboxes, "mailbox", "mailboxes")}`;
  at("tried-sum").textContent = `${looked}, ${count(body.sends, "mail")} on record: `
    + `${body.refused.toLocaleString()} would have been refused, in ${count(body.affected, "mailbox", "mailboxes")}.`;
  at("tried-tiers").replaceChildren(...body.limits.map((tier) => {
    const line = document.createElement("tr");
    for (const [text, name] of [[tier.name, ""], [`${tier.limit} in ${span(tier.window_ms)}`, ""], [tier.refused.toLocaleString(), "count"]]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      cell.className = name;
      line.append(cell);
    }
    return line;
  }));
}
