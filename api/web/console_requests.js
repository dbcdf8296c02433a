// What the node did last, as it happens.

import { ask, errorText, listen } from "./console_ask.js";
import { asCurl, copy, outcome, whole, why } from "./console_entry.js";
import { place, placed } from "./console_place.js";
import { tableRow } from "./console_table.js";
import { moment } from "./lengths.js";

const at = (id) => document.getElementById(id);
const most = 100; // rows
const retry = 2000; // milliseconds until it connects again
const silence = 15_000; // the server says something every five seconds
const countEvery = 10_000;
const nameEvery = 60_000;
const lists = { outcome: "outcomes", rule: "rules", key: "keys", door: "doors", node: "nodes" }; // of the filter, as the server calls them
let watch = new AbortController();
let timer = 0;
let heard = 0;
let audited = false; // only what operators did
const known = new Map(); // the addresses that were typed, by hash

at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  watchRequests();
});
at("find").addEventListener("change", (event) => event.target.matches("select") && watchRequests());
at("other-log").addEventListener("click", () => {
  clearFilter(); // the other log has little of what one log's filter names
  showAudited(!audited);
  watchRequests();
});
at("copy-curl").addEventListener("click", () => copy(at("copy-curl"), asCurl(path()), showNote));

// findRequests shows the requests of a mailbox that was looked up.
export function findRequests({ mailbox, email }) {
  known.set(mailbox, email);
  find(mailbox);
}

function find(mailbox) {
  if (at("find-whose").value !== mailbox) {
    at("find-whose").value = mailbox;
    watchRequests();
  }
}

const isHash = (text) => /^[0-9a-f]{10}$/.test(text);

// path is what the form asks for.
function path() {
  const query = new URLSearchParams();
  const set = (name, text) => text !== "" && query.set(name, text);
  const whose = at("find-whose").value.trim();
  set(whose.includes("@") ? "email" : isHash(whose) ? "mailbox" : "visitor", whose);
  for (const name in lists) {
    set(name, at(`find-${name}`).value);
  }
  set("audited", audited ? "true" : "");
  const minutes = Number(at("find-minutes").value);
  set("since", minutes > 0 ? new Date(Date.now() - minutes * 60_000).toISOString() : "");
  return `/admin/requests${query.size === 0 ? "" : "?"}${query}`;
}

// openRequests shows those that the page's address names.
export function openRequests() {
  at("find-whose").value = placed("whose") || placed("mailbox");
  at("find-minutes").value = placed("minutes");
  for (const name in lists) {
    offer(name, [], placed(name));
  }
  showAudited(placed("log") === "audit");
  watchRequests();
}

// nameFilter writes the filter into the page's address.
function nameFilter() {
  const whose = at("find-whose").value.trim();
  const texts = { log: audited ? "audit" : "", whose: isHash(whose) && whose !== placed("mailbox") ? whose : "" };
  for (const name of [...Object.keys(lists), "minutes"]) {
    texts[name] = at(`find-${name}`).value;
  }
  place(texts);
}

// offer fills a list of the filter. One with nothing to choose is hidden.
function offer(name, names, chosen = at(`find-${name}`).value) {
  const list = at(`find-${name}`);
  const all = chosen === "" || names.includes(chosen) ? names : [...names, chosen];
  list.replaceChildren(new Option(list.dataset.any, ""), ...all.map((one) => new Option(one, one, false, one === chosen)));
  list.hidden = all.length === 0;
}

function clearFilter() {
  at("find").reset();
  for (const name in lists) {
    offer(name, []);
  }
}

// watchRequests shows what the form asks for until clearRequests.
function watchRequests() {
  stop();
  nameFilter();
  at("requests").replaceChildren();
  showNote("");
  watch = new AbortController();
  connect(watch, path());
  countRefused(watch);
  listNames(watch);
}

// clearRequests stops, and leaves nothing in the page for who opens it next.
export function clearRequests() {
  stop();
  clearFilter();
  showAudited(false);
  known.clear();
  for (const id of ["requests", "most-refused", "requests-pill"]) {
    at(id).replaceChildren();
  }
  showNote("");
}

function showAudited(yes) {
  audited = yes;
  at("requests-title").textContent = yes ? "Audit log" : "Requests";
  at("other-log").textContent = yes ? "Requests" : "Audit log";
}

function stop() {
  watch.abort();
  clearInterval(timer);
}

