// A mailbox's history on a time line. Each tier has a lane as long as its window, with
// now at the right end, and the emails in it drift to the left. A full tier opens when the
// email that blocks it leaves the lane.

import { clock, span } from "./lengths.js";

const inset = 11; // px between the ends of a lane and the centres of its first and last dot
const nearest = 20; // px between the centres of two dots; closer emails share one

const svg = (name, attributes, text = "") => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.textContent = text;
  return element;
};

// drawLanes fills the list with the lanes of an answer, and returns what shows them so
// many milliseconds later. Where the mailbox is not open, no lane says when it is.
export function drawLanes(list, { limits, sends, server_time: serverTime }, open) {
  const now = Date.parse(serverTime);
  const times = sends.map((send) => Date.parse(send.at));
  const lanes = limits.map((tier) => lane(tier, times, now, open));
  list.replaceChildren(...lanes.map((one) => one.line));
  return (gone) => lanes.forEach((one) => one.show(gone));
}

function lane(tier, times, now, open) {
  const [line, state, picture] = emptyLane(`${tier.name} · ${tier.limit} in ${span(tier.window_ms)}`);
  const show = (gone) => {
    const at = Math.max(now + gone, times.at(-1) ?? 0); // a clock set back counts as the newest
    const inside = times.filter((time) => at - time < tier.window_ms);
    const blocker = inside.length >= tier.limit ? inside.at(-tier.limit) : undefined;
    const wait = blocker === undefined ? 0 : blocker + tier.window_ms - at;
    line.classList.toggle("full", wait > 0);
    state.textContent = !open ? `${inside.length} of ${tier.limit} used` : wait > 0 ? `next in ${clock(wait)}` : `${tier.limit - inside.length} left`;
    picture.setAttribute("aria-label", `${inside.length} of ${tier.limit} emails in the last ${span(tier.window_ms)}`);
    draw(picture, tier.window_ms, at, inside, blocker);
  };
  return { line, show };
}

function emptyLane(title) {
  const line = document.createElement("li");
  const head = document.createElement("div");
  const name = document.createElement("strong");
  const state = document.createElement("span");
  head.className = "head";
  name.append(title);
  head.append(name, state);
  const picture = svg("svg", { role: "img" });
  line.append(head, picture);
  return [line, state, picture];
}

function draw(picture, window, at, times, blocker) {
  const width = picture.clientWidth;
  if (width === 0) {
    return;
  }
  const x = (time) => inset + (width - 2 * inset) * (time + window - at) / window;
  const all = [svg("rect", { class: "band", x: 0, y: 2, width, height: 28, rx: 6 })];
  if (blocker !== undefined) {
    all.push(svg("rect", { class: "wait", x: 0, y: 3, width: Math.max(0, x(blocker)), height: 26, rx: 5 }));
    all.push(svg("line", { class: "edge", x1: x(blocker), x2: x(blocker), y1: 3, y2: 29 }));
  }
  for (const dot of dots(times, x)) {
    const name = dot.includes(blocker) ? "send blocks" : "send";
    all.push(svg("circle", { class: name, cx: x(dot[0]), cy: 16, r: dot.length > 1 ? 9 : 7, "data-emails": dot.length }));
    if (dot.length > 1) {
      all.push(svg("text", { class: "many", x: x(dot[0]), y: 16 }, dot.length));
    }
  }
  picture.replaceChildren(...all, svg("text", { x: 0, y: 37 }, `${span(window)} ago`), svg("text", { x: width, y: 37, "text-anchor": "end" }, "now"));
}

// dots groups the times that are too close to be distinguished.
function dots(times, x) {
  const groups = [];
  for (const time of times) {
    if (groups.length > 0 && x(time) - x(groups.at(-1)[0]) < nearest) {
      groups.at(-1).push(time);
    } else {
      groups.push([time]);
    }
  }
  return groups;
}
