// Names for screen readers, and reach by keyboard, where the theme leaves them out.
"use strict";

function complete(root) {
  const set = (selector, name, value) => {
    for (const element of root.querySelectorAll(`${selector}:not([${name}])`)) {
      element.setAttribute(name, typeof value === "function" ? value(element) : value);
    }
  };
  set("[role=combobox]", "aria-expanded", "true");
  set("[role=combobox]", "aria-label", "Search");
  set("[role=combobox]", "aria-controls", () => {
    const list = root.querySelector("ol") ?? root.querySelector("div");
    list.id ||= "search-results";
    return list.id;
  });
  set("button:not([title])", "aria-label", (button) => button.textContent.trim() || "Search options");
  set(".md-typeset__scrollwrap", "tabindex", "0");
  set("input[aria-hidden=true]", "tabindex", "-1");
  if (root instanceof ShadowRoot) {
    for (const element of root.querySelectorAll("div")) {
      if (/auto|scroll/.test(getComputedStyle(element).overflowY)) element.tabIndex = 0;
    }
  }
}

function watch(root) {
  complete(root);
  new MutationObserver(() => {
    complete(root);
    adopt();
  }).observe(root, { childList: true, subtree: true });
}

const adopted = new WeakSet();

function adopt() {
  for (const { shadowRoot } of document.body.children) {
    if (shadowRoot && !adopted.has(shadowRoot)) {
      adopted.add(shadowRoot);
      watch(shadowRoot);
    }
  }
}

watch(document);
adopt();
