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

// watchMails calls back with the list of emails, newest first, and those that arrived since
// the last call: at the start, at each arrival and every few seconds. Where the newest id is
// lower than before, mailgate dev was restarted, and all of them are new.
export async function watchMails(callBack) {
  let known = -1;
  for (;;) {
    try {
      const response = await fetch(known < 0 ? "/demo/mails" : `/demo/mails?after=${known}`);
      const { mails, newest } = await response.json();
      const since = newest < known ? 0 : known;
      callBack(mails, known < 0 ? [] : mails.filter((mail) => mail.id > since));
      known = newest;
    } catch {
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
