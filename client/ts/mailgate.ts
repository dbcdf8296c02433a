/**
 * Asks a running mailgate, from Node 18 or newer, Deno, Bun or an edge runtime: all it needs
 * is fetch.
 *
 *     const gate = new Mailgate("https://mailgate.internal", { key: process.env.GATE_KEY });
 *     const result = await gate.sendCode({ email, clientIp });
 *     switch (result.status) {
 *       case "sent": …   // mailed; result.waitMs is when the next one may be
 *       case "wait": …   // not yet: result.rule, result.limit, result.waitMs
 *       default: …       // result.status says why
 *     }
 *
 * Every answer is a value whose `status` tells it from the others, so a compiler sees which
 * are not handled. The one status for a yes is the first of each union. Nothing is thrown but
 * what a program has wrong (a TypeError), and a signal's reason when that has aborted.
 *
 * sendCode names its request by an idempotency key, and asks again under the same key when the
 * connection broke, after a 503, after a 502, 503 or 504 of something in front of mailgate, and
 * while the first request is still at work. One call is at most one mail. What only looks is
 * asked again just as well, and so is take, under a key of its own. What counts and has no key
 * (verifyCode, resets) is asked again only where nobody listened, or where mailgate itself said
 * 503. That says that nothing was done, but for one kind: where the history failed
 * ("store-unavailable") a guess at a code may have been counted, and is not made again. Part of a
 * reset may be done then; it is made again, which does no harm.
 *
 * "unknown" is final: mailgate never sends such a mail again. Where the attempts end before it is
 * known whether the mail was sent, the status is "unsettled", with the key to go on under; a new
 * key could make a second mail.
 *
 * Redirects are not followed: the key is for one server.
 */
export class Mailgate {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #with: Settled;

