// All that happened to a mailbox: the requests about it, what operators did, and the emails and suppressions on record
// from before these.

import { ask, errorText } from "./console_ask.js";
import { outcome, why } from "./console_entry.js";
import { moment } from "./lengths.js";

const at = (id) => document.getElementById(id);
const most = 100; // entries
const nearly = 60_000; // milliseconds between a suppression and the request that led to it, at most
let shown; // the answer about the mailbox
let known = new Map(); // its requests
let failure = ""; // to read them

// showTimeline shows that of a mailbox that was looked up.
export async function showTimeline(body) {
  if (body.mailbox !== shown?.mailbox) {
    known = new Map();
  }
  shown = body;
  draw();
  const answer = await ask(`/admin/requests?mailbox=${body.mailbox}&limit=${most}`);
  if (shown === body) {
    failure = answer.status === 200 ? "" : errorText(answer);
    add(answer.body.requests ?? []);
  }
}

export function hideTimeline() {
  shown = undefined;
  at("timeline").replaceChildren();
  at("timeline-note").textContent = failure = "";
}

// The list of requests has those that come.
addEventListener("mailgate-requests", (event) => {
  if (shown !== undefined) {
    add(event.detail.filter((one) => one.mailbox === shown.mailbox));
  }
});

// add takes each once, whichever node and list it is from.
function add(requests) {
  for (const one of requests) {
    known.set([one.at, one.request_id, one.outcome].join(" "), one);
  }
  draw();
}

const place = (one) => `${one.at} ${one.position ?? ""}`; // in order, also within a millisecond

function draw() {
  const requests = [...known.values()];
  const sends = shown.sends.filter((send) => !requests.some((one) => one.id === send.id)).map((send) => ({ ...send, outcome: "sent" }));
  const suppressions = shown.suppressions.filter(({ reason, since }) => since && !requests.some((one) => one.reason === reason && Math.abs(Date.parse(one.at) - Date.parse(since)) < nearly))
    .map(({ reason, source, since }) => ({ at: since, outcome: "recipient suppressed", reason, source }));
  const all = [...requests, ...sends, ...suppressions].sort((a, b) => (place(a) < place(b) ? 1 : -1)).slice(0, most);
  at("timeline").replaceChildren(...all.map(item));
  at("timeline-note").textContent = failure || (all.length === 0 ? "Nothing is on record." : "");
}

function item(one) {
  const line = document.createElement("li");
  const time = Object.assign(document.createElement("time"), { dateTime: one.at, textContent: moment(Date.parse(one.at)) });
  const text = Object.assign(document.createElement("span"), { textContent: why(one) });
  line.append(time, outcome(one), text);
  if (one.id) {
    line.append(Object.assign(document.createElement("span"), { className: "code-text", textContent: one.id }));
  }
  return line;
}
