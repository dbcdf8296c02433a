// Times, durations and counts as text.

// count writes how many there are: 1 email, 2 emails, 3 mailboxes.
export const count = (n, one, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`;

// moment writes when something was: 14:04:09, with the date if that is another day.
export function moment(ms) {
  const at = new Date(ms);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const today = new Date(Date.now());
  if (at.toDateString() === today.toDateString()) {
    return time;
  }
  const year = at.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return `${at.toLocaleDateString([], { day: "numeric", month: "short", year })}, ${time}`;
}

// clock writes milliseconds as 0:42, 59:00 or 23:59:59, rounded up so that 0:00 means
// that the wait is over.
export function clock(ms) {
  const seconds = Math.ceil(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

// spoken writes milliseconds for a screen reader.
export function spoken(ms) {
  const seconds = Math.ceil(ms / 1000);
  const part = (n, word) => (n > 0 ? [count(n, word)] : []);
  return [
    ...part(Math.floor(seconds / 3600), "hour"),
    ...part(Math.floor(seconds / 60) % 60, "minute"),
    ...part(seconds % 60, "second"),
  ].join(" ");
}

// span writes the length of a window: 60 s, 1 h, 400 ms.
export function span(ms) {
  for (const [unit, size] of [["d", 864e5], ["h", 36e5], ["min", 6e4], ["s", 1e3]]) {
    if (ms % size === 0 && (ms > size || unit !== "d" && unit !== "min")) {
      return `${ms / size} ${unit}`;
    }
  }
  return `${ms} ms`;
}
