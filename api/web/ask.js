// What the pages ask of the demo's back end.

// post sends JSON and returns the status and the JSON that came back.
export async function post(path, body = {}) {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  } catch {
    return { status: 0, body: { title: "mailgate dev does not answer; does it still run?" } };
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// watchMails calls back with the list of mails, newest first: once at the start and
// again whenever one more has arrived. Where the newest has an id below one that was there,
// mailgate dev was started anew, or its inbox emptied: then all of them are new.
export async function watchMails(callBack) {
  let known = -1;
  for (;;) {
    try {
      const response = await fetch(known < 0 ? "/demo/mails" : `/demo/mails?after=${known}`);
      const { mails } = await response.json();
      const newest = Math.max(0, ...mails.map((mail) => mail.id));
      if (newest !== known) {
        const since = newest < known ? 0 : known;
        callBack(mails, known < 0 ? [] : mails.filter((mail) => mail.id > since));
      }
      known = newest;
    } catch {
      await pause(2000);
    }
  }
}

// showBadge writes how many mails there are beside the word Inbox.
export function showBadge(count) {
  const badge = document.getElementById("badge");
  badge.hidden = count === 0;
  badge.textContent = count;
}
