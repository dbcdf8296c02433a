// A mailbox's history on a time line. Each tier has a lane as long as its window, with
// now at the right end, and the mails in it drift to the left. A tier that is full opens
// when the mail that blocks it leaves the lane: how far that still is, is the wait.

import { clock, span } from "./lengths.js";

const svg = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  return element;
};

// drawLanes fills the list with the lanes of an answer, and returns what shows them so
// many milliseconds later.
export function drawLanes(list, { limits, sends, server_time: serverTime }) {
  const now = Date.parse(serverTime);
  const times = sends.map((send) => Date.parse(send.at));
  const lanes = limits.map((tier) => lane(tier, times, now));
  list.replaceChildren(...lanes.map((one) => one.line));
  return (gone) => lanes.forEach((one) => one.show(gone));
}

function lane(tier, times, now) {
  const line = document.createElement("li");
  const head = document.createElement("div");
  const name = document.createElement("strong");
  const state = document.createElement("span");
  head.className = "head";
  name.textContent = `${tier.name} · ${tier.limit} in ${span(tier.window_ms)}`;
  head.append(name, state);
  const picture = svg("svg", { role: "img" });
  line.append(head, picture);
  const show = (gone) => {
    const at = Math.max(now + gone, times.at(-1) ?? 0); // a clock set back counts as the newest
    const inside = times.filter((time) => at - time < tier.window_ms);
    const blocker = inside.length >= tier.limit ? inside.at(-tier.limit) : undefined;
    const wait = blocker === undefined ? 0 : blocker + tier.window_ms - at;
    line.classList.toggle("full", wait > 0);
    state.textContent = wait > 0 ? `opens in ${clock(wait)}` : `${tier.limit - inside.length} left`;
    picture.setAttribute("aria-label", `${inside.length} of ${tier.limit} mails in the last ${span(tier.window_ms)}`);
    const x = (time) => `${(100 * (time + tier.window_ms - at) / tier.window_ms).toFixed(3)}%`;
    picture.replaceChildren(...shapes(inside, blocker, x, tier));
  };
  return { line, show };
}

function shapes(inside, blocker, x, tier) {
  const all = [svg("rect", { class: "band", x: 0, y: 2, width: "100%", height: 28, rx: 6 })];
  if (blocker !== undefined) {
    all.push(svg("rect", { class: "wait", x: 0, y: 3, width: x(blocker), height: 26, rx: 5 }));
    all.push(svg("line", { class: "edge", x1: x(blocker), x2: x(blocker), y1: 3, y2: 29 }));
  }
  for (const time of inside) {
    all.push(svg("circle", { class: time === blocker ? "send blocks" : "send", cx: x(time), cy: 16, r: 7 }));
  }
  const from = svg("text", { x: 0, y: 37 });
  from.textContent = `${span(tier.window_ms)} ago`;
  const to = svg("text", { x: "100%", y: 37, "text-anchor": "end" });
  to.textContent = "now";
  return [...all, from, to];
}