  /**
   * The URL is where mailgate is, with the path in front of its routes if it has one. An admin
   * key opens inspect and the resets, and no other route.
   */
  constructor(url: string, options: Options = {}) {
    this.#base = checkedBase(url);
    this.#headers = { accept: "application/json, application/problem+json" };
    if (options.key) {
      if (!visible.test(options.key)) throw new TypeError("mailgate: the key has a character that no key has");
      this.#headers.authorization = "Bearer " + options.key;
    }
    this.#with = {
      attempts: between(1, options.attempts, 4, "attempts"),
      timeoutMs: between(1, options.timeoutMs, 20_000, "timeoutMs", longest),
      maxPauseMs: between(0, options.maxPauseMs, 5_000, "maxPauseMs", longest),
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      pause: options.pause ?? pause,
    };
  }

  /**
   * Has a code mailed. "sent" means that a relay has accepted the mail. Where that mail may have
   * been sent all the same, the status is "unsettled"; any other but "unknown" means that this
   * call has sent none.
   */
  async sendCode(send: Send, call: Call = {}): Promise<SendResult> {
    const { email, code, purpose, template, locale, clientIp, data, idempotencyKey = newKey() } = send;
    if (!visible.test(idempotencyKey) || idempotencyKey.length > 255) {
      throw new TypeError("mailgate: an idempotency key is 1 to 255 visible ASCII characters");
    }
    const body = { email, code, purpose, template, locale, client_ip: clientIp, data: data && sorted(data) };
    const unsettled = (last: Refusal): Unsettled => ({ status: "unsettled", idempotencyKey, last });
    return this.#ask({ path: "/send-code", body, key: quoted(idempotencyKey), mail: true, harmless: true }, call, readSent, readSendRefusal, unsettled);
  }

  /**
   * Checks a code that mailgate made and mailed. "verified" means that it is right; it is so
   * once, and only for the purpose of its send. "unavailable" may have cost a guess, so it is for
   * the visitor to try again.
   */
  async verifyCode(email: string, code: string, call: VerifyCall = {}): Promise<VerifyResult> {
    return this.#ask({ path: "/verify-code", body: { email, code, purpose: call.purpose }, counts: true }, call, readVerified, readGuess);
  }

  /** Says what a send would be told now. Looking spends nothing. */
  async mailbox(email: string, call: Call = {}): Promise<MailboxResult> {
    return this.#ask({ path: "/mailboxes/" + segment("email", email), harmless: true }, call, readMailbox);
  }

  /**
   * Asks whether a subject may take an action now, and counts it if so: "taken". One call counts
   * once at most, but where a fixed window ends meanwhile once in each. It may have counted all the same where the status is "unanswered" without
   * notAsked, "failed" with an httpStatus of 500 or more or the kind "unreadable", or
   * "unavailable", as an attempt before the last may have.
   */
  async take(action: string, subject: string, call: Call = {}): Promise<TakeResult> {
    return this.#ask({ path: `/actions/${segment("action", action)}/take`, body: { subject }, key: quoted(newKey()), harmless: true }, call, readTaken);
  }

  /** Says what a take would be told now. Nothing is counted. */
  async peek(action: string, subject: string, call: Call = {}): Promise<PeekResult> {
    return this.#ask({ path: `/actions/${segment("action", action)}/peek`, body: { subject }, harmless: true }, call, readPeeked);
  }

  /**
   * Gives back a take of which nothing came. `released` is whether there was one: not if an
   * earlier attempt, whose answer was lost, has given it back already. What ends in a refusal
   * may have been given back too, and to ask again does no harm.
   */
  async release(action: string, subject: string, id: string, call: Call = {}): Promise<ReleaseResult> {
    return this.#ask({ path: `/actions/${segment("action", action)}/release`, body: { subject, id }, harmless: true }, call, readReleased);
  }

  /** Says how a mailbox stands, and when each of its mails was admitted. Takes an admin key. */
  async inspect(email: string, call: Call = {}): Promise<InspectResult> {
    return this.#ask({ path: "/admin/mailboxes/" + segment("email", email), harmless: true }, call, readInspected);
  }

  /**
   * Lets a mailbox start afresh. The reason goes to the audit log. Takes an admin key. `cleared` is
   * the last attempt's: not in it is what an earlier one forgot that mailgate could not complete,
   * and that was made again. The audit log has all of them.
   */
  async reset(email: string, reason?: string, call: Call = {}): Promise<ResetResult> {
    return this.#ask({ path: `/admin/mailboxes/${segment("email", email)}/reset`, body: { reason } }, call, readReset);
  }

  /** Lets a subject start afresh with an action. `cleared` is as of reset. Takes an admin key. */
  async resetAction(action: string, subject: string, reason?: string, call: Call = {}): Promise<ResetResult> {
    return this.#ask({ path: `/admin/actions/${segment("action", action)}/reset`, body: { subject, reason } }, call, readReset);
  }

  /**
   * Lets a subject start afresh with a rule that counts by something else than mailboxes: a
   * visitor's address, a domain, the name of an API key or of a template; none with a rule that
   * counts all sends. `cleared` is as of reset. Takes an admin key.
   */
  async resetRule(rule: string, subject?: string, reason?: string, call: Call = {}): Promise<ResetResult> {
    return this.#ask({ path: `/admin/rules/${segment("rule", rule)}/reset`, body: { subject, reason } }, call, readReset);
  }

  /**
   * Asks until there is an answer, and reads it. There is doubt if an attempt, the last or an
   * earlier one, may have done what was asked for.
   */
  async #ask<Yes, No = never, Open = never>(
    q: Question, call: Call, yes: Reader<Yes>, no?: Reader<No>, unsettled?: (last: Refusal) => Open,
  ): Promise<Yes | No | Open | Refusal> {
    const body = q.body === undefined ? undefined : JSON.stringify(q.body);
    let doubt = false;
    for (let attempt = 1; ; attempt++) {
      const reply = await this.#once(q, body, call.signal);
      const settled = reply.http === 200 ? yes(reply) : no?.(reply);
      if (settled) return settled;
      doubt ||= inDoubt(q, reply);
      const notBefore = again(q, reply);
      if (notBefore === undefined || notBefore > this.#with.maxPauseMs || attempt >= this.#with.attempts) {
        const last = readRefusal(reply, doubt);
        return doubt && unsettled && !settles(last) ? unsettled(last) : last;
      }
      await this.#with.pause(notBefore + backoff(attempt, this.#with.maxPauseMs), call.signal);
    }
  }

  /** Asks one time. */
  async #once(q: Question, body: string | undefined, signal?: AbortSignal): Promise<Reply> {
    const within = new AbortController();
    const abort = () => within.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort);
    const timer = setTimeout(() => within.abort(), this.#with.timeoutMs);
    try {
      const headers = { ...this.#headers };
      if (body !== undefined) headers["content-type"] = "application/json";
      if (q.key !== undefined) headers["idempotency-key"] = q.key;
      const response = await this.#with.fetch(this.#base + q.path, {
        method: body === undefined ? "GET" : "POST", headers, body: body ?? null, signal: within.signal, redirect: "manual",
      });
      return await readReply(response);
    } catch (cause) {
      signal?.throwIfAborted();
      const reason = within.signal.aborted ? "timeout" : codeOf(cause);
      return { http: silence, json: {}, ours: false, requestId: "", notAsked: certainlyNotAsked(reason), reason };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

export interface Options {
  /** The secret of one of mailgate's keys. None for a mailgate without keys on this machine. */
  key?: string | undefined;
  /** How often one call asks at most. 4. */
  attempts?: number | undefined;
  /** Bounds each attempt. 20 s, which is more than mailgate takes to answer; at most a billion ms. */
  timeoutMs?: number | undefined;
  /**
   * The longest Retry-After that is waited for, and the longest pause of the client's own, which
   * comes on top: so a pause is at most twice as long. 5 s; at most a billion ms.
   */
  maxPauseMs?: number | undefined;
  /** In place of the runtime's own. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Waits, or rejects with the signal's reason; for tests with a clock of their own. */
  pause?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
}

/** What can be said with every call. */
export interface Call {
  /**
   * Ends the call, which then rejects with the signal's reason. What was asked for may have been
   * done: who has given a send its idempotencyKey can go on under it.
   */
  signal?: AbortSignal | undefined;
}

/** What can be said with a code that is to be checked. */
export interface VerifyCall extends Call {
  /** What the code has to be for; left out, only one that was sent without a purpose is right. */
  purpose?: string | undefined;
}

/** A mail with a code. Only the address is required. */
export interface Send {
  email: string;
  /** One that the caller has made; left out, mailgate makes one, which verifyCode checks. */
  code?: string | undefined;
  /**
   * What mailgate's code is for, such as "sign-up", in 1 to 32 lower-case letters, digits, - and _,
   * the first a letter. verifyCode takes it for nothing else. Not with a code of your own.
   */
  purpose?: string | undefined;
  template?: string | undefined;
  locale?: string | undefined;
  /** The visitor's, for limits by address. */
  clientIp?: string | undefined;
  data?: Record<string, string> | undefined;
  /** The same key and the same send are one mail, however often they are sent. A new one for each call, if left out. */
  idempotencyKey?: string | undefined;
}

/** One limit of a mailbox or an action. */
export interface Limit { name: string; limit: number; windowMs: number; remaining: number; waitMs: number }

/** How a mailbox or an action stands. Count down by waitMs: the clock here may be another. */
export interface Standing {
  /** What the next one has to wait for longest; null if nothing. */
  rule: string | null;
  limit: string | null;
  waitMs: number;
  retryAt: string;
  serverTime: string;
  limits: Limit[];
  /** Decided by a mailgate that cannot reach the others' history. */
  degraded: boolean;
  /** A token with which a browser may ask how long the wait still is. */
  countdown?: string;
}

/** What the element `<mailgate-countdown>` takes, in mailgate's own words. */
export interface ForCountdown {
  limit: string | null;
  wait_ms: number;
  retry_at: string;
  limits: { name: string; limit: number; window_ms: number; wait_ms: number }[];
  countdown?: string;
  /** The answer tells of an earlier moment, so the page asks at once how long it is now. */
  replayed?: true;
}

/**
 * What a back end passes on to its page, of a "sent", a "wait", a "rejected" or an "unknown", for
 * the update method of the element `<mailgate-countdown>`. Null, which changes nothing in a page,
 * is that of a "rejected" or an "unknown" without a standing.
 */
export function forCountdown(told: Standing & { replayed?: boolean }): ForCountdown;
export function forCountdown(told: (Standing & { replayed?: boolean }) | Rejected | Unknown): ForCountdown | null;
export function forCountdown(told: (Standing & { replayed?: boolean }) | Rejected | Unknown): ForCountdown | null {
  const standing = "limits" in told ? told : told.standing;
  if (!standing) return null;
  const page: ForCountdown = {
    limit: standing.limit, wait_ms: standing.waitMs, retry_at: standing.retryAt,
    limits: standing.limits.map((l) => ({ name: l.name, limit: l.limit, window_ms: l.windowMs, wait_ms: l.waitMs })),
  };
  if (standing.countdown) page.countdown = standing.countdown;
  if (told.replayed) page.replayed = true;
  return page;
}

/** A relay has accepted the mail. */
export interface Sent extends Standing {
  status: "sent"; id: string; messageId: string; email: string;
  /** How long the code is valid, where mailgate made it. */
  expiresInMs?: number;
  /** The answer to an earlier request under the same key, which tells of that moment. */
  replayed: boolean;
}

/** A limit is reached. Nothing was done, and asking has not made the wait longer. */
export interface Wait extends Standing { status: "wait"; rule: string; limit: string; violated: string[]; detail: string; requestId: string }

/** A field will not do. */
export interface Invalid { status: "invalid"; fields: Field[]; requestId: string }
export interface Field { field: string; reason: string; detail: string }

/** The relay refused this recipient for good. The mailbox is charged. */
export interface Rejected extends Charged { status: "rejected"; smtp: { code: number; enhanced: string; message: string } }

/** The mail may arrive, and is never sent again. The mailbox is charged. */
export interface Unknown extends Charged { status: "unknown" }

/** A send that is counted, though there is no yes. */
export interface Charged {
  standing?: Standing; id: string; requestId: string;
  /** The answer to an earlier request under the same key; the standing is of that moment. */
  replayed: boolean;
}

/**
 * The mail may have been sent, and this call could not find out: an answer was lost or cannot be
 * read, or the first request under the key is still at work. The same send under the key finds
 * out, for a day, and makes no second mail; under a new key it may. It stays open until that is
 * "sent", "wait", "rejected" or "unknown".
 */
export interface Unsettled {
  status: "unsettled";
  /** The send's, given or made. */
  idempotencyKey: string;
  /** How the last attempt ended. What it says of what was done is true of that attempt alone. */
  last: Refusal;
}

/**
 * Mailgate cannot now, and has done nothing; but where the kind is "store-unavailable" a guess at a
 * code may be spent, a take counted, one given back, and part of a reset done. An earlier attempt of
 * the call may have taken, or given back, where its answer was lost.
 */
export interface Unavailable { status: "unavailable"; kind: string; retryAfterMs: number; detail: string; requestId: string }

/**
 * Nobody answered. Unless notAsked is true, what was asked for may have been done; it says that
 * nobody was reached, and that no earlier attempt reached anybody who may have done it.
 */
export interface Unanswered {
  status: "unanswered"; notAsked: boolean;
  /**
   * Why the last attempt found nobody: "timeout" after timeoutMs, else the runtime's own code, such
   * as "ECONNREFUSED" or "CERT_HAS_EXPIRED"; empty where it has none.
   */
  reason: string;
}

/**
 * Anything else. The kind is mailgate's word for it, or empty where something else answered, such as
 * a proxy; "unreadable" is a yes that cannot be read. After that, and where the httpStatus is 500 or
 * more, what was asked for may have been done.
 */
export interface Failed { status: "failed"; kind: string; httpStatus: number; detail: string; requestId: string }

/** What every call may end with that is not a yes. */
export type Refusal = Wait | Invalid | Unavailable | Unanswered | Failed;

export type SendResult = Sent | Rejected | Unknown | Unsettled | Refusal;
export type VerifyResult = { status: "verified" } | { status: "incorrect"; attemptsLeft: number } | { status: "expired" } | Refusal;
export type MailboxResult = (Standing & { status: "seen"; email: string }) | Refusal;
export type TakeResult = (Standing & { status: "taken"; id: string; delayMs: number }) | Refusal;
export type PeekResult = (Standing & { status: "peeked"; allowed: boolean }) | Refusal;
export type ReleaseResult = { status: "done"; released: boolean } | Refusal;
export type InspectResult = Inspected | Refusal;
/** A mailbox, its mails, and how the guesses at its codes stand: an empty list where the server checks no codes. */
export type Inspected = Standing & { status: "inspected"; email: string; sends: { id: string; at: string }[]; guesses: Limit[] };
export type ResetResult = { status: "reset"; cleared: number } | Refusal;

/** Makes an idempotency key that nobody has used. It need not be hard to guess: keys of one caller are no other's. */
export function newKey(): string {
  const made = globalThis.crypto?.randomUUID?.();
  if (made) return made;
  const part = () => Math.random().toString(36).slice(2, 12); // Node 18 has no crypto that is global
  return `${Date.now().toString(36)}-${part()}-${part()}-${part()}`;
}

type Settled = { [name in Exclude<keyof Options, "key">]-?: NonNullable<Options[name]> };

/** What counts may have been counted by a history that failed. */
interface Question { path: string; body?: unknown; key?: string; mail?: boolean; harmless?: boolean; counts?: boolean }

type Json = Record<string, unknown>;

/** What came back. Ours is whether the problem in it is one of mailgate's. */
interface Reply { http: number; json: Json; ours: boolean; requestId: string; retryAfterMs?: number; replayed?: boolean; notAsked?: boolean; reason?: string }

/** The http of a reply that did not come. */
const silence = -1;

type Reader<T> = (reply: Reply) => T | undefined;

const visible = /^[!-~]+$/;
const urn = "urn:mailgate:problem:";
const quota = "https://iana.org/assignments/http-problem-types#quota-exceeded";

function checkedBase(text: string): string {
  const wrong = new TypeError("mailgate: the URL must be http:// or https:// with a host, and at most a path");
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw wrong; // what was caught would show the text
  }
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || /[?#]/.test(text)) throw wrong;
  return url.href.replace(/\/+$/, "");
}

/** More ms than anybody waits. Timers fire at once for more than about twice as many, which a pause can be. */
const longest = 1_000_000_000;

function between(least: number, given: number | undefined, usual: number, name: string, most = Infinity): number {
  const value = given ?? usual;
  if (!(value >= least)) throw new TypeError(`mailgate: ${name} must be ${least} or more`);
  if (value > most) throw new TypeError(`mailgate: ${name} must be ${most} or less`);
  return value;
}

/** In one order, whoever has put it together: under one key mailgate takes the same bytes only. */
function sorted(data: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.keys(data).sort().map((name) => [name, data[name]!]));
}

