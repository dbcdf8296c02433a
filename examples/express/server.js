// The back end of a sign-up page with Express.
import express from "express";
import { forCountdown, limitReached, Mailgate } from "mailgate";

const { MAILGATE_URL = "http://127.0.0.1:8080", MAILGATE_KEY, LISTEN = "127.0.0.1:3000" } = process.env;
const gate = new Mailgate(MAILGATE_URL, { key: MAILGATE_KEY });
const app = express();
app.use(express.urlencoded({ extended: false }));
app.use(express.static(new URL("../html", import.meta.url).pathname));

const statuses = { [limitReached]: 429, "/docs#invalid": 422, "/docs#recipient-rejected": 422 };

app.post("/send", async (request, response) => {
  const result = await gate.send({ email: request.body.email ?? "", purpose: "sign-up" });
  response.status(result.data ? 200 : statuses[result.error.type] ?? 502).json(forCountdown(result));
});

app.post("/verify", async (request, response) => {
  const { data } = await gate.verify({ email: request.body.email ?? "", code: request.body.code ?? "", purpose: "sign-up" });
  response.sendStatus(data ? 204 : 422); // at 204 begins the session
});

const [host, port] = LISTEN.split(":");
app.listen(Number(port), host);
