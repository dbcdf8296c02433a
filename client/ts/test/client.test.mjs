// Run by go test ./client, which starts a mailgate, its relay and a proxy that loses answers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { forCountdown, limitReached, Mailgate, newKey } from "../dist/mailgate.js";

const { MAILGATE_URL, MAILGATE_KEY: key, LOSING_URL, MAILS_URL, MODEL } = process.env;
const servers = [];
after(() => servers.forEach((server) => { server.close(); server.closeAllConnections(); }));

const granted = { status: 200, header: "", body: JSON.stringify({
  status: "sent", verified: true, allowed: true, released: true, id: "tWudQhxQ", email: "a@example.com", rule: "mailbox", limit: "minute", wait_ms: 5,
  retry_at: "2026-11-20T12:01:00.000Z", server_time: "2026-11-20T12:00:05.679Z", limits: [], degraded: false, countdown: "t0k3n" }) };

/** A server that answers reply by reply, the last one for ever. Status 0 breaks the connection. */
async function play(...replies) {
  const seen = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ key: request.headers["idempotency-key"], authorization: request.headers.authorization, url: request.url, body, at: performance.now() });
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    if (!reply.status) return request.socket.destroy();
    const [name, value] = reply.header.split(": ");
    response.writeHead(reply.status, value ? { [name]: value } : {}).end(reply.body);
  });
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, seen, server };
}

const client = (url, options) => new Mailgate(url, { key, maxPauseMs: 20, ...options });

const calls = {
  send: (gate) => gate.send({ email: "a@example.com" }),
  take: (gate) => gate.take("reply", "user 4711"),
  release: (gate) => gate.release("reply", "user 4711", "tWudQhxQ"),
  verify: (gate) => gate.verify({ email: "a@example.com", code: "123456" }),
  mailbox: (gate) => gate.mailbox("a@example.com"),
  peek: (gate) => gate.peek("reply", "user 4711"),
};

/** A word for how a call ended, with a question mark where it is uncertain. */
function outcome({ data, error, uncertain }) {
  if (data) return "granted";
  const word =
    error.type === limitReached ? "limit" :
    error.type === "urn:mailgate:client:no-answer" ? "network" :
    error.type === "urn:mailgate:client:other-answer" ? (error.status === 200 ? "unreadable" : String(error.status)) :
    error.type.replace("/docs#", "");
  return word + (uncertain ? "?" : "");
}

test("retries agree with the model", async () => {
  for (const row of JSON.parse(readFileSync(MODEL, "utf8"))) {
    for (const [name, call] of Object.entries(calls)) {
      const expected = row.attempts[name] ?? row.attempts.read;
      const always = await play(row);
      const got = outcome(await call(client(always.url)));
      assert.equal(`${got} ${always.seen.length}`, `${row.ends}${expected.endsWith("?") ? "?" : ""} ${parseInt(expected)}`, `${name}, always ${JSON.stringify(row)}`);
      if (!expected.startsWith("4")) continue;
      const twice = await play(row, row, granted);
      assert.equal(outcome(await call(client(twice.url))), "granted", `${name}, twice ${JSON.stringify(row)}`);
      assert.equal(new Set(twice.seen.map(({ key, body }) => key + body)).size, 1);
    }
  }
});

test("doubt lasts until an answer settles it", async () => {
  const problem = (status, type, more = {}) => ({ status, header: "", body: JSON.stringify({ type, wait_ms: 5, limits: [], ...more }) });
  const lost = { status: 0 };
  for (const [want, last] of [
    ["limit", problem(429, limitReached, { degraded: false })], ["limit?", problem(429, limitReached, { degraded: true })],
    ["invalid?", problem(422, "/docs#invalid")], ["delivery-unknown", problem(504, "/docs#delivery-unknown")],
    ["recipient-rejected", problem(422, "/docs#recipient-rejected")],
  ]) assert.equal(outcome(await calls.send(client((await play(lost, last)).url))), want);
});

test("no connection is certain, and says why", async () => {
  const { url, server } = await play(granted);
  await new Promise((resolve) => server.close(resolve));
  for (const call of Object.values(calls)) {
    const result = await call(client(url));
    assert.deepEqual([outcome(result), result.error.reason], ["network", "ECONNREFUSED"]);
  }
});

test("a failed handshake is certain and retried", async () => {
  const { url } = await play(granted);
  for (const call of Object.values(calls)) {
    const result = await call(client(url.replace("http:", "https:")));
    assert.deepEqual([outcome(result), result.error.reason], ["network", "ERR_SSL_WRONG_VERSION_NUMBER"]);
  }
});