/** A key as a String of RFC 9651. */
function quoted(key: string): string { return '"' + key.replace(/[\\"]/g, "\\$&") + '"'; }

/** A part of a path. Half a pair of surrogates has no encoding, and without a name another question would be asked. */
function segment(name: string, text: string): string {
  if (text === "" || text === "." || text === "..") throw new TypeError(`mailgate: the ${name} is empty, or consists of dots`);
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
}

/** How long the server wants to be left alone before the question is worth asking again; undefined if it is not. */
function again(q: Question, reply: Reply): number | undefined {
  const { http, ours } = reply;
  const worth =
    http === silence ? q.harmless || reply.notAsked :
    http === 409 ? kind(reply) === "idempotency-in-flight" :
    http === 503 ? q.harmless || (ours && !(q.counts && kind(reply) === "store-unavailable")) : // mailgate's own says that nothing was counted, unless its history failed
    http === 502 || http === 504 ? q.harmless && !ours :
    false;
  return worth ? reply.retryAfterMs ?? 0 : undefined;
}

/** Whether an attempt that ended so may have done what was asked for, or part of it. */
function inDoubt(q: Question, reply: Reply): boolean {
  const { http, ours } = reply;
  if (http === silence) return !reply.notAsked;
  if (http === 503 && ours) return kind(reply) === "store-unavailable" && !q.mail; // of a send it says that no mail was sent, as any other does
  return http === 200 || http >= 500 || kind(reply) === "idempotency-in-flight";
}

/**
 * Whether a refusal says what became of all attempts under its key. Any other is of its own
 * request alone. The limits are asked only where no mail of the key has left, as far as it can
 * be seen.
 */
function settles(last: Refusal): boolean { return last.status === "wait" && !last.degraded; }

/** Twice as long from attempt to attempt, and half of it chance, so that those who failed together do not come back together. */
function backoff(attempt: number, most: number): number {
  const ms = Math.min(most, 200 * 2 ** (attempt - 1));
  return ms / 2 + Math.random() * (ms / 2);
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", abort); resolve(); }, ms);
    signal?.aborted ? abort() : signal?.addEventListener("abort", abort, { once: true });
  });
}

/** The code that Node gives a failed fetch. A message is not told: it may quote what was asked. */
function codeOf(failed: unknown): string {
  const code = text((failed as { cause?: { code?: unknown } } | undefined)?.cause?.code);
  return /^[A-Z0-9_]+$/.test(code) ? code : "";
}

/** Whether the connection was never made. */
function certainlyNotAsked(reason: string): boolean {
  return reason === "ECONNREFUSED" || reason === "ENOTFOUND" || reason === "EAI_AGAIN" || reason === "UND_ERR_CONNECT_TIMEOUT";
}

/** Far more than mailgate ever says. */
const maxReply = 1 << 20;

async function readReply(response: Response): Promise<Reply> {
  const json = parsed(await readBounded(response));
  const type = text(json.type);
  return {
    http: response.status, json, requestId: text(response.headers.get("x-request-id")),
    ours: type.startsWith(urn) || type === quota,
    retryAfterMs: retryAfter(response.headers), replayed: response.headers.get("idempotent-replayed") === "true",
  };
}

async function readBounded(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let all = "", size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return all + decoder.decode();
    size += chunk.value.byteLength;
    if (size > maxReply) {
      await reader?.cancel();
      return ""; // which is nothing that can be read
    }
    all += decoder.decode(chunk.value, { stream: true });
  }
}

