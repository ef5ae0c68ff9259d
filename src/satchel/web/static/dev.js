// The one script of `satchel dev`. It renders no text as HTML: what the server sends is escaped
// there, and everything else is set as text.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const csrf = $("meta[name=csrf]")?.content ?? "";

/** Make an element: attributes, then children; a text child is text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

let toastTimer;
function say(text) {
  const toast = $("#toast");
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.hidden = true; }, 6000);
}

/** A number that JavaScript would change, such as a large integer, with its digits. */
class Exact {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
  valueOf() { return Number(this.text); }
  toJSON() { return JSON.rawJSON(this.text); }
}

/** Parse JSON, and keep the digits of its numbers. */
const parse = (text) => JSON.parse(text, (_key, value, context) => (typeof value === "number" && JSON.rawJSON && String(value) !== context.source ? new Exact(context.source) : value));

function request(path, body, options = {}) {
  return fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf },
    body: JSON.stringify(body ?? {}),
    ...options,
  });
}

/** Return what a response that is not OK says. */
async function problemOf(response) {
  const text = await response.text();
  let answer;
  try { answer = parse(text); } catch { answer = { error: text }; }
  return [answer.error, answer.fix].filter(Boolean).join(" — ");
}

/** Post JSON; return the answer, or say what went wrong and return null. */
async function act(path, body) {
  try {
    const response = await request(path, body);
    if (response.ok) return parse(await response.text());
    say(await problemOf(response));
  } catch (problem) {
    say(`The server does not answer: ${problem.message}`);
  }
  return null;
}

// ---- live: parts with data-live are replaced by those of the newest page ----------------------

let revision = null, refreshing = null, again = false;

function addressOfNow() {
  const address = new URL(location.href);
  const rows = $$("#results a.row").length;
  if (rows > 100) address.searchParams.set("limit", String(Math.min(rows, 2000)));
  return address;
}

async function refresh() {
  if (refreshing) { again = true; return refreshing; }
  refreshing = (async () => {
    do {
      again = false;
      const page = location.href;
      const response = await fetch(addressOfNow());
      if (response.status === 401) { location.reload(); return; }
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      if (page !== location.href) continue;
      showGone(response.status === 404 ? $("#main > p", fresh)?.textContent : null);
      replaceLive(fresh);
    } while (again);
  })().catch(() => {}).finally(() => { refreshing = null; });
  return refreshing;
}

/** Say that what the page shows was removed; without a message it is there again. */
function showGone(message) {
  $("#gone")?.remove();
  if (!message) return;
  $("#main").prepend(make("p", { id: "gone", class: "reason error", role: "alert" }, `This was removed: ${message}`));
  const chip = $("#main .head .chip");
  if (!chip) return;
  chip.className = "chip failed";
  chip.textContent = "removed";
  delete chip.closest("[data-live]")?.dataset.html;
}

function replaceLive(fresh) {
  for (const old of $$("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (!now || now.innerHTML === old.dataset.html) continue;
    const shown = now.innerHTML;
    if (old.dataset.html === undefined && shown === old.innerHTML) { old.dataset.html = shown; continue; }
    const open = $$("details[open][id]", old).map((one) => one.id);
    const focus = old.contains(document.activeElement) ? document.activeElement : null;
    const where = focus && { id: focus.id, href: focus.getAttribute("href"), name: focus.getAttribute("name") };
    old.replaceChildren(...document.importNode(now, true).childNodes);
    for (const name of now.getAttributeNames()) old.setAttribute(name, now.getAttribute(name));
    old.dataset.html = shown;
    for (const id of open) { const one = document.getElementById(id); if (one) one.open = true; }
    if (where) {
      const find = (key) => where[key] && $$(`[${key}]`, old).find((one) => one.getAttribute(key) === where[key]);
      (find("id") || find("href") || find("name"))?.focus();
    }
    if (!$("#q")?.matches(":focus")) { old.classList.remove("flash"); void old.offsetWidth; old.classList.add("flash"); }
    enliven(old);
    old.dispatchEvent(new CustomEvent("live", { bubbles: true }));
  }
}

function setLive(isOn, text) {
  $("#live").className = `live ${isOn ? "on" : "off"}`;
  if ($("#live-text").textContent !== text) $("#live-text").textContent = text;
}

/** Take the state of the server; `null` if it cannot be reached. */
function takeState(state) {
  setLive(state !== null, state === null ? "no server" : "live");
  if (state !== null && revision !== null && revision !== state.revision) refresh();
  revision = state === null ? -1 : state.revision;
}

// A browser opens few connections to one server, so one page holds the stream for all of them.
const pages = new BroadcastChannel("satchel-events");
let newest;
pages.onmessage = ({ data }) => {
  if (data !== "ask") takeState(data);
  else if (newest !== undefined) pages.postMessage(newest);
};

function shareState(state) {
  newest = state;
  takeState(state);
  pages.postMessage(state);
}

function holdStream() {
  const source = new EventSource("/events");
  source.onmessage = (event) => shareState(parse(event.data));
  source.onerror = () => {
    shareState(null);
    // After an answer that is no stream the browser gives up, so start again.
    if (source.readyState === EventSource.CLOSED) setTimeout(holdStream, 1000);
  };
  addEventListener("pagehide", () => source.close(), { once: true });
}

function connect() {
  if (!navigator.locks) return holdStream(); // the page is not from this machine, and not over https
  pages.postMessage("ask");
  navigator.locks.request("satchel-events", () => {
    holdStream();
    return new Promise(() => {}); // until the page is closed
  });
}

// ---- catalog: search as you type, rows as you scroll ------------------------------------------

let typing = null;
async function filterCatalog() {
  const form = $("#catalog-search");
  const query = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  const address = query.size ? `/?${query}` : "/";
  typing?.abort();
  typing = new AbortController();
  try {
    const response = await fetch(address, { signal: typing.signal });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    history.replaceState(null, "", address);
    replaceLive(fresh);
  } catch (problem) {
    if (problem.name !== "AbortError") say(problem.message);
  }
}

async function showMore(link) {
  if (link.dataset.loading) return;
  link.dataset.loading = "yes";
  const response = await fetch(`${link.getAttribute("href")}&part=rows`);
  const table = new DOMParser().parseFromString(`<table><tbody>${await response.text()}</tbody></table>`, "text/html");
  const rows = [...$("tbody", table).children];
  link.closest("tr").replaceWith(...rows.map((row) => document.importNode(row, true)));
  delete $("#results").dataset.html;
  enliven($("#results"));
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) showMore(entry.target);
}, { rootMargin: "600px" });

