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

function request(path, body, options = {}) {
  return fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf },
    body: JSON.stringify(body ?? {}),
    ...options,
  });
}

/** Post JSON; return the answer, or say what went wrong and return null. */
async function act(path, body) {
  try {
    const response = await request(path, body);
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const answer = isJson ? await response.json() : { error: await response.text() };
    if (response.ok) return answer;
    say([answer.error, answer.fix].filter(Boolean).join(" — "));
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
      replaceLive(fresh);
    } while (again);
  })().catch(() => {}).finally(() => { refreshing = null; });
  return refreshing;
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

function connect() {
  const source = new EventSource("/events");
  source.onopen = () => { setLive(true, "live"); if (revision !== null) { revision = null; refresh(); } };
  source.onmessage = (event) => {
    const state = JSON.parse(event.data);
    if (revision !== null && revision !== state.revision) refresh();
    revision = state.revision;
  };
  source.onerror = () => {
    setLive(false, "no server");
    revision ??= -1;
    // After an answer that is no stream the browser gives up, so start again.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1000);
  };
  addEventListener("pagehide", () => source.close(), { once: true });
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
  for (const link of $$("a[data-more]", root)) {
    link.addEventListener("click", (event) => { event.preventDefault(); showMore(link); });
    seen.observe(link);
  }
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
connect();
