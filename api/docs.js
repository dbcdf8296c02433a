// Trying a request to this server with the reader's key.
"use strict";
const busy = ["aria-busy", "aria-disabled"];
const held = {}; // by a page whose browser lets no site store anything
const place = { api: "mailgate-docs-api-key", admin: "mailgate-admin-key" };
for (const form of document.querySelectorAll("form.try")) {
  const { method, path, key } = form.dataset;
  const field = (name) => form.querySelector(`[data-part="${name}"]`);
  const out = form.querySelector("output");
  const secret = field("key");
  if (secret) {
    form.closest("details").addEventListener("toggle", () => { secret.value = recall(place[key]); });
    secret.addEventListener("input", () => remember(place[key], secret.value));
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.hasAttribute(busy[0])) return; // it is not disabled, since it would lose the focus
    const headers = {};
    if (secret?.value) headers.Authorization = `Bearer ${secret.value}`;
    const body = field("body")?.value.trim();
    if (body) headers["Content-Type"] = "application/json";
    let url = path;
    for (const input of form.querySelectorAll("[data-parameter]")) {
      if (input.dataset.in === "path") url = url.replace(`{${input.dataset.parameter}}`, encodeURIComponent(input.value));
      else if (input.value) headers[input.dataset.parameter] = input.value;
    }
    for (const state of busy) button.setAttribute(state, "true");
    out.textContent = "…";
    try {
      const answer = await fetch(url, { method, headers, body: body || undefined, cache: "no-store", credentials: "omit", redirect: "error" });
      const text = await answer.text();
      out.textContent = [`${answer.status} ${answer.statusText}`, ...[...answer.headers].map(([name, value]) => `${name}: ${value}`), "", pretty(text)].join("\n");
    } catch (problem) {
      out.textContent = `No answer: ${problem.message}`;
    }
    for (const state of busy) button.removeAttribute(state);
  });
  form.hidden = false;
}
function remember(name, text) {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    held[name] = text;
  }
}
function recall(name) {
  try {
    return held[name] ?? sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text.length > 20000 ? `${text.slice(0, 20000)}…` : text;
  }
}