/** Connect what was just put into the page. */
function enliven(root) {
  for (const form of $$("form[data-submit-on-change]", root)) form.onchange = () => form.requestSubmit();
  for (const button of $$("[data-copy]", root)) button.onclick = () => copy(button.dataset.copy);
  for (const link of $$("a[data-more]", root)) {
    link.addEventListener("click", (event) => { event.preventDefault(); showMore(link); });
    seen.observe(link);
  }
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); say("Copied"); } catch { say("The browser does not let this page copy"); }
}

// ---- keys -------------------------------------------------------------------------------------

const PAGES = { c: "/", p: "/prompt", b: "/problems", s: "/sessions/1", t: "/timeline", v: "/servers", l: "/plugins" };
let afterG = 0;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    if (event.target.id === "q" && event.key === "ArrowDown") { event.preventDefault(); $("a.row")?.focus(); }
    return;
  }
  if (Date.now() - afterG < 1200 && PAGES[event.key]) { location.href = PAGES[event.key]; return; }
  const rows = $$("a.row");
  const at = rows.indexOf(document.activeElement);
  switch (event.key) {
    case "/": event.preventDefault(); $("#q, [data-filter]")?.focus(); $("#q, [data-filter]")?.select(); break;
    case "?": $("#keys").showModal(); break;
    case "g": afterG = Date.now(); break;
    case "j": case "ArrowDown": if (rows.length && (event.key === "j" || at >= 0)) { event.preventDefault(); rows[Math.min(at + 1, rows.length - 1)].focus(); } break;
    case "k": case "ArrowUp": if (at > 0) { event.preventDefault(); rows[at - 1].focus(); } else if (at === 0) { event.preventDefault(); $("#q")?.focus(); } break;
  }
}

document.addEventListener("keydown", onKey);
$("#catalog-search")?.addEventListener("submit", (event) => { event.preventDefault(); filterCatalog(); });
$("#q")?.addEventListener("input", filterCatalog);
for (const part of $$("[data-live]")) part.dataset.html = part.innerHTML;
enliven(document);
$("nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
connect();

// ---- a form from a JSON Schema ------------------------------------------------------------------

const SAMPLES = {
  date: "2026-01-31", time: "12:30:00Z", "date-time": "2026-01-31T12:30:00Z", duration: "P1D", email: "ada@example.com",
  "idn-email": "ada@example.com", hostname: "example.com", uri: "https://example.com/", "uri-reference": "/path", url: "https://example.com/",
  uuid: "123e4567-e89b-42d3-a456-426614174000", ipv4: "192.0.2.1", ipv6: "2001:db8::1", ipv4network: "192.0.2.0/24", ipv6network: "2001:db8::/32",
  ipvanyaddress: "192.0.2.1", path: "file.txt", "file-path": "file.txt", "directory-path": ".", binary: "text", base64: "dGV4dA==", "json-string": "{}", regex: "a", decimal: "1.5",
};
const GUESSES = ["", "a", "A", "0", "1", "ab", "abc", "ABC", "123", "1.5", "a1", "A1", "a-b", "a_b", "a.b", "2026-01-31", "12:30", "#aabbcc", "NO", "x@example.com", "https://example.com/", "1.0.0", "aaaaaaaa", "AB-12", "AB-123", "AB-1234", "a/b"];
const DEEPEST = 12;

const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : value instanceof Exact ? typeOf(Number(value)) : Number.isInteger(value) ? "integer" : typeof value);

