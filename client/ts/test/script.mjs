// What the tests share: the client as it was built, and a server that answers from a script.
import { createServer } from "node:http";
import { after } from "node:test";

export const { forCountdown, Mailgate, newKey } = await import(process.env.MAILGATE_JS);

export const key = "Hush-7f3b-9d21-c460";
export const email = "alice.liddell@example.com";

/** Answers line by line, the last one for ever; null breaks the connection. Keeps what it was asked. */
export async function play(...lines) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    asked.push({ method: request.method, path: request.url, headers: request.headers, body });
    const line = lines.length > 1 ? lines.shift() : lines[0];
    if (line === null) return request.socket.destroy();
    if (typeof line === "function") return line(request, response);
    response.writeHead(line.status, line.headers ?? {});
    response.end(line.body ?? "<html>Bad luck</html>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => { server.closeAllConnections(); server.close(); });
  return { url: `http://127.0.0.1:${server.address().port}`, asked };
}

/** A client whose pauses take no time and are kept. */
export function asking(url, options = {}) {
  const pauses = [];
  const pause = async (ms, signal) => { pauses.push(ms); signal?.throwIfAborted(); };
  return { gate: new Mailgate(url, { key, pause, ...options }), pauses };
}

const standing = {
  limit: "minute", wait_ms: 54321, retry_at: "2026-11-20T12:01:00.000Z", server_time: "2026-11-20T12:00:05.679Z",
  limits: [{ name: "minute", limit: 1, window_ms: 60000, remaining: 0, wait_ms: 54321 }], degraded: false,
};

/** The same, as the client gives it. */
export const read = {
  limit: "minute", waitMs: 54321, retryAt: "2026-11-20T12:01:00.000Z", serverTime: "2026-11-20T12:00:05.679Z",
  limits: [{ name: "minute", limit: 1, windowMs: 60000, remaining: 0, waitMs: 54321 }], degraded: false,
};

export const json = (status, body, headers = {}) => ({ status, headers, body: JSON.stringify(body) });
export const stands = (more, status = 200, headers = {}) => json(status, { ...standing, ...more }, headers);
export const sent = stands({ status: "sent", id: "tWudQhxQ", message_id: "<tWudQhxQ@acme.example>", email, rule: "mailbox", expires_in_ms: 600000, countdown: "t0k3n" });
export const wait = stands({
  type: "https://iana.org/assignments/http-problem-types#quota-exceeded", detail: "The limit minute is reached.", rule: "mailbox",
  countdown: "t0k3n", "violated-policies": ["minute", "visitor.hour"],
}, 429, { "retry-after": "55", "x-request-id": "r1" });
export const problem = (status, kind, headers, more) => json(status, { type: "urn:mailgate:problem:" + kind, detail: "A sentence.", ...more }, headers);

/** Every call there is. */
export const calls = {
  sendCode: (gate, call) => gate.sendCode({ email }, call),
  mailbox: (gate, call) => gate.mailbox(email, call),
  verifyCode: (gate, call) => gate.verifyCode(email, "123456", call),
  take: (gate, call) => gate.take("reply", "user 4711", call),
  peek: (gate, call) => gate.peek("reply", "user 4711", call),
  release: (gate, call) => gate.release("reply", "user 4711", "tWudQhxQ", call),
  inspect: (gate, call) => gate.inspect(email, call),
  reset: (gate, call) => gate.reset(email, "a ticket", call),
  resetAction: (gate, call) => gate.resetAction("reply", "user 4711", "a ticket", call),
  resetRule: (gate, call) => gate.resetRule("client-ip", "198.51.100.7", "a ticket", call),
};
export const harmless = ["sendCode", "mailbox", "take", "peek", "release", "inspect"];
export const counting = ["verifyCode", "reset", "resetAction", "resetRule"];
