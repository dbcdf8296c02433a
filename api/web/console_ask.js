// The console's requests, with the operator's key. The key is kept for this tab only, and is
// sent only in the header of these requests.

import { forget, recall, remember } from "./memory.js";

const storageKey = "mailgate-admin-key";
const timeout = 20_000; // milliseconds, more than mailgate takes to answer

export const key = () => recall(storageKey);
export const keepKey = (text) => remember(storageKey, text);
export const forgetKey = () => forget(storageKey);

// isAskedFor says whether this server needs a key.
export const isAskedFor = document.querySelector("meta[name=mailgate-key]").content !== "none";

// announce says something to screen readers.
export const announce = (text) => { document.getElementById("announce").textContent = text; };

const authorization = () => (key() === "" ? {} : { Authorization: `Bearer ${key()}` });

// listen gives the events of a path to tell as they come, and none when the server says that it is there. In
// the end it returns what ask would.
export async function listen(path, signal, tell) {
  try {
    const response = await fetch(path, { headers: { ...authorization(), Accept: "text/event-stream" }, cache: "no-store", credentials: "omit", signal });
    if (response.status !== 200) {
      return { status: response.status, body: await response.json() };
    }
    let text = "";
    for await (const part of chunks(response.body.pipeThrough(new TextDecoderStream()).getReader())) {
      const events = (text + part).split("\n\n");
      text = events.pop();
      const whose = events.findLast((event) => event.startsWith("event: all_nodes"));
      tell(events.slice(events.lastIndexOf(whose) + 1).filter((event) => event.startsWith("data: ")).map((event) => JSON.parse(event.slice(6))), whose?.endsWith("true"));
    }
  } catch { /* as when it ends */ }
  return { status: 0, body: {} };
}

async function* chunks(reader) {
  for (let one = await reader.read(); !one.done; one = await reader.read()) {
    yield one.value;
  }
}

// ask returns the status and the JSON that came back; status 0 where nothing did. A 401 ends the
// session: the page forgets what it shows, and what was asked is out of date then.
export async function ask(path, body, method = body === undefined ? "GET" : "POST") {
  const headers = authorization();
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  try {
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(timeout),
    });
    const answer = { status: response.status, body: response.status === 204 ? {} : await response.json() };
    if (answer.status === 401) {
      dispatchEvent(new Event("mailgate-unauthorized"));
    }
    return answer;
  } catch {
    return { status: 0, body: { detail: "No answer from the server." } };
  }
}

// errorText is the text to show for an error.
export function errorText({ status, body }) {
  if (Array.isArray(body.errors) && body.errors.length > 0) {
    return body.errors.map((wrong) => wrong.detail).join(" ");
  }
  return body.detail || body.title || `The server answered ${status}.`;
}