test("key and body are the same for the same send", async () => {
  const { url, seen } = await play(granted);
  await client(url).send({ email: "a@example.com", data: { b: "2", a: "1" } }, { idempotencyKey: 'a"b\\c' });
  await client(url).send({ data: { a: "1", b: "2" }, email: "a@example.com" }, { idempotencyKey: 'a"b\\c' });
  assert.equal(seen[0].key, '"a\\"b\\\\c"');
  assert.equal(seen[0].body, seen[1].body);
  assert.equal(seen[0].authorization, "Bearer " + key);
  assert.equal(seen[0].body, '{"data":{"a":"1","b":"2"},"email":"a@example.com"}');
  await client(url).mailbox("a@example.com"); // proxies log paths
  assert.deepEqual([seen[2].url, seen[2].body], ["/mailboxes/peek", '{"email":"a@example.com"}']);
  await client(url).send({ email: "a@example.com", data: { list: ["b", { d: "1", c: "2" }], at: new Date(0) } }); // as untyped code may
  assert.equal(seen[3].body, '{"data":{"at":"1970-01-01T00:00:00.000Z","list":["b",{"c":"2","d":"1"}]},"email":"a@example.com"}');
});

test("a pause is at least the Retry-After and half of the client's own", async () => {
  const { url, seen } = await play({ status: 503, header: "Retry-After: 1", body: "" }, granted);
  await client(url, { maxPauseMs: 2000 }).mailbox("a@example.com");
  assert.ok(seen[1].at - seen[0].at > 1090);
});

test("a timeout is no answer, and a signal's reason is thrown", async () => {
  const server = createServer(() => {});
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const { error, uncertain } = await client(url, { timeoutMs: 20, attempts: 2 }).send({ email: "a@example.com" });
  assert.deepEqual([error.reason, uncertain], ["timeout", true]);
  const reason = new Error("enough");
  await assert.rejects(client(url).send({ email: "a@example.com" }, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const pausing = client((await play({ status: 0 })).url, { maxPauseMs: 1e9, attempts: 99 }).send({ email: "a@example.com" }, { signal: controller.signal });
  setTimeout(() => controller.abort(reason), 50);
  await assert.rejects(pausing, reason);
});

test("invalid arguments throw and show no key", async () => {
  for (const bad of ["", "mailgate", "ftp://x", `http://${key}@x`, `http://x?${key}`, `http://x#${key}`]) {
    assert.throws(() => new Mailgate(bad, { key }), (thrown) => thrown instanceof TypeError && !String(thrown).includes(key));
  }
  for (const bad of [{ key: "a b" }, { key: undefined }, { key: "" }, { attempts: 0 }, { timeoutMs: NaN }, { maxPauseMs: 1e10 }]) assert.throws(() => new Mailgate("http://x", bad), TypeError);
  for (const bad of ["", ".", ".."]) await assert.rejects(client("http://127.0.0.1:1").take(bad, "x"), TypeError);
  await assert.rejects(client("http://127.0.0.1:1").send({ email: "a@example.com" }, { idempotencyKey: "a b" }), TypeError);
});

test("end to end: lost answers, one mail", async () => {
  const email = "ts.lost@example.com", idempotencyKey = newKey();
  const sent = await client(LOSING_URL).send({ email, client_ip: "203.0.113.7" }, { idempotencyKey });
  assert.ok(sent.data && sent.replayed, JSON.stringify(sent));
  assert.equal(sent.data.wait_ms, 60_000);
  const page = forCountdown(sent);
  assert.deepEqual([page.limit, page.replayed, page.countdown.length > 100, page.limits.length], ["minute", true, true, 3]);
  const refused = await client(MAILGATE_URL).send({ email });
  assert.equal(refused.error.type, limitReached);
  assert.deepEqual([refused.error.rule, refused.error.limit, forCountdown(refused).wait_ms], ["mailbox", "minute", refused.error.wait_ms]);
  const mails = await (await fetch(`${MAILS_URL}?to=${email}`)).json();
  assert.equal(mails.length, 1);

  const [code] = mails[0].match(/\b\d{6}\b/);
  const wrong = await client(MAILGATE_URL).verify({ email, code, purpose: "sign-up" });
  assert.equal(wrong.error.guesses_left, 4);
  assert.ok((await client(MAILGATE_URL).verify({ email, code })).data.verified);
  assert.equal((await client(MAILGATE_URL).verify({ email, code })).error.type, "/docs#code-expired");
  assert.equal((await client(MAILGATE_URL).mailbox(email)).data.limit, "minute");
  assert.equal(forCountdown(await client(MAILGATE_URL).send({ email: "ts@" })), null);
});

test("end to end: actions", async () => {
  const gate = client(MAILGATE_URL), taken = await gate.take("reply", "ts");
  assert.equal(taken.data.allowed, true);
  assert.equal((await gate.peek("reply", "ts")).data.allowed, false);
  assert.equal((await gate.take("reply", "ts")).error.rule, "reply");
  assert.equal((await gate.release("reply", "ts", taken.data.id)).data.released, true);
  assert.equal((await gate.take("no/such", "ts")).error.type, "/docs#unknown-action");
});