/** Resolve references and join allOf, so that a schema says itself what it is. */
function resolved(schema, root, depth = 0) {
  if (schema === true || schema == null) return {};
  if (schema === false) return { not: {} };
  if (depth > 40) return {};
  if (typeof schema.$ref === "string") {
    const { $ref, ...beside } = schema;
    let target = root;
    for (const part of $ref.replace(/^#\/?/, "").split("/").filter(Boolean)) {
      target = target?.[decodeURIComponent(part).replace(/~1/g, "/").replace(/~0/g, "~")];
    }
    return { ...resolved(target, root, depth + 1), ...beside };
  }
  if (Array.isArray(schema.allOf)) {
    const { allOf, ...beside } = schema;
    return [...allOf, beside].map((one) => resolved(one, root, depth + 1)).reduce((all, one) => ({
      ...all, ...one,
      properties: all.properties || one.properties ? { ...all.properties, ...one.properties } : undefined,
      required: [...(all.required ?? []), ...(one.required ?? [])],
    }), {});
  }
  return schema;
}

const variantsOf = (schema) => {
  const { anyOf, oneOf, type, ...beside } = schema;
  const variants = anyOf ?? oneOf;
  if (variants) return variants.map((one) => (one && one.properties && schema.properties ? { ...beside, ...one, properties: { ...schema.properties, ...one.properties } } : one));
  if (Array.isArray(type)) return type.map((one) => ({ ...beside, type: one }));
  return null;
};

function kindOf(schema) {
  if ("const" in schema) return "const";
  if (schema.enum) return "enum";
  if (variantsOf(schema)) return "union";
  if (schema.type === "object" || schema.properties) return "object";
  if (schema.type === "array" || schema.items || schema.prefixItems) return "array";
  return schema.type ?? "any";
}

/** Whether a value looks like one of a schema; enough to choose between variants. */
function fits(schema, value, root, depth = 0) {
  const now = resolved(schema, root);
  if (depth > DEEPEST) return true;
  const type = typeOf(value);
  switch (kindOf(now)) {
    case "const": return JSON.stringify(now.const) === JSON.stringify(value);
    case "enum": return now.enum.some((one) => JSON.stringify(one) === JSON.stringify(value));
    case "union": return variantsOf(now).some((one) => fits(one, value, root, depth + 1));
    case "object": return type === "object" && (now.required ?? []).every((name) => name in value)
      && Object.entries(value).every(([name, one]) => (now.properties?.[name] ? fits(now.properties[name], one, root, depth + 1) : now.additionalProperties !== false));
    case "array": return type === "array" && value.every((one, at) => fits(now.prefixItems?.[at] ?? now.items ?? {}, one, root, depth + 1));
    case "number": return type === "number" || type === "integer";
    case "any": return true;
    default: return type === kindOf(now);
  }
}

/** Make a text of a regular expression: its first alternatives, with `more` repeats than it needs. */
function textOf(pattern, more) {
  const letters = { d: "0", D: "a", w: "a", W: "-", s: " ", S: "a", b: "", B: "", n: "\n", t: "\t" };
  let at = 0;
  const choices = () => {
    const first = sequence();
    while (pattern[at] === "|") { at++; sequence(); }
    return first;
  };
  const sequence = () => {
    let text = "";
    while (at < pattern.length && pattern[at] !== "|" && pattern[at] !== ")") {
      const one = atom(), repeat = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(pattern.slice(at));
      if (!repeat) { text += one; continue; }
      at += repeat[0].length;
      const least = repeat[1] ? Number(repeat[1]) : repeat[0][0] === "+" ? 1 : 0;
      const most = repeat[0][0] === "?" ? 1 : repeat[1] === undefined ? Infinity : repeat[3] ? Number(repeat[3]) : repeat[2] ? Infinity : least;
      text += one.repeat(Math.min(least + more, most, 1000));
    }
    return text;
  };
  const atom = () => {
    const letter = pattern[at++];
    if (letter === "\\") return letters[pattern[at++]] ?? pattern[at - 1];
    if (letter === "^" || letter === "$") return "";
    if (letter === ".") return "a";
    if (letter === "(") {
      const kind = /^\?(?:<?[=!]|:|<[^>]*>)/.exec(pattern.slice(at))?.[0] ?? "";
      at += kind.length;
      const text = choices();
      at++;
      return /[=!]$/.test(kind) ? "" : text;
    }
    if (letter !== "[") return letter;
    const start = at - 1;
    for (at += pattern[at] === "^" ? 1 : 0; at < pattern.length && pattern[at] !== "]"; at++) if (pattern[at] === "\\") at++;
    const allowed = new RegExp(pattern.slice(start, ++at), "u");
    const ascii = Array.from({ length: 95 }, (_, code) => String.fromCharCode(32 + code)).join("");
    return [...`aA1${ascii}äé`].find((one) => allowed.test(one)) ?? "";
  };
  return choices();
}

/** Make a value that a schema allows; with `all`, also of what is optional, or with "items" only
 * with an item in each list. */
function sample(schema, root, all = false, depth = 0, at = 0) {
  const now = resolved(schema, root);
  if ("default" in now && depth && now.default !== null) return now.default;
  if (now.examples?.length) return now.examples[Math.min(at, now.examples.length - 1)];
  switch (kindOf(now)) {
    case "const": return now.const;
    case "enum": return now.enum[Math.min(at, now.enum.length - 1)];
    case "union": {
      const variants = variantsOf(now).map((one) => resolved(one, root)).filter((one) => kindOf(one) !== "null");
      // Deep inside, what does not go deeper.
      const flat = variants.find((one) => !["object", "array", "union"].includes(kindOf(one)));
      return variants.length ? sample((depth > 3 && flat) || variants[0], root, all, depth + 1, at) : null;
    }
    case "object": {
      const value = {}, names = Object.keys(now.properties ?? {});
      for (const name of all === true && depth < 4 ? names : (now.required ?? [])) {
        if (depth < DEEPEST) value[name] = sample(now.properties?.[name] ?? {}, root, all, depth + 1);
      }
      for (let more = Object.keys(value).length; more < (now.minProperties ?? 0); more++) value[`key${more}`] = sample(now.additionalProperties ?? {}, root, all, depth + 1, more);
      return value;
    }
    case "array": {
      if (now.prefixItems) return now.prefixItems.map((one) => sample(one, root, all, depth + 1));
      const length = Math.max(now.minItems ?? 0, all && depth < 4 && (now.maxItems ?? 1) > 0 ? 1 : 0);
      return Array.from({ length }, (_, place) => sample(now.items ?? {}, root, all, depth + 1, place));
    }
    case "integer": case "number": {
      const step = now.multipleOf ?? (kindOf(now) === "integer" ? 1 : 0);
      const isNumber = (one) => typeof one === "number" || one instanceof Exact;
      const open = isNumber(now.exclusiveMinimum);
      let value = open ? now.exclusiveMinimum + (step || 1) : now.minimum ?? Math.min(1, now.maximum ?? (isNumber(now.exclusiveMaximum) ? now.exclusiveMaximum - 1 : 1));
      const most = now.maximum ?? now.exclusiveMaximum;
      if (open && most !== undefined && value >= most) value = (now.exclusiveMinimum + most) / 2;
      if (step) value = Math.ceil((value - 1e-9) / step) * step;
      return value + at * (step || 1);
    }
    case "string": {
      if (now.pattern) {
        try {
          const pattern = new RegExp(now.pattern, "u");
          const isValid = (text) => text.length >= (now.minLength ?? 0) && text.length <= (now.maxLength ?? Infinity) && pattern.test(text);
          const own = SAMPLES[now.format];
          const guess = [...(own ? [own] : []), ...GUESSES].find(isValid);
          if (guess !== undefined) return guess;
          for (let more = 0; more < 100; more++) {
            const text = textOf(now.pattern, more);
            if (isValid(text)) return text;
          }
        } catch { /* a pattern of another language */ }
      }
      if (now.format && SAMPLES[now.format]) return SAMPLES[now.format];
      const text = (now.title ?? "text").toLowerCase().padEnd(now.minLength ?? 0, "x") + (at || "");
      return now.maxLength !== undefined ? text.slice(0, now.maxLength) : text;
    }
    case "boolean": return true;
    case "null": return null;
    default: return now.not ? null : "text";
  }
}

function labelOf(schema, root) {
  const now = resolved(schema, root);
  if (now.title) return now.title;
  if ("const" in now) return JSON.stringify(now.const);
  if (kindOf(now) === "array") return now.items ? `list of ${labelOf(now.items, root)}` : "list";
  return kindOf(now);
}

function typeText(schema, root) {
  const now = resolved(schema, root), facts = [labelOf(now, root)];
  for (const [key, text] of [["format", ""], ["minimum", "≥ "], ["exclusiveMinimum", "> "], ["maximum", "≤ "], ["exclusiveMaximum", "< "], ["minLength", "length ≥ "], ["maxLength", "length ≤ "], ["minItems", "items ≥ "], ["maxItems", "items ≤ "], ["pattern", "/"]]) {
    if (now[key] !== undefined) facts.push(`${text}${now[key]}`);
  }
  return facts.join(", ");
}

let serial = 0;

const edited = (element) => element.dispatchEvent(new Event("edited", { bubbles: true }));
const removeButton = (label, onclick, more = "") => make("button", { type: "button", class: `quiet mini icon ${more}`, "aria-label": label, onclick }, "×");
const addButton = (text, onclick, title = null) => make("button", { type: "button", class: "quiet mini", title, onclick }, text);

function focusIn(element) {
  const fields = "input, textarea, select";
  (element.matches(fields) ? element : element.querySelector(fields))?.focus();
}

/** Return { element, read, write } for a schema; `read` returns undefined for what is not given. */
function fieldFor(schema, root, label, depth = 0) {
  const now = resolved(schema, root);
  const id = `field-${++serial}`;
  const jsonField = () => {
    const area = make("textarea", { id, rows: 1, spellcheck: "false", placeholder: "JSON", "aria-label": label });
    const read = () => { if (!area.value.trim()) return undefined; try { return parse(area.value); } catch { return area.value; } };
    return { element: area, read, write: (value) => { area.value = value === undefined ? "" : JSON.stringify(value, null, 1); } };
  };
  if (depth > DEEPEST) return jsonField();
  switch (kindOf(now)) {
    case "const": {
      const text = make("output", { id, class: "mono" }, JSON.stringify(now.const));
      return { element: text, read: () => now.const, write: () => {} };
    }
    case "null": return { element: make("output", { id, class: "mono" }, "null"), read: () => null, write: () => {} };
    case "enum": {
      const select = make("select", { id, "aria-label": label }, ...now.enum.map((one, at) => make("option", { value: at }, typeof one === "string" ? one : JSON.stringify(one))));
      const write = (value) => { const at = now.enum.findIndex((one) => JSON.stringify(one) === JSON.stringify(value)); if (at >= 0) select.value = at; };
      return { element: select, read: () => now.enum[Number(select.value)], write };
    }
    case "boolean": {
      const box = make("input", { type: "checkbox", id, "aria-label": label });
      return { element: box, read: () => box.checked, write: (value) => { box.checked = value === true; } };
    }
    case "integer": case "number": {
      const input = make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": label });
      const read = () => { const text = input.value.trim(); if (!text) return undefined; if (/^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(text)) return parse(text); const value = Number(text); return Number.isFinite(value) ? value : text; };
      return { element: input, read, write: (value) => { input.value = value ?? ""; } };
    }
    case "string": {
      const isDate = now.format === "date";
      const input = isDate ? make("input", { id, type: "date", "aria-label": label }) : make("textarea", { id, rows: 1, spellcheck: "false", "aria-label": label });
      // No text is no date and no address: the argument is left out until the field is filled.
      const read = () => (now.format && !input.value ? undefined : input.value);
      return { element: input, read, write: (value) => { input.value = value ?? ""; } };
    }
    case "union": {
      const variants = variantsOf(now).map((one) => resolved(one, root));
      const select = make("select", { id, "aria-label": `${label}: kind` }, ...variants.map((one, at) => make("option", { value: at }, labelOf(one, root))));
      const inside = make("div", { class: "group" });
      let field;
      const choose = (at) => { select.value = at; field = fieldFor(variants[at], root, label, depth + 1); field.write(sample(variants[at], root)); inside.replaceChildren(field.element); };
      select.addEventListener("change", () => { choose(Number(select.value)); edited(inside); });
      choose(0);
      const write = (value) => { const at = variants.findIndex((one) => fits(one, value, root)); choose(Math.max(at, 0)); field.write(value); };
      return { element: make("div", { class: "field" }, select, inside), read: () => field.read(), write };
    }
    case "array": {
      if (now.prefixItems) {
        const fields = now.prefixItems.map((one, at) => fieldFor(one, root, `${label} ${at + 1}`, depth + 1));
        const element = make("div", { class: "group" }, ...fields.map((one) => one.element));
        return { element, read: () => fields.map((one) => one.read()), write: (value) => fields.forEach((one, at) => one.write(value?.[at])) };
      }
      const fields = [], list = make("div", { class: "fields" });
      const add = (value) => {
        const field = fieldFor(now.items ?? {}, root, `${label} ${fields.length + 1}`, depth + 1);
        field.write(value);
        const row = make("div", { class: "item" }, field.element, removeButton(`Remove ${label} ${fields.length + 1}`, () => { fields.splice(fields.indexOf(field), 1); row.remove(); edited(list); }));
        fields.push(field);
        list.append(row);
        return field;
      };
      const more = addButton(`Add to ${label}`, () => { focusIn(add(sample(now.items ?? {}, root)).element); edited(list); });
      const write = (value) => { fields.length = 0; list.replaceChildren(); for (const one of value ?? []) add(one); };
      return { element: make("div", { class: "group" }, list, make("div", {}, more)), read: () => fields.map((one) => one.read()), write };
    }
    case "object": return now.properties && Object.keys(now.properties).length ? objectField(now, root, depth) : now.additionalProperties && now.additionalProperties !== true ? mapField(now, root, label, depth) : jsonObject(jsonField());
    default: return jsonField();
  }
}

function jsonObject(field) {
  return { ...field, read: () => field.read() ?? {} };
}

/** The properties of an object: the required ones, and buttons that add the optional ones. */
function objectField(schema, root, depth) {
  const names = Object.keys(schema.properties), fields = new Map(), order = (name) => names.indexOf(name);
  const rows = make("div", { class: "fields" }), buttons = make("div", { class: "optional" });
  const isRequired = (name) => (schema.required ?? []).includes(name);
  const others = {};
  const add = (name, value) => {
    const part = resolved(schema.properties[name], root);
    const field = fieldFor(schema.properties[name], root, name, depth + 1);
    field.write(value);
    const top = make("div", { class: "top" }, make("label", { class: "name", for: field.element.id || null }, name), make("span", { class: "type" }, typeText(part, root) + (isRequired(name) ? ", required" : "")));
    const row = make("div", { class: "field", "data-name": name }, top, part.description ? make("p", { class: "help" }, String(part.description)) : null, field.element);
    if (!isRequired(name)) top.append(removeButton(`Leave out ${name}`, () => { fields.delete(name); row.remove(); offer(); edited(rows); }, "remove"));
    fields.set(name, field);
    const after = [...rows.children].find((one) => order(one.dataset.name) > order(name));
    rows.insertBefore(row, after ?? null);
    return field;
  };
  const offer = () => buttons.replaceChildren(...names.filter((name) => !fields.has(name)).map((name) => {
    const part = resolved(schema.properties[name], root);
    const text = part.default !== undefined ? `${name} = ${JSON.stringify(part.default)}` : name;
    return addButton(`+ ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`, () => {
      const field = add(name, "default" in part ? part.default : sample(part, root, false, 1));
      offer(); edited(rows);
      focusIn(field.element);
    }, part.description);
  }));
  const initial = (name) => { const part = resolved(schema.properties[name], root); return "default" in part ? part.default : ["string", "integer", "number", "any"].includes(kindOf(part)) ? undefined : sample(part, root); };
  const write = (value) => {
    fields.clear(); rows.replaceChildren();
    for (const key of Object.keys(others)) delete others[key];
    for (const name of names) if (isRequired(name) || (value && name in value)) add(name, value && name in value ? value[name] : initial(name));
    for (const [key, one] of Object.entries(value ?? {})) if (!names.includes(key)) others[key] = one;
    offer();
  };
  const read = () => {
    const value = {};
    for (const name of names) { const one = fields.get(name)?.read(); if (one !== undefined) value[name] = one; }
    return { ...value, ...others };
  };
  write(undefined);
  return { element: make("div", { class: depth ? "group" : "fields" }, rows, buttons), read, write };
}

/** An object whose keys are free. */
function mapField(schema, root, label, depth) {
  const pairs = [], rows = make("div", { class: "fields" });
  const add = (key, value) => {
    const input = make("input", { value: key, "aria-label": `${label}: key`, autocomplete: "off" });
    const field = fieldFor(schema.additionalProperties, root, key || label, depth + 1);
    field.write(value);
    const pair = { input, field };
    pairs.push(pair);
    const row = make("div", { class: "item" }, make("div", { class: "field" }, input, field.element), removeButton(`Remove ${key}`, () => { pairs.splice(pairs.indexOf(pair), 1); row.remove(); edited(rows); }));
    rows.append(row);
  };
  const more = addButton(`Add to ${label}`, () => { add(`key${pairs.length}`, sample(schema.additionalProperties, root)); edited(rows); });
  const write = (value) => { pairs.length = 0; rows.replaceChildren(); for (const [key, one] of Object.entries(value ?? {})) add(key, one); };
  const read = () => Object.fromEntries(pairs.map(({ input, field }) => [input.value, field.read()]).filter(([, one]) => one !== undefined));
  return { element: make("div", { class: "group" }, rows, make("div", {}, more)), read, write };
}

// ---- tool ---------------------------------------------------------------------------------------

const shellQuoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

function pythonText(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${pythonText(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** Show the blocks of a result; text is text, whatever it contains. */
function showBlocks(blocks, isError = false) {
  return blocks.map((block) => {
    if (block.type === "text") return make("pre", { class: isError ? "is-error" : null, tabindex: "0" }, block.text);
    if (block.type === "image") return make("img", { src: block.src, alt: `picture, ${block.mime_type}` });
    if (block.type === "audio") return make("audio", { src: block.src, controls: true });
    if (block.type === "resource") return make("details", { open: true }, make("summary", {}, block.uri), make("pre", { tabindex: "0" }, block.text));
    if (block.type === "link") return make("p", {}, /^https?:/.test(block.uri) ? make("a", { href: block.uri, rel: "noreferrer noopener", target: "_blank" }, block.text || block.uri) : make("code", {}, block.uri));
    return make("p", {}, make("a", { href: block.src, download: true }, `file, ${block.mime_type}, ${block.size.toLocaleString("en")} bytes`));
  });
}

function showResult(result) {
  const parts = [make("div", { class: "row-flex" }, make("span", { class: `chip ${result.is_error ? "error" : result.is_interrupted ? "interrupted" : "ok"}` }, result.is_interrupted ? "interrupted" : result.error_code ?? (result.is_error ? "error" : "ok")), result.seconds === undefined ? null : make("span", { class: "muted small" }, `${result.seconds} s`))];
  parts.push(make("div", { class: "blocks" }, ...showBlocks(result.blocks, result.is_error)));
  if (result.structured !== null && typeof result.structured === "object") parts.push(make("details", {}, make("summary", {}, "Structured"), make("pre", { tabindex: "0" }, JSON.stringify(result.structured, null, 2))));
  return parts;
}

/** Call, and pass each line of the answer on as it comes. */
async function streamLines(path, body, onLine, signal) {
  const response = await request(path, body, { signal });
  if (!response.ok) throw new Error(await problemOf(response));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) onLine(parse(line));
    if (done) return;
  }
}

/** Ask the user to approve, and do what was asked for if it is. */
function askApproval(then, otherwise) {
  const dialog = $("#approval");
  dialog.returnValue = "";
  dialog.onclose = () => { if (dialog.returnValue === "yes") then(); else otherwise(); };
  dialog.showModal();
}

function toolPage(form) {
  const schema = () => parse($("#schema-now [data-schema]").dataset.schema);
  const examples = parse(form.dataset.examples);
  let root, field;
  const json = $("#json"), problem = $("#json-problem");
  const values = () => { try { return parse(json.value || "{}"); } catch { return null; } };
  const showElsewhere = () => {
    const value = values() ?? {};
    const given = Object.keys(value).length ? ` --args ${shellQuoted(JSON.stringify(value))}` : "";
    $("#as-command").textContent = form.dataset.command + given;
    $("#as-python").textContent = `${form.dataset.python}${pythonText(value)})\nprint(result.text)`;
  };
  const fromForm = () => { json.value = JSON.stringify(field.read(), null, 2); problem.hidden = true; showElsewhere(); };
  const build = (value) => {
    root = schema();
    field = Object.keys(root.properties ?? {}).length || root.additionalProperties || root.$ref || root.anyOf || root.allOf ? fieldFor({ type: "object", ...root }, root, "arguments") : { element: document.createTextNode(""), read: () => value ?? {}, write: () => {} };
    if (value !== undefined) field.write(value);
    $("#arguments").replaceChildren(...(field.element.nodeType === 1 ? [field.element] : []));
    $("#fill").hidden = field.element.nodeType !== 1 && !examples.length;
    fromForm();
  };
  form.addEventListener("edited", fromForm);
  $("#arguments").addEventListener("input", fromForm);
  $("#arguments").addEventListener("change", fromForm);
  json.addEventListener("input", () => {
    const value = values();
    problem.hidden = value !== null;
    if (value === null) { problem.textContent = "This is not JSON."; return; }
    if (typeOf(value) === "object") field.write(value);
    showElsewhere();
  });
  let filled = -1;
  $("#fill").addEventListener("click", () => { filled = (filled + 1) % Math.max(examples.length, 1); field.write(examples[filled] ?? sample({ type: "object", ...root }, root, "items")); fromForm(); });
  // The schema changed on disk: the form follows it, and keeps what was typed.
  document.addEventListener("live", (event) => { if (event.target.id === "schema-now") build(values() ?? undefined); });

  let running = null;
  const run = async (approved = false) => {
    const value = values();
    if (value === null || running) return;
    const output = $("#result"), start = performance.now();
    const blocks = make("div", { class: "blocks" });
    output.hidden = false;
    output.replaceChildren(make("h3", {}, "Result"), blocks);
    const leaving = new AbortController();
    running = { leaving, id: null };
    $("#call").disabled = true;
    $("#cancel").hidden = false;
    const timer = setInterval(() => { $("#elapsed").textContent = `${((performance.now() - start) / 1000).toFixed(0)} s`; }, 500);
    let asks = false;
    try {
      await streamLines("/calls", { tool: form.dataset.tool, arguments: value, approved }, (line) => {
        if (line.call) running.id = line.call;
        if (line.needs_approval) asks = true;
        if (line.chunk) {
          const last = blocks.lastElementChild, one = line.chunk.blocks;
          if (one.length === 1 && one[0].type === "text" && last?.classList.contains("streaming")) last.append(one[0].text);
          else for (const part of showBlocks(one)) { if (part.tagName === "PRE") part.classList.add("streaming"); blocks.append(part); }
        }
        if (line.result) output.replaceChildren(make("h3", {}, "Result"), ...showResult(line.result));
      }, leaving.signal);
    } catch (failure) {
      output.replaceChildren(make("h3", {}, "Result"), make("p", { class: "reason error" }, failure.message));
    } finally {
      clearInterval(timer);
      running = null;
      $("#call").disabled = false;
      $("#cancel").hidden = true;
      $("#elapsed").textContent = "";
    }
    if (asks) {
      output.hidden = true;
      askApproval(() => run(true), () => { output.hidden = false; output.replaceChildren(make("p", {}, "Not called.")); });
    }
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } });
  $("#cancel").addEventListener("click", () => { if (running?.id) act(`/calls/${running.id}/cancel`); else running?.leaving.abort(); });
  build();
}