function parsed(body: string): Json {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as Json) : {};
  } catch {
    return {};
  }
}

/** Seconds, or a date, which counts from the answer's own: the clock here may be another. */
function retryAfter(headers: Headers): number {
  const value = headers.get("retry-after") ?? "";
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.parse(headers.get("date") ?? "");
  return ms > 0 ? ms : 0;
}

function text(value: unknown): string { return typeof value === "string" ? value : ""; }

function count(value: unknown): number { return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : NaN; }

function list(value: unknown): Json[] { return Array.isArray(value) ? value.filter((v) => typeof v === "object" && v !== null) : []; }

function kind(reply: Reply): string { const type = text(reply.json.type); return type.startsWith(urn) ? type.slice(urn.length) : ""; }

/** readLimits is how limits stand; undefined if one of them lacks a number. */
function readLimits(value: unknown): Limit[] | undefined {
  const limits = list(value).map((l) => ({
    name: text(l.name), limit: count(l.limit), windowMs: count(l.window_ms), remaining: count(l.remaining), waitMs: count(l.wait_ms),
  }));
  return limits.some((l) => Number.isNaN(l.limit + l.windowMs + l.remaining + l.waitMs)) ? undefined : limits;
}

function readStanding({ json }: Reply): Standing | undefined {
  const limits = readLimits(json.limits);
  const waitMs = count(json.wait_ms), serverTime = text(json.server_time), retryAt = text(json.retry_at);
  if (Number.isNaN(waitMs) || !serverTime || !retryAt || !limits) return undefined;
  const standing: Standing = {
    rule: text(json.rule) || null, limit: text(json.limit) || null, waitMs, retryAt, serverTime, limits, degraded: json.degraded === true,
  };
  if (text(json.countdown)) standing.countdown = text(json.countdown);
  return standing;
}

