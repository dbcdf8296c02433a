// One request as the console shows it: what came of it, why, and the whole.

import { announce, isAskedFor } from "./console_ask.js";
import { clock } from "./lengths.js";

// kinds are those of outcomes that are neither a failure nor a matter of course.
const kinds = { sent: "good", correct: "good", taken: "good", "quota-exceeded": "wait", challenged: "wait", "recipient-denied": "wait", incorrect: "wait",
  rejected: "bad", unavailable: "bad", deferred: "bad", busy: "bad", "store-unavailable": "bad", unknown: "bad", failed: "bad" };

// outcome is the word for what came of it.
export function outcome(one) {
  return Object.assign(document.createElement("span"), {
    className: `pill ${kinds[one.outcome] ?? ""}`,
    textContent: one.count ? `${one.outcome} ×${one.count.toLocaleString()}` : one.outcome,
  });
}

// why says what led to it.
export function why(one) {
  const refused = one.outcome !== "sent" && one.rule !== undefined; // else it is what the next one waits for
  return [refused && `${one.rule}: ${one.limit}`, refused && one.wait_ms > 0 && `wait ${clock(one.wait_ms)}`, one.reply, one.cause, one.reason, one.source].filter(Boolean).join(" · ");
}

// whole is all that is known of it, to be copied as it is or as a command that asks for it again. Where the browser
// lets nothing be copied, tell gets the text.
export function whole(one, audited, tell) {
  const box = document.createElement("div");
  const facts = document.createElement("dl");
  facts.append(...Object.entries(one).filter(([name]) => name !== "position").map(([name, value]) => {
    const fact = document.createElement("div");
    fact.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: value }));
    return fact;
  }));
  box.append(facts, copier("Copy as JSON", () => JSON.stringify(one), tell), copier("Copy as curl", () => asCurl(pathOf(one, audited)), tell));
  return box;
}

// pathOf finds one of before the server gave requests an ID by its time.
function pathOf(one, audited) {
  const next = new Date(Date.parse(one.at) + 1).toISOString();
  const query = new URLSearchParams(one.request_id ? { request_id: one.request_id } : one.id ? { id: one.id } : { since: one.at, until: next });
  if (audited) {
    query.set("audited", "true");
  }
  return `/admin/requests?${query}`;
}

// asCurl is the command that asks for a path. Its key is the operator's to set.
export const asCurl = (path) => `curl -s '${new URL(path, location)}'${isAskedFor ? ' -H "Authorization: Bearer $ADMIN"' : ""}`;

function copier(label, text, tell) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: label });
  button.addEventListener("click", () => copy(button, text(), tell));
  return button;
}

// copy puts a text into the clipboard, and says so on the button for a moment.
export async function copy(button, text, tell) {
  const label = button.dataset.label ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied.");
    setTimeout(() => { button.textContent = label; }, 2000);
  } catch {
    tell(text); // the page came without TLS, or the operator said no
  }
}
