/**
 * The client of a mailgate server, for Node 20 or newer, Deno, Bun and edge runtimes.
 *
 *     const gate = new Mailgate("https://mailgate.internal", { key: process.env.GATE_KEY });
 *     const { data, error } = await gate.send({ email, client_ip });
 *     if (data) …                                // sent; the next one in data.wait_ms
 *     else if (error.type === limitReached) …    // error.rule, error.limit, error.wait_ms
 *
 * Requests and answers are those of openapi.yaml, and `error` narrows by its `type`. Calls throw
 * only for invalid arguments (TypeError), and reject with a signal's reason when it aborts.
 */
import type { components, paths } from "./openapi.js";

type Schemas = components["schemas"];
type Body<R> = R extends { content: infer C } ? C[keyof C] : never;
type Data<O> = O extends { responses: { 200: infer R } } ? Body<R> : never;
type Errors<O> = O extends { responses: infer R } ? Body<R[Exclude<keyof R, 200 | "200">]> : never;

export type Mail = Schemas["SendRequest"];
export type Guess = Omit<Schemas["VerifyRequest"], "verified"> & { code: string };
export type SendResult = Result<paths["/send-code"]["post"]>;
export type VerifyResult = Result<paths["/verify-code"]["post"]>;
export type MailboxResult = Result<paths["/mailboxes/peek"]["post"]>;
export type TakeResult = Result<paths["/actions/{action}/take"]["post"]>;
export type PeekResult = Result<paths["/actions/{action}/peek"]["post"]>;
export type ReleaseResult = Result<paths["/actions/{action}/release"]["post"]>;

/** The type of the problem that says which limit was reached and how long to wait. */
export const limitReached = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/** The answer of a call: `data` if it was granted, otherwise `error`. */
export type Result<Operation> = About & ({ data: Data<Operation>; error?: undefined } | { data?: undefined; error: Errors<Operation> | NoAnswer | OtherAnswer });

export interface About {
  /** The stored answer to an earlier request under the same key. */
  replayed: boolean;
  /**
   * The request may have taken effect, and the call could not find out. The same send under
   * `idempotencyKey` finds out, within 24 hours and without a second email.
   */
  uncertain: boolean;
  /** Of a send or a take: the key, given or generated. */
  idempotencyKey?: string;
  /** In mailgate's log; empty without an answer. */
  requestId: string;
}

/** There was no answer. The reason is "timeout", a code of the runtime such as "ECONNREFUSED", or empty. */
export interface NoAnswer { type: "urn:mailgate:client:no-answer"; reason: string }

/** Something other than mailgate answered, such as a proxy, or the answer is incomplete. */
export interface OtherAnswer { type: "urn:mailgate:client:other-answer"; status: number }

export interface Options {
  /** The secret of an API key. Leave it out for a local server without keys: undefined or empty is an error. */
  key?: string | undefined;
  /** How often a request is made at most. 4. */
  attempts?: number | undefined;
  /** The limit of each attempt. 20 s. */
  timeoutMs?: number | undefined;
  /** The longest Retry-After that is waited for, and the longest pause of the client's own, which is added to it. 5 s. */
  maxPauseMs?: number | undefined;
}

export interface Call {
  /** Ends the call. A send with an idempotencyKey can be continued. */
  signal?: AbortSignal | undefined;
}

export interface SendCall extends Call {
  /** Sends with the same key and content are one email. Without it each call generates one. */
  idempotencyKey?: string | undefined;
}

export class Mailgate {
  readonly #base: string;
  readonly #headers: Record<string, string> = { accept: "application/json, application/problem+json", "content-type": "application/json" };
  readonly #limits: { attempts: number; timeoutMs: number; maxPauseMs: number };

  /** The URL is that of the server, which may have a path. */
  constructor(url: string, options: Options = {}) {
    const { key, attempts = 4, timeoutMs = 20_000, maxPauseMs = 5_000 } = options;
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password || /[?#]/.test(url)) {
      throw new TypeError("mailgate: the URL must be http:// or https:// with a host and at most a path");
    }
    if (!(attempts >= 1 && timeoutMs >= 1 && timeoutMs <= 1e9 && maxPauseMs >= 0 && maxPauseMs <= 1e9)) throw new TypeError("mailgate: an option is out of range");
    if ("key" in options) { // a variable that is not set must not become a request without a key
      if (!key) throw new TypeError("mailgate: the key is empty");
      if (!visible.test(key)) throw new TypeError("mailgate: the key contains an invalid character");
      this.#headers.authorization = "Bearer " + key;
    }
    this.#base = parsed.href.replace(/\/+$/, "");
    this.#limits = { attempts, timeoutMs, maxPauseMs };
  }