const readSent: Reader<Sent> = (reply) => {
  const { json } = reply, standing = readStanding(reply), id = text(json.id);
  if (!standing || json.status !== "sent" || !id) return undefined;
  const sent: Sent = { ...standing, status: "sent", id, messageId: text(json.message_id), email: text(json.email), replayed: reply.replayed === true };
  if (count(json.expires_in_ms)) sent.expiresInMs = count(json.expires_in_ms);
  return sent;
};

const readVerified: Reader<{ status: "verified" }> = ({ json }) => (json.verified === true ? { status: "verified" } : undefined);

const readMailbox: Reader<Standing & { status: "seen"; email: string }> = (reply) => {
  const standing = readStanding(reply), email = text(reply.json.email);
  return standing && email ? { ...standing, status: "seen", email } : undefined;
};

const readTaken: Reader<Standing & { status: "taken"; id: string; delayMs: number }> = (reply) => {
  const standing = readStanding(reply), id = text(reply.json.id);
  return standing && id && reply.json.allowed === true ? { ...standing, status: "taken", id, delayMs: count(reply.json.delay_ms) || 0 } : undefined;
};

const readPeeked: Reader<Standing & { status: "peeked"; allowed: boolean }> = (reply) => {
  const standing = readStanding(reply), { allowed } = reply.json;
  return standing && typeof allowed === "boolean" ? { ...standing, status: "peeked", allowed } : undefined;
};

