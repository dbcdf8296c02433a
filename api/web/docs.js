// The API page: each request as a sample in three languages, and a form that sends it.

import { busy } from "./busy.js";
import { recall, remember } from "./memory.js";

const keys = { api: "mailgate-docs-api-key", admin: "mailgate-admin-key" }; // the second is the console's too
const forms = [...document.querySelectorAll("form.try")];
const wide = matchMedia("(min-width: 75rem)").matches; // there is room for examples beside the answers
const languages = ["curl", "go", "typescript"];

if (document.querySelector("meta[name=mailgate-key]").content === "none") {
  document.querySelectorAll(".try [name=key]").forEach((field) => field.parentElement.remove());
}

// request reads a form: what would be sent, with the key itself or a placeholder for it.
function request(form, key) {
  const { method } = form.dataset;
  let url = location.origin + form.dataset.path;
  const headers = form.elements.key && key !== "" ? { Authorization: `Bearer ${key}` } : {};
  const body = form.elements.body?.value.trim();
  if (body) {
    headers["Content-Type"] = "application/json";
  }
  for (const input of form.querySelectorAll("[data-in]")) {
    if (input.dataset.in === "path") {
      url = url.replace(`{${input.name}}`, input.value === "" ? "$&" : encodeURIComponent(input.value));
    } else if (input.value !== "") {
      headers[input.name] = input.value;
    }
  }
  return { method, url, headers, body };
}

const inShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
const inGo = (text) => (text.includes("`") ? JSON.stringify(text) : `\`${text}\``);

const samples = {
  curl({ method, url, headers, body }) {
    const lines = Object.entries(headers).map(([name, value]) => `-H ${inShell(`${name}: ${value}`)}`);
    return [`curl ${method === "GET" || body ? "" : `-X ${method} `}${inShell(url)}`, ...lines, ...(body ? [`-d ${inShell(body)}`] : [])].join(" \\\n  ");
  },
  go({ method, url, headers, body }) {
    return `request, err := http.NewRequest("${method}", ${JSON.stringify(url)}, ${body ? `strings.NewReader(${inGo(body)})` : "nil"})
if err != nil {
	return err
}
${Object.entries(headers).map(([name, value]) => `request.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})\n`).join("")}response, err := http.DefaultClient.Do(request)
if err != nil {
	return err
}
defer response.Body.Close()`;
  },
  typescript({ method, url, headers, body }) {
    const options = [
      ...(method === "GET" ? [] : [`method: "${method}"`]),
      ...(Object.keys(headers).length > 0 ? [`headers: ${JSON.stringify(headers, null, 2).replaceAll("\n", "\n  ")}`] : []),
      ...(body ? [`body: JSON.stringify(${body.replaceAll("\n", "\n  ")})`] : []),
    ];
    return `const response = await fetch(${JSON.stringify(url)}${options.length > 0 ? `, {\n${options.map((one) => `  ${one},\n`).join("")}}` : ""});`;
  },
};

function showSample(form) {
  const tab = form.querySelector("[aria-selected=true]");
  form.querySelector(".sample").textContent = samples[tab.dataset.language](request(form, "YOUR-KEY")); // a key that was typed is shown nowhere
  form.querySelector(".sample").setAttribute("aria-labelledby", tab.id);
}

// choose shows all samples in one language.
function choose(language) {
  remember("mailgate-docs-language", language);
  for (const form of forms) {
    for (const tab of form.querySelectorAll("[role=tab]")) {
      tab.ariaSelected = String(tab.dataset.language === language);
      tab.tabIndex = tab.dataset.language === language ? 0 : -1;
    }
    showSample(form);
  }
}

async function send(form) {
  const { method, url, headers, body } = request(form, form.elements.key?.value ?? "");
  const output = form.querySelector("output");
  output.textContent = "…";
  try {
    const answer = await fetch(url, { method, headers, body: body || undefined, cache: "no-store", credentials: "omit", redirect: "error" });
    const text = await answer.text();
    output.textContent = [`${answer.status} ${answer.statusText}`, "", pretty(text), "", ...[...answer.headers].map(([name, value]) => `${name}: ${value}`)].join("\n");
  } catch (error) {
    output.textContent = `No answer: ${error.message}`;
  }
}

async function copy(form, button) {
  try {
    await navigator.clipboard.writeText(form.querySelector(".sample").textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying failed";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// find shows the guides, routes and problems that have all words of the search in their text, their fields or their statuses, from
// the first on. Of a route that has an answer with a status among the words, it shows no other answers.
function find(text) {
  const words = text.toLowerCase().split(/\s+/);
  for (const article of document.querySelectorAll("article")) {
    const said = [...article.querySelectorAll(":scope > :is(div:first-child, details), dt, .status")].map((part) => part.textContent).join(" ").toLowerCase();
    article.hidden = !words.every((word) => said.includes(word));
    const answers = [...article.querySelectorAll("[data-status]")];
    const meant = answers.filter((answer) => words.includes(answer.dataset.status));
    for (const answer of answers) {
      answer.hidden = meant.length > 0 && !meant.includes(answer);
      const example = answer.querySelector(".first");
      if (example) {
        example.open = wide || meant.includes(answer);
      }
    }
    document.querySelector(`.routes a[href="#${article.id}"]`).parentElement.hidden = article.hidden;
  }
  for (const group of document.querySelectorAll("[data-group]")) {
    group.hidden = !group.querySelector("article:not([hidden]), :scope > ul > li:not([hidden])");
  }
  document.getElementById("unmatched").hidden = document.querySelector("article:not([hidden])") !== null;
  if (text !== "") {
    scrollTo({ top: 0, behavior: "instant" });
  }
}

const search = document.getElementById("search");
search.addEventListener("input", () => find(search.value));
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input, textarea, select") && !event.ctrlKey && !event.metaKey && !event.altKey) {
    search.focus();
    event.preventDefault();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = "";
    find("");
  }
});

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text.length > 20000 ? `${text.slice(0, 20000)}…` : text;
  }
}

for (const form of forms) {
  const { key, body } = form.elements;
  if (key) {
    key.value = recall(keys[form.dataset.key]);
  }
  form.addEventListener("input", ({ target }) => {
    if (target === key) {
      remember(keys[form.dataset.key], key.value);
      for (const other of forms.filter((one) => one.dataset.key === form.dataset.key)) {
        other.elements.key.value = key.value;
      }
    } else if (target.tagName === "SELECT") {
      body.value = target.value;
    }
    showSample(form);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector(".primary"), () => send(form));
  });
  form.querySelector(".copy").addEventListener("click", ({ target }) => copy(form, target));
  form.querySelector(".tabs").addEventListener("click", ({ target }) => target.dataset.language && choose(target.dataset.language));
  form.querySelector(".tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: 2 }[event.key];
    if (step) {
      const next = languages[(languages.indexOf(event.target.dataset.language) + step) % 3];
      choose(next);
      form.querySelector(`[data-language=${next}]`).focus();
    }
  });
  form.hidden = false;
}
document.querySelector(".routes details").open = matchMedia("(min-width: 64rem)").matches;
find("");

// unfold opens the guide that a link leads to.
function unfold() {
  const guide = document.getElementById(location.hash.slice(1))?.querySelector(":scope > details");
  if (guide) {
    guide.open = true;
  }
}
addEventListener("hashchange", unfold);
unfold();
choose(recall("mailgate-docs-language") || languages[0]);
