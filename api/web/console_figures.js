// Sends as they happen: the last hour and the totals, both counted by the server.

import { ask, errorText } from "./console_ask.js";
import { tableRow } from "./console_table.js";
import { moment } from "./lengths.js";

const at = (id) => document.getElementById(id);
const charts = ["sent", "refused", "failed"];
const interval = 2000; // milliseconds between requests
let timer = 0;
let round = 0;

// watchFigures polls until clearFigures.
export function watchFigures() {
  clearFigures();
  poll(++round);
}

// clearFigures stops, and leaves nothing in the page for who opens it next.
export function clearFigures() {
  round++;
  clearTimeout(timer);
  for (const name of charts) {
    at(`${name}-rate`).textContent = at(`${name}-peak`).textContent = "";
    at(`${name}-chart`).replaceChildren();
    at(`${name}-chart`).removeAttribute("aria-label");
  }
  for (const id of ["numbers", "refusals", "nodes", "since", "store-pill", "relay-pill"]) {
    at(id).replaceChildren();
  }
  showNote("");
}

async function poll(mine) {
  const answer = document.hidden ? undefined : await ask("/admin/figures");
  if (mine !== round) {
    return;
  }
  if (answer?.status === 200) {
    showNote("");
    showFigures(answer.body);
    at("signed-in").classList.remove("away");
  } else if (answer) {
    showNote(`${answer.status === 0 ? "Disconnected, retrying." : errorText(answer)} These figures are out of date.`);
    at("signed-in").classList.add("away");
  }
  timer = setTimeout(() => poll(mine), interval);
}

// showNote writes the alert only when it changes, as it is read aloud whenever it is written.
function showNote(text) {
  if (at("figures-note").textContent !== text) {
    at("figures-note").textContent = text;
  }
}

const total = (list) => list.reduce((sum, one) => sum + one.count, 0);

function showFigures(figures) {
  for (const name of charts) {
    drawChart(name, figures.last_hour[name]);
  }
  showNumbers(figures);
  showPills(figures);
  showRefusals(figures);
  showNodes(figures);
  at("since").textContent = `Since ${moment(Date.parse(figures.since))}`;
}

// showNodes shows the state of each node, if there may be several.
function showNodes({ all_nodes: all, nodes }) {
  at("of-nodes").hidden = nodes.length === 0 || nodes[0].node === "";
  at("nodes-note").textContent = all ? "" : "Redis is away: all figures are of this node.";
  at("nodes").replaceChildren(...nodes.toSorted((a, b) => a.node.localeCompare(b.node)).map((one) => {
    const state = one.away ? `away since ${moment(Date.parse(one.told))}` : !one.ready ? "not ready" : one.degraded_since ? `without Redis since ${moment(Date.parse(one.degraded_since))}` : "ready";
    const relay = one.relays_failing > 0 ? `${one.relays_failing} failing` : one.waiting > 0 ? `${one.waiting} waiting` : "ready";
    return tableRow([one.node, state, moment(Date.parse(one.since)), one.version, relay, one.suppressions_read && moment(Date.parse(one.suppressions_read))],
      ["code-text", one.away || !one.ready || one.degraded_since ? "bad" : "", "", "", one.relays_failing > 0 ? "bad" : "", ""]);
  }));
}

// A repeated Idempotency-Key that was answered as it should be is no failure, nor is a suppressed recipient.
const noFailures = ["sent", "replayed", "mismatch", "in-flight", "suppressed"];

function showNumbers(figures) {
  const failed = Object.entries(figures.sends).reduce((sum, [name, count]) => (noFailures.includes(name) ? sum : sum + count), 0);
  const numbers = [["Sent", figures.sends.sent ?? 0], ["Refused", total(figures.refused)], ["Failed", failed], ["Suppressed", figures.sends.suppressed ?? 0],
    ["Refunded", figures.refunds], ["Shadow refusals", total(figures.shadow_refused)], ["Resets", figures.resets]];
  at("numbers").replaceChildren(...numbers.map(([name, count]) => {
    const box = document.createElement("div");
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = name;
    value.textContent = count.toLocaleString();
    box.append(term, value);
    return box;
  }));
}

function showPills({ ready, degraded_since: since, relays }) {
  if (ready && since) {
    pill("store-pill", "wait", `storage away since ${moment(Date.parse(since))}`);
  } else {
    pill("store-pill", ready ? "good" : "bad", ready ? "storage ready" : "storage not ready");
  }
  const failing = relays.filter((relay) => relay.circuit_open).length;
  const waiting = relays.reduce((sum, relay) => sum + relay.waiting, 0);
  at("relay-pill").hidden = relays.length === 0;
  if (failing > 0) {
    pill("relay-pill", "bad", `${failing} of ${relays.length} relays failing`);
  } else {
    pill("relay-pill", "good", waiting > 0 ? `relay, ${waiting} waiting` : "relay ready");
  }
}

function pill(id, kind, text) {
  at(id).textContent = text;
  at(id).className = `pill ${kind}`;
}

function showRefusals(figures) {
  const rows = [
    ...figures.refused.map((one) => [one.rule, one.limit, one.count]),
    ...figures.shadow_refused.map((one) => [`${one.rule} (shadow)`, one.limit, one.count]),
  ];
  at("refusals").replaceChildren(...(rows.length === 0 ? [["none yet", "", 0]] : rows).map(([rule, limit, count]) =>
    tableRow([rule, limit, count.toLocaleString()], ["", "", "count"])));
}

// drawChart draws the rolling minutes of the last hour. The highest one reaches the top.
function drawChart(name, minutes) {
  const peak = Math.max(1, ...minutes);
  const latest = minutes.at(-1);
  at(`${name}-rate`).textContent = latest.toLocaleString();
  at(`${name}-peak`).textContent = peak.toLocaleString();
  const picture = at(`${name}-chart`);
  picture.setAttribute("aria-label", `${name} per minute in the last hour: now ${latest}, peak ${Math.max(...minutes)}`);
  const points = minutes.map((count, i) => `${(100 * i / (minutes.length - 1)).toFixed(2)},${(39 - 38 * count / peak).toFixed(2)}`);
  picture.replaceChildren(shape("polygon", ["0,40", ...points, "100,40"]), shape("polyline", points));
}

function shape(name, points) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  element.setAttribute("points", points.join(" "));
  return element;
}