const readReleased: Reader<{ status: "done"; released: boolean }> = ({ json: { released } }) =>
  typeof released === "boolean" ? { status: "done", released } : undefined;

const readInspected: Reader<Inspected> = (reply) => {
  const seen = readMailbox(reply), guesses = readLimits(reply.json.guesses);
  if (!seen || !guesses || !Array.isArray(reply.json.sends)) return undefined;
  return { ...seen, status: "inspected", guesses, sends: list(reply.json.sends).map((s) => ({ id: text(s.id), at: text(s.at) })) };
};

const readReset: Reader<{ status: "reset"; cleared: number }> = ({ json }) =>
  Number.isNaN(count(json.cleared)) ? undefined : { status: "reset", cleared: count(json.cleared) };

const readSendRefusal: Reader<Rejected | Unknown> = (reply) => {
  const { json, requestId } = reply, standing = readStanding(reply);
  const about: Charged = { id: text(json.id), requestId, replayed: reply.replayed === true };
  if (standing) about.standing = standing;
  if (kind(reply) === "delivery-unknown") return { status: "unknown", ...about };
  if (kind(reply) !== "recipient-rejected") return undefined;
  const smtp = list([json.smtp])[0] ?? {};
  return { status: "rejected", smtp: { code: count(smtp.code), enhanced: text(smtp.enhanced), message: text(smtp.message) }, ...about };
};