if ($("#call-form")) toolPage($("#call-form"));
for (const button of $$("[data-copy-of]")) button.addEventListener("click", () => copy(document.getElementById(button.dataset.copyOf).textContent));

// ---- session ------------------------------------------------------------------------------------

const diffBlock = (lines, label) => make("pre", { class: "diff", tabindex: "0", "aria-label": label }, ...lines.map((line) => make("span", { class: line.kind }, `${line.text}\n`)));

function sessionPage(root) {
  const path = `/sessions/${root.dataset.session}`;
  const showIn = (place, ...parts) => $(place).replaceChildren(...parts);
  root.addEventListener("change", async (event) => {
    const group = event.target.dataset.group;
    if (group === undefined) return;
    if (!await act(`${path}/groups`, { group, on: event.target.checked })) event.target.checked = !event.target.checked;
    refresh();
  });
  $("#load-skill").addEventListener("submit", async (event) => {
    event.preventDefault();
    const skill = await act(`${path}/skills`, { skill: $("#skill").value, arguments: $("#skill-arguments").value });
    if (!skill) return;
    showIn("#skill-text", make("details", { open: true }, make("summary", {}, `What the model reads of ${skill.name}`), make("pre", { tabindex: "0" }, skill.text)));
    $("#skill").value = "";
    refresh();
  });
  $("#take-step").addEventListener("click", async () => { if (await act(`${path}/steps`)) refresh(); });
  $("#new-turn").addEventListener("click", async () => { if (await act(`${path}/turn`)) { say("A new turn began"); refresh(); } });
  const showVerdicts = (verdicts) => verdicts.map((one) => make("div", { class: "verdict" },
    make("p", {}, make("span", { class: `chip ${one.kind === "corrected" ? "changed" : one.kind === "pruned" ? "stale" : "failed"}` }, one.kind), ` call ${one.index + 1}, ${one.name}${one.rules.length ? ` by ${one.rules.join(", ")}` : ""}`),
    one.message ? make("p", {}, one.message) : null, one.problem ? make("p", { class: "reason error" }, one.problem) : null,
    one.kind === "corrected" ? make("pre", {}, `${JSON.stringify(one.sent)}\n${JSON.stringify(one.now)}`) : null));
  const plan = async (name, approved = false) => {
    let calls;
    try { calls = parse($("#plan").value); } catch (problem) { showIn("#plan-result"); say(`The plan is not JSON: ${problem.message}`); return; }
    showIn("#plan-result", make("p", { class: "muted" }, "…"));
    const answer = await act(`${path}/${name}`, { calls, approved });
    showIn("#plan-result");
    if (!answer) return;
    if (answer.needs_approval) {
      $("#approval-calls").textContent = answer.needs_approval.join(", ");
      askApproval(() => plan(name, true), () => showIn("#plan-result", make("p", {}, "Not run.")));
    }
    const shown = showVerdicts(answer.verdicts);
    if (name === "check" && !shown.length) shown.push(make("p", {}, make("span", { class: "chip ok" }, "ok"), " All calls would run as sent."));
    (answer.results ?? []).forEach((result, at) => shown.push(make("h3", {}, `Call ${at + 1}`), ...showResult(result)));
    showIn("#plan-result", ...shown);
    refresh();
  };
  $("#run-plan").addEventListener("click", () => plan("run"));
  $("#check-plan").addEventListener("click", () => plan("check"));
  let shownState = $("#state").value;
  const showState = () => { $("#state").value = $("#state-now pre").textContent; shownState = $("#state").value; };
  root.addEventListener("live", (event) => { if (event.target.id === "state-now" && $("#state").value === shownState) showState(); });
  $("#save-state").addEventListener("click", async () => { await refresh(); showState(); });
  $("#restore-state").addEventListener("click", async () => {
    let state;
    try { state = parse($("#state").value); } catch (problem) { say(`The state is not JSON: ${problem.message}`); return; }
    const answer = await act(`${path}/state`, { state });
    if (answer) { say(answer.diagnostics.map((one) => one.message).join("; ") || "Restored"); refresh(); }
  });
  $("#replay").addEventListener("submit", async (event) => {
    event.preventDefault();
    showIn("#replay-result");
    const answer = await act(`${path}/replay`, { recording: await $("#recording").files[0].text(), calls: $("#replay-calls").checked });
    if (!answer) return;
    showIn("#replay-result", make("p", {}, make("span", { class: `chip ${answer.differences.length ? "changed" : "ok"}` }, answer.differences.length ? `${answer.differences.length} difference${answer.differences.length === 1 ? "" : "s"}` : "the same"), ` ${answer.entries} entries replayed`),
      ...answer.differences.map((one) => make("div", { class: "verdict" }, make("p", {}, make("span", { class: "chip plain" }, one.kind), ` entry ${one.entry}: ${one.message}`), one.diff.length ? diffBlock(one.diff, one.message) : null)));
  });
}

