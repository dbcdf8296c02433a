// Replaces a page's clocks and timers, before any script of the page runs.
(() => {
  if (!location.protocol.startsWith("http")) return;
  const storage = localStorage;
  let monotonic = 1234.567; // what performance.now says, wherever a page begins
  let wall = Number(storage["test wall"] ?? 1.8e12); // what the visitor's clock says
  let timers = [];
  let made = 0;

  performance.now = () => monotonic;
  Date.now = () => wall;
  window.setTimeout = (call, ms = 0) => {
    timers.push({ id: ++made, at: monotonic + Math.max(0, ms), call });
    return made;
  };
  window.clearTimeout = (id) => { timers = timers.filter((timer) => timer.id !== id); };

  AbortSignal.timeout = (ms) => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), ms);
    return abort.signal;
  };

  const go = (to) => {
    wall += Math.max(0, to - monotonic);
    monotonic = Math.max(to, monotonic);
    storage["test wall"] = wall;
  };

  window.time = {
    // Time passes, and timers fire when they are due.
    pass(ms) {
      const end = monotonic + ms;
      for (;;) {
        const next = timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.id - b.id)[0];
        if (!next) break;
        timers = timers.filter((timer) => timer !== next);
        go(next.at);
        next.call();
      }
      go(end);
    },
    // The visitor sets the clock; or the machine sleeps, and with it the other clock.
    set(ms) {
      wall += ms;
      storage["test wall"] = wall;
    },
  };
})();