const readGuess: Reader<{ status: "incorrect"; attemptsLeft: number } | { status: "expired" }> = (reply) => {
  const attemptsLeft = count(reply.json.attempts_left);
  if (kind(reply) === "code-expired") return { status: "expired" };
  return kind(reply) === "code-incorrect" && !Number.isNaN(attemptsLeft) ? { status: "incorrect", attemptsLeft } : undefined;
};

function readRefusal(reply: Reply, doubt: boolean): Refusal {
  const { json, http, requestId } = reply, detail = text(json.detail);
  if (http === silence) return { status: "unanswered", notAsked: !doubt, reason: reply.reason ?? "" };
  if (http === 200) return { status: "failed", httpStatus: 200, kind: "unreadable", detail: "", requestId };
  const standing = http === 429 && json.type === quota ? readStanding(reply) : undefined;
  if (standing?.rule && standing.limit) {
    const violated = Array.isArray(json["violated-policies"]) ? json["violated-policies"].map(text) : [];
    return { ...standing, status: "wait", rule: standing.rule, limit: standing.limit, violated, detail, requestId };
  }
  if (kind(reply) === "invalid") {
    const fields = list(json.errors).map((f) => ({ field: text(f.field), reason: text(f.reason), detail: text(f.detail) }));
    return { status: "invalid", fields, requestId };
  }
  if (http === 503 && reply.ours) return { status: "unavailable", kind: kind(reply), retryAfterMs: reply.retryAfterMs ?? 0, detail, requestId };
  return { status: "failed", kind: kind(reply), httpStatus: http, detail, requestId };
}
