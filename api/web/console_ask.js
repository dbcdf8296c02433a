// The console's requests, with the operator's key. The key is kept for this tab only, and is
// sent only in the header of these requests.

import { forget, recall, remember } from "./memory.js";

const place = "mailgate-admin-key";
const timeout = 20_000; // milliseconds, more than mailgate takes to answer

export const key = () => recall(place);
export const keepKey = (text) => remember(place, text);
export const forgetKey = () => forget(place);

// isAskedFor says whether this server needs a key.
export const isAskedFor = document.querySelector("meta[name=mailgate-key]").content !== "none";

// ask returns the status and the JSON that came back; status 0 where nothing did.
export async function ask(path, body) {
  const headers = {};
  if (key() !== "") {
    headers.Authorization = `Bearer ${key()}`;
  }
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  try {
    const response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(timeout),
    });
    return { status: response.status, body: await response.json() };
  } catch {
    return { status: 0, body: { detail: "No answer from the server." } };
  }
}

// complaint is the text to show for an error.
export function complaint({ status, body }) {
  if (Array.isArray(body.errors) && body.errors.length > 0) {
    return body.errors.map((wrong) => wrong.detail).join(" ");
  }
  return body.detail || body.title || `The server answered ${status}.`;
}
