import "mailgate/countdown";
import type { MailgateCountdown } from "mailgate/countdown";
import type {} from "mailgate/react";
import { type FormEvent, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

function SignUp() {
  const [email, setEmail] = useState("");
  const [said, say] = useState("");
  const countdown = useRef<MailgateCountdown>(null);
  const sending = useRef(false);

  async function send(event: FormEvent) {
    event.preventDefault();
    if (sending.current) return; // a double click
    sending.current = true;
    try {
      const answer = await fetch("/send", { method: "POST", body: new URLSearchParams({ email }) });
      countdown.current?.update(await answer.json());
      say(answer.ok ? "Look into your mailbox." : answer.status === 429 ? "" : "That did not work. Check the address and try again.");
    } finally {
      sending.current = false;
    }
  }

  return (
    <form onSubmit={send}>
      <label>Email <input type="email" required value={email} onChange={(event) => setEmail(event.target.value)} /></label>
      <button id="send">Send a code</button>
      <mailgate-countdown ref={countdown} for="send" mailbox={email} base="http://127.0.0.1:8080/countdown/" onmailgate-end={() => say("")} />
      <p role="status">{said}</p>
    </form>
  );
}

createRoot(document.querySelector("#root")!).render(<SignUp />);
