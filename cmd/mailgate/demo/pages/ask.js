// Requests to the back end of mailgate dev.

// ask sends a request and returns the status and the JSON that came back. The wait in the stored
// answer to an earlier request is that of its moment, which the countdown must know.
export async function ask(path, request = {}) {
  try {
    const response = await fetch(path, request);
    const body = await response.json();
    const replayed = response.headers.get("Idempotent-Replayed") === "true";
    return { status: response.status, body: replayed ? { ...body, replayed } : body };
  } catch {
    return { status: 0, body: { title: "No answer from mailgate dev. Is it still running?" } };
  }
}

export const post = (path, body = {}, headers = {}) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// which identifies an email: after a restart, mailgate dev counts from 1 again.
export const which = (mail) => `${mail.id} ${mail.received_ms}`;

const longest = 20_000; // milliseconds; mailgate dev answers after 15 s, with or without an email

// watchMails calls back with the list of emails, newest first, and those that were in no list
// before: at the start, at each arrival and every few seconds. While there is no answer, the page
// says so and counts nothing.
export async function watchMails(callBack) {
  let known; // all emails that were ever in the list
  let after = "";
  for (;;) {
    try {
      const response = await fetch(`/demo/mails${after}`, { signal: AbortSignal.timeout(longest) });
      const { mails, newest } = await response.json();
      const arrived = known ? mails.filter((mail) => !known.has(which(mail))) : [];
      document.getElementById("lost").hidden = true;
      callBack(mails, arrived);
      known = new Set([...known ?? [], ...mails.map(which)]);
      after = `?after=${newest}`;
    } catch {
      after = ""; // the next answer may come from another process
      document.getElementById("lost").hidden = false;
      document.getElementById("badge").hidden = true;
      await pause(2000);
    }
  }
}

// showBadge writes how many emails are unread beside the word Inbox.
export function showBadge(mails) {
  const unread = mails.filter((mail) => mail.unread).length;
  const badge = document.getElementById("badge");
  badge.hidden = unread === 0;
  badge.textContent = unread;
}

// codeIn is the six-digit code in an email's subject, if there is one.
export const codeIn = (mail) => mail.subject.match(/\b\d{6}\b/)?.[0];

// copyText copies a text, and says on the button whether it could.
export async function copyText(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying failed";
  }
  document.getElementById("announce").textContent = button.textContent;
}
