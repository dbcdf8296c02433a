// The inbox page: the emails as they arrive, and the one that is open.

import { writeAddress, writeAddresses } from "./address.js";
import { ask, codeIn, copyText, post, showBadge, watchMails, which } from "./ask.js";
import { moment } from "./lengths.js";

const at = (id) => document.getElementById(id);
let known = []; // the emails in the list
let opened = ""; // which email is open
let asked = 0; // an email that arrives after another was requested is not shown

function mailLine(mail) {
  const line = document.createElement("li");
  const button = document.createElement("button");
  const subject = document.createElement("strong");
  const facts = document.createElement("small");
  const door = document.createElement("small");
  const when = document.createElement("time");
  button.type = "button";
  button.dataset.mail = which(mail);
  subject.textContent = mail.subject;
  facts.textContent = mail.to.join(", ");
  when.textContent = moment(mail.received_ms);
  door.className = "door";
  door.textContent = mail.door;
  button.append(subject, when, facts, door);
  when.dateTime = new Date(mail.received_ms).toISOString();
  button.addEventListener("click", async () => {
    await open(mail.id);
    enter();
  });
  line.append(button);
  return line;
}

// mark marks the open email, which is read now, and those that are not.
function mark() {
  for (const [i, mail] of known.entries()) {
    const button = at("mails").children[i].firstChild;
    const isOpen = which(mail) === opened;
    mail.unread &&= !isOpen;
    button.classList.toggle("new", mail.unread);
    if (isOpen) {
      button.setAttribute("aria-current", "true");
    } else {
      button.removeAttribute("aria-current");
    }
  }
  showBadge(known);
}

// Where there is no room for both, the email replaces the list, and both a button and the
// browser's own lead back.
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

// fit makes the frame as high as the email in it. The frame runs no script; its origin is
// ours only so that this page can read its height.
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

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

// fileLink saves one of an email's files, whose name may be long or in another direction.
function fileLink(id, file, n) {
  const item = document.createElement("p");
  const link = element("a", file.name);
  const size = element("small", file.size < 1024 ? ` ${file.size} B` : ` ${Math.round(file.size / 1024)} KiB`);
  link.href = `/demo/mails/${id}/files/${n}`;
  link.download = "";
  const name = document.createElement("bdi");
  name.append(link);
  item.append(name, size);
  return item;
}

async function open(id) {
  const mine = ++asked;
  const { status, body: mail } = await ask(`/demo/mails/${id}`);
  if (mine !== asked || status !== 200) {
    return;
  }
  opened = which(mail);
  at("none").hidden = true;
  at("opened").hidden = false;
  at("subject").textContent = mail.subject;
  at("name").textContent = mail.from_name;
  writeAddress(at("from"), mail.from);
  writeAddresses(at("rcpt"), mail.to);
  at("door").textContent = mail.door === "relay" ? "relay, without mailgate" : mail.door;
  at("copy").hidden = !codeIn(mail);
  at("copy").value = codeIn(mail) ?? "";
  at("copy").textContent = `Copy code ${at("copy").value}`;
  at("when").textContent = moment(mail.received_ms);
  at("when").dateTime = new Date(mail.received_ms).toISOString();
  at("text").textContent = mail.text;
  at("source").textContent = mail.source;
  at("raw").href = `/demo/mails/${id}/raw`;
  at("files-title").hidden = at("files").hidden = mail.files.length === 0;
  at("files").replaceChildren(...mail.files.map((file, n) => fileLink(id, file, n)));
  at("header").replaceChildren(...mail.header.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
  at("tab-html").hidden = !mail.html;
  if (!mail.html && at("tab-html").ariaSelected === "true") {
    choose(at("tab-text"));
  }
  at("html").contentWindow.location.replace(`/demo/mails/${id}/html`); // by its src, the browser's way back would lead through all emails
  mark();
}

// close shows that no email is open.
function close() {
  asked++;
  opened = "";
  at("opened").hidden = true;
  at("none").hidden = false;
  at("columns").classList.remove("reading");
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

for (const tab of tabs) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const seen = tabs.filter((one) => !one.hidden);
    const i = seen.indexOf(tab);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) {
      const next = seen.at(to % seen.length);
      choose(next);
      next.focus();
      event.preventDefault();
    }
  });
}

