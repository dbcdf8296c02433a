import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { asking, calls, counting, email, harmless, json, key, play, problem, sent, wait } from "./script.mjs";

const everything = [...harmless, ...counting];
const date = { date: "Fri, 20 Nov 2026 12:00:00 GMT", "retry-after": "Fri, 20 Nov 2026 12:00:02 GMT" };
const soon = { "retry-after": "1" };

// What is asked again: everything where that is safe, and nothing else.
for (const [name, who, first, end] of [
  ["a broken connection", harmless, null],
  ["a broken connection while counting", counting, null, "unanswered"],
  ["mailgate cannot now", everything.filter((call) => call !== "verifyCode"), problem(503, "store-unavailable", soon)],
  ["mailgate cannot now, and may have counted it", ["verifyCode"], problem(503, "store-unavailable", soon), "unavailable"],
  ["mailgate has too much to do", everything, problem(503, "busy", soon)],
  ["mailgate cannot for long", everything, problem(503, "relay-unavailable", { "retry-after": "6" }), "unavailable"],
  ["a proxy cannot now", harmless, { status: 503, headers: soon }],
  ["a proxy cannot until a date", harmless, { status: 503, headers: date }],
  ["a proxy cannot now while counting", counting, { status: 503, headers: soon }, "failed"],
  ["a proxy's bad gateway", harmless, { status: 502 }],
  ["a proxy's bad gateway while counting", counting, { status: 502 }, "failed"],
  ["a proxy's patience is over", harmless, { status: 504 }],
  ["a proxy's patience is over while counting", counting, { status: 504 }, "failed"],
  ["the first is still at work", ["sendCode"], problem(409, "idempotency-in-flight", soon)],
  ["another conflict", ["sendCode"], { status: 409 }, "failed"],
  ["nobody knows", ["sendCode"], problem(504, "delivery-unknown"), "unknown"],
  ["a limit", everything, wait, "wait"],
  ["a proxy's limit", everything, { status: 429, headers: soon }, "failed"],
  ["a fault", everything, problem(500, "internal"), "failed"],
  ["a wrong key", everything, problem(401, "unauthorized"), "failed"],
  ["another's key", ["sendCode"], problem(422, "idempotency-mismatch"), "failed"],
  ["too slow", ["sendCode"], problem(408, "request-timeout"), "failed"],
  ["a page", everything, { status: 200 }, "failed"],
]) {
  test(name, async () => {
    for (const call of who) {
      const server = await play(first, problem(422, "invalid"));
      const { gate, pauses } = asking(server.url);
      const result = await calls[call](gate);
      assert.equal((result.last ?? result).status, end ?? "invalid", call);
      assert.equal(server.asked.length, end ? 1 : 2, call);
      assert.equal(pauses.length, server.asked.length - 1, call);
    }
  });
}

test("repetitions are the same request, and every call is another", async () => {
  const server = await play(null, { status: 502 }, problem(409, "idempotency-in-flight"), sent);
  const { gate } = asking(server.url);
  for (let i = 0; i < 2; i++) assert.equal((await gate.sendCode({ email })).status, "sent");
  assert.equal(server.asked.length, 5);
  const keys = server.asked.map((q) => q.headers["idempotency-key"]);
  assert.deepEqual(keys.map((k) => k === keys[0]), [true, true, true, true, false]);
  assert.match(keys[0], /^"[!-~]{20,}"$/);
  for (const q of server.asked) {
    assert.equal(q.body, server.asked[0].body);
    assert.equal(q.headers.authorization, "Bearer " + key);
  }
});

test("what mails or takes has an idempotency key", async () => {
  for (const [name, call] of Object.entries(calls)) {
    const server = await play(problem(401, "unauthorized"));
    await call(asking(server.url).gate);
    assert.equal(server.asked[0].headers["idempotency-key"] !== undefined, name === "sendCode" || name === "take", name);
  }
});

test("a pause doubles, half of it is chance, and a Retry-After is waited for", async () => {
  const server = await play(null, { status: 502 }, problem(503, "busy", { "retry-after": "2" }), { status: 503, headers: date }, null);
  const { gate, pauses } = asking(server.url, { attempts: 7, maxPauseMs: 3000 });
  const { status, notAsked } = (await gate.sendCode({ email })).last;
  assert.deepEqual({ status, notAsked }, { status: "unanswered", notAsked: false });
  const most = [200, 400, 800, 1600, 3000, 3000], asked = [0, 0, 2000, 2000, 0, 0];
  assert.equal(pauses.length, most.length);
  pauses.forEach((ms, i) => assert.ok(ms >= asked[i] + most[i] / 2 && ms <= asked[i] + most[i], `pause ${i} was ${ms}`));
});

