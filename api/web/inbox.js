// The inbox page: the mails as they arrive, and the one that is open.

import { post, showBadge, watchMails } from "./ask.js";

const at = (id) => document.getElementById(id);
let opened = ""; // which mail is
let asked = 0; // a mail that comes when another was asked for is not shown

// which tells a mail from all others: the next mailgate dev counts from 1 again.
const which = (mail) => `${mail.id} ${mail.received_ms}`;

const time = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function mailLine(mail, isNew) {
  const line = document.createElement("li");
  const button = document.createElement("button");
  const subject = document.createElement("strong");
  const facts = document.createElement("small");
  const when = document.createElement("time");
  button.type = "button";
  button.dataset.mail = which(mail);
  button.className = isNew ? "new" : "";
  subject.textContent = mail.subject;
  facts.textContent = mail.to.join(", ");
  when.textContent = time(mail.received_ms);
  button.append(subject, when, facts);
  when.dateTime = new Date(mail.received_ms).toISOString();
  button.addEventListener("click", async () => {
    await open(mail.id);
    enter();
  });
  line.append(button);
  return line;
}

function mark() {
  for (const button of at("mails").querySelectorAll("button")) {
    if (button.dataset.mail === opened) {
      button.setAttribute("aria-current", "true");
      button.classList.remove("new");
    } else {
      button.removeAttribute("aria-current");
    }
  }
}

// Where there is no room for both, the mail takes the place of the list, and the way back
// is a button as well as the browser's own.
const narrow = matchMedia("(max-width: 52rem)");

function enter() {
  if (narrow.matches && !at("columns").classList.contains("reading")) {
    history.pushState("reading", "");
  }
  at("columns").classList.add("reading");
  fit();
  at("reader").focus({ preventScroll: !narrow.matches });
}

function leave() {
  at("columns").classList.remove("reading");
  at("mails").querySelector("[aria-current]")?.focus();
}

at("back").addEventListener("click", () => (history.state === "reading" ? history.back() : leave()));
addEventListener("popstate", leave);

// fit makes the frame as high as the mail in it. The frame runs no script; that its
// origin is ours lets this page look inside, and gives the mail nothing.
function fit() {
  const frame = at("html");
  const mail = frame.contentDocument?.documentElement;
  if (mail && frame.offsetParent) {
    frame.style.height = "0";
    frame.style.height = `${mail.scrollHeight + 2}px`;
  }
}

at("html").addEventListener("load", fit);
addEventListener("resize", fit);

async function open(id) {
  const mine = ++asked;
  const response = await fetch(`/demo/mails/${id}`);
  if (!response.ok) {
    return;
  }
  const mail = await response.json();
  if (mine !== asked) {
    return;
  }
  opened = which(mail);
  at("none").hidden = true;
  at("opened").hidden = false;
  at("subject").textContent = mail.subject;
  at("from").textContent = mail.from;
  at("rcpt").textContent = mail.to.join(", ");
  at("when").textContent = time(mail.received_ms);
  at("when").title = new Date(mail.received_ms).toLocaleString();
  at("when").dateTime = new Date(mail.received_ms).toISOString();
  at("text").textContent = mail.text;
  at("source").textContent = mail.source;
  at("html").contentWindow.location.replace(`/demo/mails/${id}/html`); // by its src, the way back would lead through all mails
  mark();
}

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", String(chosen));
    one.tabIndex = chosen ? 0 : -1;
    at(one.getAttribute("aria-controls")).hidden = !chosen;
  }
  fit();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) {
      const next = tabs.at(to % tabs.length);
      choose(next);
      next.focus();
      event.preventDefault();
    }
  });
}

function showEmpty(count) {
  showBadge(count);
  at("empty").hidden = count > 0;
  at("clear").hidden = count === 0;
}

at("clear").addEventListener("click", async () => {
  await post("/demo/mails/clear");
  asked++;
  at("mails").replaceChildren();
  at("opened").hidden = true;
  at("none").hidden = false;
  opened = "";
  at("columns").classList.remove("reading");
  showEmpty(0);
  at("list-title").focus();
});

// list leaves the lines that are there where they are: one of them may have the focus.
function list(mails, fresh) {
  const lines = new Map([...at("mails").children].map((line) => [line.firstChild.dataset.mail, line]));
  const news = mails.filter((mail) => !lines.has(which(mail)));
  for (const mail of mails) {
    lines.delete(which(mail));
  }
  lines.forEach((line) => line.remove());
  at("mails").prepend(...news.map((mail) => mailLine(mail, fresh.has(mail))));
}

watchMails((mails, arrived) => {
  list(mails, new Set(arrived));
  showEmpty(mails.length);
  if (arrived.length > 0) {
    at("announce").textContent = `A mail arrived: ${arrived[0].subject}`;
  }
  if (opened !== "") {
    mark();
  } else if (mails.length > 0) {
    open(mails[0].id);
  }
});