  /** Sends a code. One call sends at most one email, as it is repeated under one key. */
  async send(mail: Mail, { idempotencyKey: key = newKey(), signal }: SendCall = {}): Promise<SendResult> {
    if (!visible.test(key) || key.length > 255) throw new TypeError("mailgate: the idempotencyKey must be 1 to 255 visible ASCII characters");
    return this.#do({ path: "/send-code", body: mail, key, mail: true }, signal, (a) => a.status === "sent" && !!a.id && !!a.server_time);
  }

  /** Checks a code that mailgate made and sent. It is repeated only if mailgate certainly did not check it. */
  async verify(guess: Guess, { signal }: Call = {}): Promise<VerifyResult> {
    return this.#do({ path: "/verify-code", body: guess, once: true }, signal, (a) => a.verified === true);
  }

  /** Reports that a code of your own was right, for rules with `counts: unverified`. */
  async report(email: string, { signal }: Call = {}): Promise<VerifyResult> {
    return this.#do({ path: "/verify-code", body: { email, verified: true } }, signal, (a) => a.verified === true);
  }

  /** Returns what a send would be answered now. It uses no quota of the mailbox. */
  async mailbox(email: string, { signal }: Call = {}): Promise<MailboxResult> {
    return this.#do({ path: "/mailboxes/peek", body: { email }, reads: true }, signal, (a) => !!a.email && !!a.server_time);
  }

  /** Takes an action for a subject and counts it. It is repeated under one key, so that tiers count it once. */
  async take(action: string, subject: string, { signal }: Call = {}): Promise<TakeResult> {
    return this.#do({ path: `/actions/${segment(action)}/take`, body: { subject }, key: newKey() }, signal, (a) => a.allowed === true && !!a.id);
  }

  /** Returns what a take would be answered now. */
  async peek(action: string, subject: string, { signal }: Call = {}): Promise<PeekResult> {
    return this.#do({ path: `/actions/${segment(action)}/peek`, body: { subject }, reads: true }, signal, (a) => typeof a.allowed === "boolean");
  }

  /** Refunds a take. It is repeated only if mailgate certainly did nothing. */
  async release(action: string, subject: string, id: string, { signal }: Call = {}): Promise<ReleaseResult> {
    return this.#do({ path: `/actions/${segment(action)}/release`, body: { subject, id }, once: true }, signal, (a) => typeof a.released === "boolean");
  }