test("attempts bounds them, and one is one", async () => {
  for (const [attempts, want] of [[undefined, 4], [1, 1], [3, 3]]) {
    const server = await play({ status: 502 });
    await asking(server.url, { attempts }).gate.sendCode({ email });
    assert.equal(server.asked.length, want);
  }
});

test("nobody listens, so even what counts is asked again", async () => {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  for (const [name, call] of Object.entries(calls)) {
    const { gate, pauses } = asking(`http://127.0.0.1:${port}`);
    assert.deepEqual(await call(gate), { status: "unanswered", notAsked: true, reason: "ECONNREFUSED" }, name);
    assert.equal(pauses.length, 3);
  }
});

test("why nobody answered is told by a code, and in nobody's words", async () => {
  const fails = (code) => async () => { throw new TypeError("fetch failed", { cause: { code } }); };
  const hangs = (url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  for (const [fetch, want] of [[fails("CERT_HAS_EXPIRED"), "CERT_HAS_EXPIRED"], [fails(email), ""], [fails(), ""], [hangs, "timeout"]]) {
    const { gate } = asking("https://gate.example", { fetch, timeoutMs: 1, attempts: 1 });
    assert.equal((await gate.mailbox(email)).reason, want);
  }
});

// A server that reads one request to its end and is gone: the connection breaks, and nobody
// listens any more.
test("what one attempt may have done is not unsaid by others that found nobody", async () => {
  for (const name of harmless) {
    const server = createServer(async (request) => {
      for await (const _ of request);
      server.close();
      request.socket.destroy();
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { gate, pauses } = asking(`http://127.0.0.1:${server.address().port}`);
    const result = await calls[name](gate);
    assert.deepEqual(result.last ?? result, { status: "unanswered", notAsked: false, reason: "ECONNREFUSED" }, name);
    assert.equal(pauses.length, 3);
  }
});

// Part of what mailgate could not complete may be done. What it had no time for certainly was not.
test("what one attempt may have done in part is not unsaid either", async () => {
  for (const name of ["reset", "resetAction", "resetRule", "release"]) {
    for (const [kind, notAsked] of [["store-unavailable", false], ["busy", true]]) {
      const { status, headers, body } = problem(503, kind, { connection: "close" });
      const server = createServer(async (request, response) => {
        for await (const _ of request);
        server.close();
        response.writeHead(status, headers).end(body);
      });
      await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { gate, pauses } = asking(`http://127.0.0.1:${server.address().port}`);
      assert.deepEqual(await calls[name](gate), { status: "unanswered", notAsked, reason: "ECONNREFUSED" }, name + " " + kind);
      assert.equal(pauses.length, 3);
    }
  }
});

// What a send that may have left ends with says so, and names the key; nothing else does.
const lost = null, page = { status: 200 }, inFlight = problem(409, "idempotency-in-flight"), long = { "retry-after": "6" };
const alone = json(429, { ...JSON.parse(wait.body), degraded: true });
for (const [name, lines, last, open] of [
  ["an answer is lost", [lost], "unanswered", true],
  ["the first is still at work", [inFlight], "idempotency-in-flight", true],
  ["a proxy's bad gateway", [{ status: 502 }], "failed", true],
  ["a proxy's fault", [{ status: 500 }], "failed", true],
  ["a fault", [problem(500, "internal")], "internal", true],
  ["a page", [page], "unreadable", true],

  ["a lost answer, and mailgate cannot decide", [lost, problem(503, "store-unavailable")], "store-unavailable", true],
  ["a lost answer, and no relay", [lost, problem(503, "relay-unavailable", long)], "relay-unavailable", true],
  ["a lost answer, and the key is no more", [lost, problem(401, "unauthorized")], "unauthorized", true],
  ["a lost answer, and a limit that not all is known of", [lost, alone], "wait", true],
  ["a bad gateway, and mailgate has too much to do", [{ status: 502 }, problem(503, "busy", long)], "busy", true],
  ["at work, and mailgate cannot decide", [inFlight, problem(503, "store-unavailable", long)], "store-unavailable", true],

  ["a lost answer, and a limit", [lost, wait], "wait", false],
  ["a lost answer, and a recipient", [lost, problem(422, "recipient-rejected")], "rejected", false],
  ["a lost answer, and nobody knows", [lost, problem(504, "delivery-unknown")], "unknown", false],
  ["a limit", [alone], "wait", false],
  ["mailgate cannot decide", [problem(503, "store-unavailable")], "store-unavailable", false],
  ["fields", [problem(422, "invalid")], "invalid", false],
  ["a proxy's no", [{ status: 404 }], "failed", false],
]) {
  test("unsettled or not: " + name, async () => {
    for (const idempotencyKey of [undefined, "order-4711"]) {
      const server = await play(...lines);
      const result = await asking(server.url).gate.sendCode({ email, idempotencyKey });
      assert.equal(result.status === "unsettled", open, result.status);
      const ended = open ? result.last : result;
      assert.equal(ended.kind || ended.status, last);
      if (open) assert.equal(server.asked[0].headers["idempotency-key"], `"${result.idempotencyKey}"`);
    }
  });
}

test("only a send is unsettled", async () => {
  for (const [name, call] of Object.entries(calls)) {
    const server = await play(lost, problem(503, "busy"));
    assert.equal((await call(asking(server.url).gate)).status === "unsettled", name === "sendCode", name);
  }
});

test("an answer that breaks off is none", async () => {
  const cut = (_, response) => {
    response.writeHead(200, { "content-length": sent.body.length });
    response.write(sent.body.slice(0, -5), () => response.destroy());
  };
  const server = await play(cut, sent);
  assert.equal((await asking(server.url).gate.sendCode({ email })).status, "sent");
  assert.equal(server.asked.length, 2);
});

test("an answer without end is not read to it", async () => {
  const endless = (_, response) => {
    response.writeHead(200);
    const more = () => { while (!response.destroyed && response.write(" ".repeat(65536))); };
    response.on("drain", more);
    more();
  };
  const server = await play(endless);
  assert.deepEqual(await asking(server.url).gate.mailbox(email), { status: "failed", kind: "unreadable", httpStatus: 200, detail: "", requestId: "" });
});

test("an attempt that takes too long is one that nobody answered", async () => {
  const server = await play(() => {}, sent);
  assert.equal((await asking(server.url, { timeoutMs: 1000 }).gate.sendCode({ email })).status, "sent");
  assert.equal(server.asked.length, 2);
});

test("redirects are not followed", async () => {
  const elsewhere = await play(sent);
  for (const status of [301, 302, 303, 307, 308]) {
    const server = await play({ status, headers: { location: elsewhere.url + "/send-code" } });
    for (const call of Object.values(calls)) {
      const result = await call(asking(server.url).gate);
      assert.equal(result.status, "failed");
      assert.equal(result.httpStatus, status);
    }
  }
  assert.equal(elsewhere.asked.length, 0);
});

test("a signal ends a call: before, during an attempt, and in a pause", { timeout: 15_000 }, async () => {
  const reason = new Error("the visitor has left");
  for (const [name, call] of Object.entries(calls)) {
    const server = await play(sent);
    await assert.rejects(call(asking(server.url).gate, { signal: AbortSignal.abort(reason) }), reason, name);
    assert.equal(server.asked.length, 0);
  }

  const during = new AbortController();
  const silent = await play(() => during.abort(reason));
  const patient = asking(silent.url, { attempts: 1, timeoutMs: 60_000 }).gate;
  await assert.rejects(patient.sendCode({ email }, { signal: during.signal }), reason);
  assert.equal(silent.asked.length, 1);

  const pausing = new AbortController();
  const down = await play((_, response) => {
    response.writeHead(503, { "retry-after": "3600" }).end();
    response.on("finish", () => setTimeout(() => pausing.abort(reason), 20));
  });
  const real = asking(down.url, { pause: undefined, maxPauseMs: 1e8 }).gate; // pauses by the clock
  await assert.rejects(real.sendCode({ email }, { signal: pausing.signal }), reason);
  assert.equal(down.asked.length, 1);
});

test("the pause by the clock pauses", async () => {
  const server = await play({ status: 502 }, sent);
  const began = performance.now();
  assert.equal((await asking(server.url, { pause: undefined }).gate.sendCode({ email })).status, "sent");
  assert.ok(performance.now() - began >= 99);
});
