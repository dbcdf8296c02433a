// Trying other tiers on the recorded emails.

import { writeAddress } from "./address.js";
import { busy, free } from "./busy.js";
import { announce, ask, errorText } from "./console_ask.js";
import { refusalLane } from "./console_lanes.js";
import { forgetTried, lookUp, markRefused, shownMailbox } from "./console_mailbox.js";
import { tableRow } from "./console_table.js";
import { count, span } from "./lengths.js";

const at = (id) => document.getElementById(id);
let asked = 0;
let redraw = () => {};

at("try").addEventListener("submit", (event) => {
  event.preventDefault();
  busy(at("try-now"), tryThem);
});
addEventListener("resize", () => redraw());

async function tryThem() {
  const mine = ++asked;
  const email = shownMailbox();
  const tiers = at("tiers").value.trim() || at("tiers").placeholder;
  at("tiers").value = tiers;
  const answer = await ask("/admin/what-if", email ? { tiers, email } : { tiers });
  if (mine !== asked) {
    return;
  }
  at("try-note").textContent = answer.status === 200 ? "" : errorText(answer);
  at("tried").hidden = answer.status !== 200;
  forgetTried();
  if (answer.status === 200) {
    showTrial(answer.body);
    announce(at("tried-sum").textContent);
    if (email && email === shownMailbox()) {
      markRefused(answer.body.mailbox.refused, answer.body.tiers);
    }
  }
}

// hideTrial forgets what was tried.
export function hideTrial() {
  asked++;
  free(at("try-now"));
  redraw = () => {};
  at("tried").hidden = true;
  at("tiers").value = "";
  for (const id of ["try-note", "tried-sum"]) {
    at(id).textContent = "";
  }
}

function showTrial(body) {
  const read = `${body.complete ? "" : "The first "}${count(body.mailboxes, "mailbox", "mailboxes")}`;
  at("tried-sum").textContent = `${read}, ${count(body.sends, "email")}: `
    + `${body.refused.toLocaleString()} refused in ${count(body.affected, "mailbox", "mailboxes")}.`;
  at("tried-tiers").replaceChildren(...comparison(body).map((texts) => tableRow(texts, ["", "", "", "count"])));
  showWorst(body);
}

// comparison has a row for each tier: its name, today's, the tried one, and how many that refuses.
function comparison({ today, limits }) {
  const text = (tier) => (tier ? `${tier.limit} in ${span(tier.window_ms)}` : "none");
  const names = new Set([...today, ...limits].map((tier) => tier.name));
  return [...names].map((name) => {
    const tried = limits.find((tier) => tier.name === name);
    return [name, text(today.find((tier) => tier.name === name)), text(tried), tried ? tried.refused.toLocaleString() : ""];
  });
}

function opener(email) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  writeAddress(button, email);
  button.addEventListener("click", () => {
    at("email").value = email;
    lookUp(email);
  });
  return button;
}

function showWorst({ worst, today, limits, server_time: serverTime }) {
  at("worst-of-all").hidden = worst.length === 0;
  const window = Math.max(...[...today, ...limits].map((tier) => tier.window_ms));
  const now = Date.parse(serverTime);
  const lanes = worst.map((one) => refusalLane(opener(one.email), one, window, now));
  at("worst").replaceChildren(...lanes.map((one) => one.line));
  redraw = () => lanes.forEach((one) => one.show());
  redraw();
}