at("copy").addEventListener("click", () => copyText(at("copy"), at("copy").value));

// remove deletes emails until Undo.
async function remove(mails, done) {
  const { status } = await post("/demo/mails/delete", { ids: mails.map((mail) => mail.id) });
  if (status !== 200) {
    return;
  }
  at("deleted").textContent = done;
  at("undo").hidden = false;
  show(known.filter((mail) => !mails.includes(mail)));
  at("restore").focus();
}

at("clear").addEventListener("click", () => remove(known, "Emails cleared."));

const removeOpened = () => remove(known.filter((mail) => which(mail) === opened), "Email deleted.");

at("delete").addEventListener("click", removeOpened);

at("restore").addEventListener("click", async () => {
  await post("/demo/mails/restore");
  const { status, body } = await ask("/demo/mails");
  if (status !== 200) {
    return;
  }
  at("undo").hidden = true;
  show(body.mails);
  at("list-title").focus();
});

// show lists the emails. Lines that are there stay in place: one of them may have the focus.
function show(mails) {
  const lines = new Map([...at("mails").children].map((line) => [line.firstChild.dataset.mail, line]));
  const wanted = mails.map((mail) => lines.get(which(mail)) ?? mailLine(mail));
  lines.forEach((line) => wanted.includes(line) || line.remove());
  let next = at("mails").firstChild;
  for (const line of wanted) {
    if (line === next) {
      next = line.nextSibling;
    } else {
      at("mails").insertBefore(line, next);
    }
  }
  known = mails;
  if (opened !== "" && !mails.some((mail) => which(mail) === opened)) {
    close(); // mailgate dev was restarted, or keeps it no longer
  }
  for (const id of ["clear", "search", "keys"]) {
    at(id).hidden = mails.length === 0;
  }
  at("empty").hidden = mails.length > 0 || !at("undo").hidden;
  mark();
  search();
}

// search shows the emails with all words of the search in their subject or address.
function search() {
  const words = at("search").value.toLowerCase().split(/\s+/);
  for (const [i, mail] of known.entries()) {
    const text = `${mail.subject} ${mail.to}`.toLowerCase();
    at("mails").children[i].hidden = !words.every((word) => text.includes(word));
  }
  at("unmatched").hidden = known.length === 0 || inView().length > 0;
}

at("search").addEventListener("input", search);

const inView = () => known.filter((_, i) => !at("mails").children[i].hidden);

// move opens the next email in view, or the one before, and moves the focus to its line.
function move(by) {
  const mails = inView();
  const from = mails.findIndex((mail) => which(mail) === opened);
  const to = mails[Math.max(0, Math.min(mails.length - 1, from < 0 ? 0 : from + by))];
  if (to) {
    open(to.id);
    at("mails").children[known.indexOf(to)].firstChild.focus();
  }
}

addEventListener("keydown", (event) => {
  const inSearch = event.target === at("search");
  const inList = inSearch || event.target === document.body || at("mails").contains(event.target);
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.key === "Escape" && inSearch) {
    at("search").value = "";
    search();
  } else if (event.key === "/" && !inSearch && known.length > 0) {
    at("search").focus();
  } else if (!inSearch && event.key === "Delete" && opened !== "") {
    removeOpened();
  } else if ((inList && event.key === "ArrowDown") || (!inSearch && event.key === "j")) {
    move(1);
  } else if ((inList && event.key === "ArrowUp") || (!inSearch && event.key === "k")) {
    move(-1);
  } else {
    return;
  }
  event.preventDefault();
});

watchMails((mails, arrived) => {
  if (arrived.length > 0) {
    at("undo").hidden = true;
    at("announce").textContent = `New email: ${arrived[0].subject}`;
  }
  show(mails);
  if (opened === "" && mails.length > 0 && !narrow.matches) {
    open(mails[0].id);
  }
});