document.addEventListener("click", async (event) => {
  if (!event.target.closest("[data-new-session]")) return;
  const answer = await act("/sessions");
  if (answer) location.href = `/sessions/${answer.number}`;
});
if ($("#session")) sessionPage($("#session"));

// ---- servers ------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const login = event.target.closest("[data-login]"), cancel = event.target.closest("[data-cancel-login]");
  if (login) {
    login.disabled = true;
    await act("/logins", { server: login.dataset.server });
    login.disabled = false;
    refresh();
  }
  if (cancel && await act(`/logins/${encodeURIComponent(cancel.dataset.server)}/cancel`)) refresh();
  const button = event.target.closest("[data-approve]");
  if (!button) return;
  const { server, name, digest } = button.dataset;
  if (await act("/approvals", { server, tool: name, digest })) { say(`${name} is approved`); refresh(); }
});

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-redirect]");
  if (!form) return;
  event.preventDefault();
  await act(`/logins/${encodeURIComponent(form.dataset.server)}/redirect`, { address: new FormData(form).get("address") });
});

// ---- skill --------------------------------------------------------------------------------------

function skillPage(area) {
  let onDisk = area.value, digest = area.dataset.digest, checking = 0;
  const isEdited = () => area.value !== onDisk;
  const showState = () => {
    $("#save").disabled = !isEdited();
    const changed = parse($("#on-disk p").dataset.text) !== onDisk;
    $("#revert").hidden = !changed;
    $("#edit-state").textContent = changed ? "the file changed on disk" : isEdited() ? "not saved" : "";
  };
  const showLint = (diagnostics) => $("#lint").replaceChildren(...diagnostics.map((one) => make("div", { class: `diagnostic ${one.severity}` },
    make("p", {}, make("span", { class: `chip ${one.severity}` }, one.severity), ` ${one.message} `, one.line ? make("button", { type: "button", class: "quiet mini", onclick: () => goTo(one.line) }, `line ${one.line}`) : null),
    one.fix ? make("p", { class: "fix" }, make("span", { class: "muted" }, "→ "), one.fix) : null)));
  const goTo = (line) => {
    const lines = area.value.split("\n"), start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.focus();
    area.setSelectionRange(start, start + lines[line - 1].length);
  };
  const check = async () => {
    const mine = ++checking;
    await new Promise((resolve) => { setTimeout(resolve, 150); });
    if (mine !== checking || document.body.dataset.readOnly !== undefined) return;
    const answer = await act("/lint", { skill: area.dataset.skill, text: area.value });
    if (!answer || mine !== checking) return;
    showLint(answer.diagnostics);
    // Rendered and escaped by the server.
    const html = new DOMParser().parseFromString(answer.html, "text/html").body;
    $("#rendered").replaceChildren(...document.importNode(html, true).childNodes);
    delete $("#rendered").dataset.html;
  };
  const takeFile = () => {
    onDisk = parse($("#on-disk p").dataset.text);
    area.value = onDisk;
    onDisk = area.value;
    digest = $("#on-disk p").dataset.now;
    showLint(parse($("#on-disk p").dataset.lint));
    showState();
  };
  const save = async () => {
    const text = area.value;
    const answer = await act("/save", { skill: area.dataset.skill, text, digest });
    if (!answer) return;
    ({ digest } = answer);
    onDisk = text;
    $("#on-disk p").dataset.text = JSON.stringify(text);
    say("Saved");
    showState();
  };
  area.addEventListener("input", () => { showState(); check(); });
  area.addEventListener("keydown", (event) => { if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); if (isEdited()) save(); } });
  $("#save").addEventListener("click", save);
  $("#revert").addEventListener("click", takeFile);
  document.addEventListener("live", (event) => { if (event.target.id === "on-disk") { if (isEdited()) showState(); else takeFile(); }
    if (event.target.id === "rendered" && isEdited()) check();
  });
  addEventListener("beforeunload", (event) => { if (isEdited()) event.preventDefault(); });
  takeFile();
}

if ($("#text[data-skill]")) skillPage($("#text[data-skill]"));

const find = $("form[data-find]");
if (find) {
  let mine = 0;
  find.addEventListener("input", async () => {
    const now = ++mine;
    await new Promise((resolve) => { setTimeout(resolve, 120); });
    if (now !== mine) return;
    history.replaceState(null, "", `?q=${encodeURIComponent($("#find").value)}`);
    refresh();
  });
  find.addEventListener("submit", (event) => event.preventDefault());
}
