"use strict";
// Follows the cluster: the server sends the contents of the page, and only what differs is changed
// in place, so that the focus, the place and what was opened stay.
(() => {
  const view = document.getElementById("view"), live = document.getElementById("live");
  const old = 15000; // three beats
  let heard = Date.now(), source = null;

  function say(state, text) {
    if (live.dataset.state === state && live.textContent === text) return;
    live.dataset.state = state;
    live.textContent = text;
  }

  // alike tells whether an element can become another one.
  function alike(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
  }

  // become makes an element's attributes and children those of another one.
  function become(from, to) {
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    for (const { name } of [...from.attributes]) {
      // The reader opens and closes details.
      if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS")) {
        from.removeAttribute(name);
      }
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value && !(name === "open" && from.nodeName === "DETAILS")) {
        from.setAttribute(name, value);
      }
    }
    children(from, to);
  }

  function children(from, to) {
    const wanted = [...to.childNodes];
    let at = from.firstChild;
    for (const next of wanted) {
      let found = at;
      while (found && !alike(found, next)) found = found.nextSibling;
      if (!found) {
        from.insertBefore(document.importNode(next, true), at);
        continue;
      }
      while (at !== found) { // what is gone
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      become(found, next);
      at = found.nextSibling;
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  function show(html) {
    // A document of its own: nothing in it runs or loads.
    const next = new DOMParser().parseFromString(html, "text/html").body;
    children(view, next);
  }

  function hear() {
    heard = Date.now();
    say("live", "live");
  }

  function connect() {
    source = new EventSource("events");
    source.addEventListener("hello", (e) => {
      if (JSON.parse(e.data) !== document.documentElement.dataset.version) location.reload();
      hear();
    });
    source.addEventListener("view", (e) => { hear(); show(JSON.parse(e.data)); });
    source.addEventListener("beat", hear);
    source.onerror = () => {
      say("lost", "connection lost: this is an old state; trying again");
      if (source.readyState === EventSource.CLOSED) { // the browser gives up: we do not
        source.close();
        setTimeout(connect, 2000);
      }
    };
  }

  setInterval(() => {
    if (Date.now() - heard > old) say("lost", "nothing heard: this is an old state; trying again");
  }, 1000);
  say("wait", "connecting");
  connect();
})();
