// Sends twice with a client of hey-api, and prints why the second was refused.
import { client } from "./api/client.gen.js";
import { sendCode } from "./api/sdk.gen.js";

const [url, key, email] = process.argv.slice(2) as [string, string, string];
client.setConfig({ baseUrl: url, auth: key });
for (const _ of [1, 2]) {
  const { data, error } = await sendCode({ body: { email } });
  if (data) console.log("sent", data.wait_ms);
  else if ("violated-policies" in error) console.log("refused", error.rule, error.limit);
  else console.log(error.type);
}
