// Sends twice with openapi-fetch and the types of openapi-typescript, and prints why the second was refused.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [url, key, email] = process.argv.slice(2) as [string, string, string];
const gate = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });
for (const _ of [1, 2]) {
  const { data, error } = await gate.POST("/send-code", { body: { email } });
  if (data) console.log("sent", data.wait_ms);
  else if (error.type === "https://iana.org/assignments/http-problem-types#quota-exceeded") console.log("refused", error.rule, error.limit);
  else console.log(error.type);
}