  async #do<O>(request: Request, signal: AbortSignal | undefined, complete: (answer: Json) => boolean): Promise<Result<O>> {
    const body = JSON.stringify(request.body, ordered); // under one key only the same bytes are the same send
    const { attempts, maxPauseMs } = this.#limits;
    let uncertain = false;
    for (let attempt = 1; ; attempt++) {
      const reply = await this.#try(request, body, signal);
      const { json, status, replayed, requestId } = reply;
      const about: About = { replayed, requestId, uncertain: false, ...(request.key === undefined ? {} : { idempotencyKey: request.key }) };
      if (status === 200 && complete(json)) return { ...about, data: json as Data<O> };
      uncertain ||= mayHaveActed(request, reply);
      if (attempt >= attempts || !retries(request, reply) || reply.retryAfterMs > maxPauseMs) {
        const client: NoAnswer | OtherAnswer = status === 0 ? { type: "urn:mailgate:client:no-answer", reason: reply.reason } : { type: "urn:mailgate:client:other-answer", status };
        return { ...about, error: reply.ours ? (json as Errors<O>) : client, uncertain: uncertain && !settles(reply) };
      }
      const own = Math.min(maxPauseMs, 100 * 2 ** attempt); // half of it is random, so that clients that failed together do not return together
      await sleep(reply.retryAfterMs + own / 2 + (Math.random() * own) / 2, signal);
    }
  }

  async #try(request: Request, body: string, signal: AbortSignal | undefined): Promise<Reply> {
    signal?.throwIfAborted();
    const timeout = AbortSignal.timeout(this.#limits.timeoutMs);
    const headers = { ...this.#headers };
    if (request.key !== undefined) headers["idempotency-key"] = '"' + request.key.replace(/[\\"]/g, "\\$&") + '"';
    try {
      const response = await fetch(this.#base + request.path, {
        method: "POST", headers, body, redirect: "manual", signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      return readReply(response, await response.text());
    } catch (failure) {
      signal?.throwIfAborted();
      const code = String((failure as { cause?: { code?: unknown } } | undefined)?.cause?.code ?? ""); // a message could quote what was sent
      const reason = timeout.aborted ? "timeout" : /^[A-Z0-9_]+$/.test(code) ? code : "";
      return { status: 0, json: {}, ours: false, kind: "", retryAfterMs: 0, replayed: false, requestId: "", reason };
    }
  }
}

/** Generates an idempotency key. */
export const newKey = (): string => crypto.randomUUID();

/** What `update` of `<mailgate-countdown>` takes of an answer; null, which changes nothing, of an answer without limits. */
export function forCountdown(result: SendResult | MailboxResult): Countdown | null {
  const answer = result.data ?? result.error;
  if (!("limits" in answer)) return null;
  const { limit, wait_ms, retry_at, limits } = answer;
  const countdown = answer.countdown === undefined ? {} : { countdown: answer.countdown };
  const challenge = "challenge" in answer ? { challenge: answer.challenge } : {};
  return { limit, wait_ms, retry_at, limits, ...countdown, ...challenge, ...(result.replayed ? { replayed: true as const } : {}) };
}

export type Countdown = Pick<Schemas["Verdict"], "limit" | "wait_ms" | "retry_at" | "limits"> & { countdown?: string; challenge?: Schemas["Challenge"]; replayed?: true };

/** A request, as often as it is made. `reads` changes nothing; `once` may count or refund twice if repeated; a 503 of `mail` sent none. */
interface Request { path: string; body: object; key?: string; reads?: boolean; once?: boolean; mail?: boolean }

type Json = Record<string, unknown>;

/** An answer, or with status 0 none. `kind` is the last part of a problem's type. */
interface Reply { status: number; json: Json; ours: boolean; kind: string; retryAfterMs: number; replayed: boolean; requestId: string; reason: string }

const visible = /^[!-~]+$/;
const typePrefix = "/docs#";

function readReply(response: Response, text: string): Reply {
  let json: Json = {};
  try { json = Object(JSON.parse(text)) as Json; } catch { /* not mailgate's */ }
  const type = typeof json.type === "string" ? json.type : "";
  const seconds = response.headers.get("retry-after") ?? "";
  return {
    status: response.status, json, reason: "",
    ours: response.status !== 200 && (type.startsWith(typePrefix) || (type === limitReached && typeof json.wait_ms === "number" && Array.isArray(json.limits))),
    kind: type.startsWith(typePrefix) ? type.slice(typePrefix.length) : "",
    retryAfterMs: /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : 0,
    replayed: response.headers.get("idempotent-replayed") === "true", requestId: response.headers.get("x-request-id") ?? "",
  };
}

/** Whether a request that ended so may be repeated. */
function retries({ once }: Request, reply: Reply): boolean {
  switch (reply.status) {
    case 0: return !once || !sent(reply);
    case 409: return reply.kind === "idempotency-in-flight";
    case 503: return !once || (reply.ours && reply.kind !== "store-unavailable"); // mailgate's own did nothing, unless its storage failed
    case 502: case 504: return !once && !reply.ours;
  }
  return false;
}

/** Whether an attempt that ended so may have sent or counted something. */
function mayHaveActed({ reads, mail }: Request, reply: Reply): boolean {
  if (reads) return false;
  if (reply.status === 0) return sent(reply);
  if (reply.status === 503 && reply.ours) return reply.kind === "store-unavailable" && !mail;
  return reply.status === 200 || reply.status >= 500 || reply.kind === "idempotency-in-flight";
}

/** Whether a request without an answer may have reached a server: not if there was no connection, or its handshake failed. */
const sent = ({ reason }: Reply) => !noConnection.test(reason);
const noConnection = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS_CERT_.*|CERT_.*|.*_SELF_SIGNED_.*|SELF_SIGNED_.*|UNABLE_TO_.*)$/;

/** Whether an answer tells what became of all attempts under its key. */
function settles({ ours, json, kind }: Reply): boolean {
  return ours && (kind === "recipient-rejected" || kind === "delivery-unknown" || (json.type === limitReached && json.degraded !== true));
}

/** For JSON.stringify: the members of all objects in one order. */
function ordered(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** An action's name in a path. An empty one, or dots, would lead to another path. */
function segment(action: string): string {
  if (/^\.{0,2}$/.test(action)) throw new TypeError("mailgate: the action is empty or consists of dots");
  return encodeURIComponent(action.replace(/[\ud800-\udfff]/gu, "\ufffd")); // half a surrogate pair has no encoding
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", abort); resolve(); }, ms);
    signal?.aborted ? abort() : signal?.addEventListener("abort", abort, { once: true });
  });
}