async function connect(mine, what) {
  const attempt = new AbortController();
  mine.signal.addEventListener("abort", () => attempt.abort());
  let live = "live";
  heard = Date.now();
  clearInterval(timer);
  timer = setInterval(() => Date.now() - heard > silence && attempt.abort(), 1000);
  const answer = await listen(what, attempt.signal, (requests, ofAll) => {
    if (ofAll !== undefined) { // they begin anew
      at("requests").replaceChildren();
      live = ofAll ? "live, all nodes" : "live, this node";
    }
    heard = Date.now();
    dispatchEvent(new CustomEvent("mailgate-requests", { detail: requests }));
    pill("good", live);
    requests.forEach(insert);
    while (at("requests").children.length > most) {
      at("requests").lastElementChild.remove();
    }
  });
  if (mine !== watch || mine.signal.aborted) {
    return;
  }
  if (answer.status === 422) {
    pill("bad", "stopped");
    showNote(errorText(answer));
    return;
  }
  pill("bad", "Disconnected, retrying");
  setTimeout(() => mine === watch && !mine.signal.aborted && connect(mine, what), retry);
}

function pill(kind, text) {
  if (at("requests-pill").textContent !== text) {
    at("requests-pill").textContent = text;
    at("requests-pill").className = `pill ${kind}`;
  }
}

function showNote(text) {
  at("find-note").textContent = text;
}

// insert puts one in its place by time: a node may tell later than others.
function insert(one) {
  const line = row(one);
  line.dataset.position = one.position;
  at("requests").insertBefore(line, [...at("requests").children].find((other) => other.dataset.position < one.position) ?? null);
}

function row(one) {
  const line = tableRow(["", "", "", [one.key, one.door, one.visitor].filter(Boolean).join(" · "), why(one), one.id ?? one.request_id ?? "", one.node ?? ""],
    ["", "", "", "", "", "code-text", ""]);
  line.children[0].append(unfolder(one, line));
  line.children[1].append(outcome(one));
  if (one.mailbox) {
    line.children[2].append(opener(one.mailbox));
  }
  return line;
}

// unfolder opens a row into the whole request, in a row of its own below it.
function unfolder(one, line) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "plain unfold", textContent: moment(Date.parse(one.at)), ariaExpanded: "false" });
  let below;
  button.addEventListener("click", () => {
    below?.remove();
    button.ariaExpanded = below ? "false" : "true";
    if (below) {
      below = undefined;
      return;
    }
    below = tableRow([""]);
    below.className = "whole";
    below.children[0].colSpan = line.children.length;
    below.children[0].append(whole(one, audited, showNote));
    line.after(below);
  });
  return button;
}

// opener opens a mailbox whose address was typed, and else shows the requests of its hash.
function opener(mailbox) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain code-text";
  button.textContent = mailbox;
  button.addEventListener("click", () => {
    const typed = at("find-whose").value.trim();
    const email = typed.includes("@") ? typed : known.get(mailbox);
    if (email === undefined) {
      find(mailbox);
    } else {
      dispatchEvent(new CustomEvent("mailgate-open", { detail: email }));
    }
  });
  return button;
}

async function countRefused(mine) {
  const answer = document.hidden ? undefined : await ask("/admin/requests/refused");
  if (mine !== watch || mine.signal.aborted) {
    return;
  }
  if (answer?.status === 200) {
    const of = (who, list) => list.map((one) => tableRow([who, one.name, one.count.toLocaleString()], ["", "code-text", "count"]));
    const rows = [...of("Mailbox", answer.body.mailboxes), ...of("Visitor", answer.body.visitors), ...of("Caller", answer.body.keys)];
    at("most-refused").replaceChildren(...(rows.length === 0 ? [tableRow(["none", "", "0"], ["", "", "count"])] : rows));
  }
  setTimeout(() => mine === watch && !mine.signal.aborted && countRefused(mine), countEvery);
}

async function listNames(mine) {
  const answer = document.hidden ? undefined : await ask(`/admin/requests/names${audited ? "?audited=true" : ""}`);
  if (mine !== watch || mine.signal.aborted) {
    return;
  }
  for (const [name, all] of Object.entries(answer?.status === 200 ? lists : {})) {
    if (at(`find-${name}`) !== document.activeElement) { // it may be open
      offer(name, answer.body[all].map((one) => one.name));
    }
  }
  setTimeout(() => mine === watch && !mine.signal.aborted && listNames(mine), nameEvery);
}
