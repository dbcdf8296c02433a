"use client";
import "mailgate/countdown";
import type { MailgateCountdown } from "mailgate/countdown";
import type {} from "mailgate/react";
import { type FormEvent, useRef, useState } from "react";

export default function SignUp() {
  const [email, setEmail] = useState("");
  const countdown = useRef<MailgateCountdown>(null);

  async function send(event: FormEvent) {
    event.preventDefault();
    const answer = await fetch("/send", { method: "POST", body: new URLSearchParams({ email }) });
    countdown.current?.update(await answer.json());
  }

  return (
    <form onSubmit={send}>
      <label>Email <input type="email" required value={email} onChange={(event) => setEmail(event.target.value)} /></label>
      <button id="send" suppressHydrationWarning>Send a code</button>
      <mailgate-countdown ref={countdown} for="send" mailbox={email} base="http://127.0.0.1:8080/countdown/" suppressHydrationWarning />
    </form>
  );
}
