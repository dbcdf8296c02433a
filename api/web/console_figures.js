// What becomes of the sends, as it happens: totals from the server, and how fast they
// grow from one question to the next.

import { ask, complaint } from "./console_ask.js";

const at = (id) => document.getElementById(id);
const interval = 2000; // milliseconds between questions
const kept = 61; // samples, so two minutes of rates
let samples = [];
let timer = 0;
let round = 0;

// watchFigures asks again and again, until stopWatching. left is called when the key does
// not open them any more.
export function watchFigures(left) {
  stopWatching();
  poll(++round, left);
}

export function stopWatching() {
  round++;
  clearTimeout(timer);
  samples = [];
}

async function poll(mine, left) {
  const answer = document.hidden ? undefined : await ask("/admin/figures");
  if (mine !== round) {
    return;
  }
  if (answer?.status === 401) {
    left("This key does not open the console any more.");
    return;
  }
  if (answer) {
    tell(answer.status === 200 ? "" : `${complaint(answer)} These figures are old.`);
  }
  if (answer?.status === 200) {
    showFigures(answer.body);
  }
  timer = setTimeout(() => poll(mine, left), interval);
}

// tell writes the alert only when it says something else, as it is read aloud whenever it is
// written.
function tell(text) {
  if (at("figures-note").textContent !== text) {
    at("figures-note").textContent = text;
  }
}

const total = (list) => list.reduce((sum, one) => sum + one.count, 0);

// showFigures draws one answer beside those before it.
export function showFigures(figures) {
  const now = Date.parse(figures.server_time);
  if (samples.length > 0 && (samples.at(-1).since !== figures.since || samples.at(-1).now > now)) {
    samples = []; // another server, or another clock
  }
  samples.push({ now, since: figures.since, sent: figures.sends.sent ?? 0, refused: total(figures.refused) });
  samples = samples.slice(-kept);
  showNumbers(figures);
  showPills(figures);
  showRefusals(figures);
  drawChart("sent");
  drawChart("refused");
  at("since").textContent = `Counted by this server since ${new Date(figures.since).toLocaleString()}.`;
}

// What is no failure: a key that came again was answered as it should be.
const noFailures = ["sent", "replayed", "mismatch", "in-flight"];

function showNumbers(figures) {
  const failed = Object.entries(figures.sends).reduce((sum, [name, count]) => (noFailures.includes(name) ? sum : sum + count), 0);
  const numbers = [["Sent", figures.sends.sent ?? 0], ["Refused", total(figures.refused)], ["Failed", failed],
    ["Given back", figures.given_back], ["Shadow refusals", total(figures.shadow_refused)], ["Resets", figures.resets]];
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

function showPills(figures) {
  pill("store-pill", figures.ready, "store ready", "store not ready");
  if (figures.ready && figures.degraded_since) {
    at("store-pill").textContent = `store away, alone since ${new Date(figures.degraded_since).toLocaleTimeString()}`;
    at("store-pill").className = "pill";
  }
  const resting = figures.relays.filter((relay) => relay.resting).length;
  const waiting = figures.relays.reduce((sum, relay) => sum + relay.waiting, 0);
  at("relay-pill").hidden = figures.relays.length === 0;
  pill("relay-pill", resting === 0, waiting > 0 ? `relay, ${waiting} waiting` : "relay ready", `${resting} of ${figures.relays.length} relays resting`);
}

function pill(id, good, yes, no) {
  at(id).textContent = good ? yes : no;
  at(id).className = `pill ${good ? "good" : "bad"}`;
}

function showRefusals(figures) {
  const lines = [
    ...figures.refused.map((one) => [one.rule, one.limit, one.count]),
    ...figures.shadow_refused.map((one) => [`${one.rule} (shadow)`, one.limit, one.count]),
  ];
  at("refusals").replaceChildren(...(lines.length === 0 ? [["nobody yet", "", 0]] : lines).map((texts) => {
    const line = document.createElement("tr");
    texts.forEach((text, i) => {
      const cell = document.createElement("td");
      cell.textContent = text.toLocaleString();
      cell.className = i === 2 ? "count" : "";
      line.append(cell);
    });
    return line;
  }));
}

// drawChart draws how fast one count grew, a minute's worth at each step.
function drawChart(name) {
  const rates = samples.slice(1).map((sample, i) => {
    const minutes = (sample.now - samples[i].now) / 60_000;
    return minutes > 0 ? (sample[name] - samples[i][name]) / minutes : 0;
  });
  const latest = rates.at(-1) ?? 0;
  const highest = Math.max(1, ...rates);
  at(`${name}-rate`).textContent = latest < 10 ? latest.toFixed(1) : Math.round(latest).toLocaleString();
  const picture = at(`${name}-chart`);
  picture.setAttribute("aria-label", `${name}, a minute: now ${Math.round(latest)}, at most ${Math.round(Math.max(0, ...rates))} in the last two minutes`);
  const x = (i) => 100 - (rates.length - 1 - i) * (100 / (kept - 2));
  const points = rates.map((rate, i) => `${x(i).toFixed(2)},${(38 - 36 * rate / highest).toFixed(2)}`);
  if (points.length === 0) {
    picture.replaceChildren();
    return;
  }
  picture.replaceChildren(
    shape("polygon", [`${x(0).toFixed(2)},40`, ...points, "100,40"]),
    shape("polyline", points),
  );
}

function shape(name, points) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  element.setAttribute("points", points.join(" "));
  return element;
}
