// A browser starts no worker from a file. From disk, `search.js` brings its text (tools/build_docs.py).
"use strict";

if (location.protocol === "file:") {
  const Started = window.Worker;
  window.Worker = function () {
    let worker;
    this.postMessage = (message) => {
      worker ??= new Started(URL.createObjectURL(new Blob([__worker])));
      worker.onmessage = this.onmessage;
      worker.postMessage(message);
    };
  };
}
