"use strict";
(() => {
  const sides = [...document.querySelectorAll(".side")];

  // Which language shows is a matter of styles; here the document only learns which one it is.
  const shown = () => sides.find((side) => getComputedStyle(side).display !== "none");
  const follow = () => {
    const side = shown();
    if (side) {
      document.documentElement.lang = side.lang;
      document.title = side.dataset.title;
    }
  };

  // Switching keeps the place: the section that is being read has a twin in the other language.
  for (const link of document.querySelectorAll("a.tongue")) {
    link.addEventListener("click", (event) => {
      const here = [...link.closest(".side").querySelectorAll("section[id]")].filter(
        (section) => section.getBoundingClientRect().top < 80,
      );
      const last = here[here.length - 1];
      const twin = last && last.id.replace(/^[a-z]+-/, link.lang + "-");
      if (twin && window.scrollY > 200 && document.getElementById(twin)) {
        event.preventDefault();
        location.hash = twin;
      }
    });
  }
  // A browser of another language gets its page first, unless the address or the maker asked.
  const asked = document.documentElement.dataset.asked;
  const own = sides.find((side) => (navigator.language || "").split("-")[0] === side.lang);
  if (own && !location.hash && asked === sides[0].lang && own.lang !== asked) location.hash = own.id;
  addEventListener("hashchange", follow);
  addEventListener("load", follow); // the place that an address names is known only now
  follow();

  // Tables that sort: the buttons stand in the heads and work from the keyboard.
  const order = (table, head, button) => {
    const at = [...head.parentElement.children].indexOf(head);
    const up = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up === 1 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const key = (row) => {
      const cell = row.cells[at];
      const raw = cell.dataset.sort ?? cell.textContent.trim();
      return raw === "" || Number.isNaN(Number(raw)) ? raw : Number(raw);
    };
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === ""); // what has no value comes last
      const less = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
      return up * less;
    });
    body.append(...rows.map(([, row]) => row));
  };
  for (const button of document.querySelectorAll("button.sort")) {
    button.disabled = false;
    const head = button.closest("th");
    button.addEventListener("click", () => order(head.closest("table"), head, button));
  }

  // What an address names may lie in something folded: unfold it, where the browser does not.
  const unfold = () => {
    const place = location.hash && document.getElementById(location.hash.slice(1));
    const folded = [];
    for (let at = place; at; at = at.parentElement) if (at.matches("details:not([open])")) folded.push(at);
    for (const one of folded) one.open = true;
    if (folded.length) place.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // Grids of values: pointing or walking with the arrow keys tells what a cell says. A cell that is
  // a link says the line that it leads to.
  for (const grid of document.querySelectorAll("table.heat")) {
    const told = document.getElementById(grid.dataset.told);
    const cells = [...grid.querySelectorAll("td")];
    const stop = (cell) => cell.querySelector("a") || cell;
    const line = (cell) => {
      const link = cell.querySelector("a");
      const place = link && document.getElementById(link.hash.slice(1));
      return place && (place.closest("details.pair")?.querySelector("summary") || place.matches("li") && place);
    };
    const say = (cell) => {
      const whole = line(cell);
      if (whole) {
        told.textContent = whole.textContent;
        return;
      }
      const row = cell.parentElement.querySelector("th").textContent.trim();
      const column = grid.tHead.rows[0].cells[cell.cellIndex];
      const name = (column.querySelector("abbr")?.title || column.textContent).trim();
      told.textContent = [row, name, cell.textContent.trim(), cell.dataset.more].filter(Boolean).join(" · ");
    };
    const visit = (cell) => {
      for (const other of cells) stop(other).tabIndex = -1;
      stop(cell).tabIndex = 0;
      stop(cell).focus();
    };
    for (const cell of cells) {
      const whole = line(cell);
      if (whole) stop(cell).setAttribute("aria-label", whole.textContent);
      if (stop(cell) !== cell) stop(cell).tabIndex = -1; // one stop for the grid, arrow keys inside
    }
    if (cells.length) stop(cells[0]).tabIndex = 0;
    grid.addEventListener("mouseover", (event) => {
      const cell = event.target.closest("td");
      if (cell) say(cell);
    });
    grid.addEventListener("focusin", (event) => {
      const cell = event.target.closest("td");
      if (cell) say(cell);
    });
    grid.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!cell || !step) return;
      const row = grid.tBodies[0].rows[cell.parentElement.sectionRowIndex + step[0]];
      const next = row && row.cells[cell.cellIndex + step[1]];
      event.preventDefault();
      if (next && next.tagName === "TD") visit(next);
    });
  }

  // Marks in pictures: the same for points that carry a value.
  for (const picture of document.querySelectorAll("svg[data-told]")) {
    const told = document.getElementById(picture.dataset.told);
    const say = (event) => {
      const mark = event.target.closest("[data-value]");
      if (mark) told.textContent = mark.dataset.value;
    };
    picture.addEventListener("mouseover", say);
    picture.addEventListener("focusin", say);
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    const text = document.getElementById(button.dataset.copies);
    const done = document.getElementById(button.dataset.says);
    const mark = () => {
      const range = document.createRange();
      range.selectNodeContents(text);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    };
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        done.textContent = button.dataset.copied;
      } catch {
        mark(); // no clipboard for pages like this one: the text is selected instead
        done.textContent = button.dataset.selected;
      }
    });
  }

  // On paper everything is open.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open], .pair, .unprinted)")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
})();
