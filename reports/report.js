"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const NEAR = 3;
  const view = { raw: false, side: false, wrap: matchMedia("(max-width: 40rem)").matches };

  // theme

  const theme = $("#theme");
  const themes = ["auto", "light", "dark"];
  const setTheme = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3]);
  });

  // diffs: rows are [kind, base line, head line, canonical text, marks, raw text] or ["…", what is left out]

  const CLASS = { "+": "add", "-": "del", "~": "ren", " ": "ctx" };

  const content = (row) => {
    if (view.raw && row[5]) return [row[5]];
    const text = row[3];
    const marks = row[4] || [];
    if (view.raw || !marks.length) return [text];
    const parts = [];
    let at = 0;
    for (let i = 0; i < marks.length; i += 2) {
      parts.push(text.slice(at, marks[i]), make("mark", {}, text.slice(marks[i], marks[i + 1])));
      at = marks[i + 1];
    }
    parts.push(text.slice(at));
    return parts;
  };

  const number = (n) => make("td", { className: "l" }, n ? String(n) : "");

  const unifiedRow = (row) =>
    make("tr", { className: CLASS[row[0]] }, number(row[1]), number(row[2]),
      make("td", { className: "l" }, row[0]), make("td", {}, ...content(row)));

  const sideRow = (left, right) => {
    const cells = (row, n) => (row
      ? [number(row[n]), make("td", { className: `c ${CLASS[row[0]]}` }, ...content(row))]
      : [number(0), make("td", { className: "c" })]);
    return make("tr", { className: "side" }, ...cells(left, 1), ...cells(right, 2));
  };

  const drawRows = (rows) => {
    if (!view.side) return rows.map(unifiedRow);
    const drawn = [];
    let removed = [];
    let added = [];
    const flush = () => {
      for (let i = 0; i < Math.max(removed.length, added.length); i += 1) drawn.push(sideRow(removed[i], added[i]));
      removed = [];
      added = [];
    };
    for (const row of rows) {
      if (row[0] === "-") removed.push(row);
      else if (row[0] === "+") added.push(row);
      else { flush(); drawn.push(sideRow(row, row)); }
    }
    flush();
    return drawn;
  };

  const gap = (text, rows) => {
    const tr = make("tr", { className: "gap" });
    const cell = make("td", { colSpan: 4 });
    if (rows) {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => tr.replaceWith(...drawRows(rows)));
      cell.append(button);
    } else cell.append(text);
    tr.append(cell);
    return tr;
  };

  // runs of context farther than NEAR lines from a change are folded
  const drawStage = (stage) => {
    const rows = stage.rows || [];
    const hard = rows.some((row) => row[0] === "-" || row[0] === "+");
    const isChange = (row) => row[0] === "-" || row[0] === "+" || (!hard && row[0] === "~");
    const distance = rows.map(() => Infinity);
    let last = -Infinity;
    rows.forEach((row, i) => { if (isChange(row)) last = i; distance[i] = i - last; });
    last = Infinity;
    for (let i = rows.length - 1; i >= 0; i -= 1) {
      if (isChange(rows[i])) last = i;
      distance[i] = Math.min(distance[i], last - i);
    }
    const body = make("tbody");
    let shown = [];
    let folded = [];
    const flush = () => {
      body.append(...drawRows(shown));
      shown = [];
      if (folded.length) body.append(gap(`${folded.length} more line${folded.length > 1 ? "s" : ""} ↕`, folded));
      folded = [];
    };
    rows.forEach((row, i) => {
      if (row[0] === "…") { flush(); body.append(gap(row[1])); return; }
      if (distance[i] > NEAR) { if (shown.length) { body.append(...drawRows(shown)); shown = []; } folded.push(row); return; }
      if (folded.length) flush();
      shown.push(row);
    });
    flush();
    if (stage.left_out) body.append(gap(`… ${stage.left_out} more changed lines: ${stage.command}`));
    if (!view.side) return make("table", {}, body);
    const columns = ["l", "c", "l", "c"].map((name) => make("col", { className: name }));
    return make("table", { className: "two" }, make("colgroup", {}, ...columns), body);
  };

  const drawDiff = (box) => {
    const data = box.data || (box.data = JSON.parse($(`#${box.dataset.diffs}`).textContent));
    const changed = data.stages.filter((stage) => stage.status === "changed");
    const current = changed.find((stage) => stage.stage === box.dataset.stage) || changed[0];
    const tabs = make("div", { className: "tabs" });
    data.stages.forEach((stage, i) => {
      if (i) tabs.append(make("i", { className: "arrow", ariaHidden: "true" }, "→"));
      if (stage.status !== "changed") { tabs.append(make("i", { title: stage.status }, `${stage.stage} ${stage.status}`)); return; }
      const counts = stage.counts ? ` −${stage.counts[0]} +${stage.counts[1]}${stage.counts[2] ? ` ~${stage.counts[2]}` : ""}` : "";
      const button = make("button", { type: "button" }, stage.stage, make("small", {}, counts));
      button.setAttribute("aria-pressed", String(stage === current));
      button.addEventListener("click", () => { box.dataset.stage = stage.stage; redraw(box, i); });
      tabs.append(button);
    });
    tabs.append(make("span", { className: "grow" }));
    for (const [key, label] of [["raw", "raw"], ["side", "side by side"], ["wrap", "wrap"]]) {
      const button = make("button", { type: "button" }, label);
      button.setAttribute("aria-pressed", String(view[key]));
      button.addEventListener("click", () => toggle(key, box, label));
      tabs.append(button);
    }
    box.replaceChildren(make("p", { className: "dim" }, "Diff of ", make("code", {}, data.case)), tabs);
    if (!current) { box.append(make("p", { className: "dim" }, "No stage's text changed.")); return; }
    if (current.note) box.append(make("p", { className: "dim" }, current.note + (current.command ? `: ${current.command}` : "")));
    if (current.rows && current.rows.length) {
      const lines = make("div", { className: `lines${view.wrap ? " wrap" : ""}`, tabIndex: 0 }, drawStage(current));
      lines.setAttribute("role", "region");
      lines.setAttribute("aria-label", `${current.stage} of ${data.case}`);
      box.append(lines);
    }
    if (current.legend && current.legend.length && !view.raw) {
      const list = make("dl", { className: "legend-list" });
      for (const [short, full] of current.legend) list.append(make("dt", {}, make("code", {}, short)), make("dd", {}, make("code", {}, full)));
      box.append(make("details", {}, make("summary", {}, `${current.legend.length} layouts by their short names`), list));
    }
  };

  const redraw = (box, index) => {
    drawDiff(box);
    const buttons = $$(".tabs button", box);
    const name = box.dataset.stage;
    const again = buttons.find((button) => index !== undefined && button.firstChild.textContent === name);
    if (again) again.focus();
  };

  const toggle = (key, box, label) => {
    view[key] = !view[key];
    $$("details.group[open] .diff").forEach((other) => drawDiff(other));
    const again = box && $$(".tabs button", box).find((button) => button.textContent === label);
    if (again) again.focus();
  };

  // On paper nothing can be opened: the first groups are, with their diffs, and closed again afterwards.
  window.addEventListener("beforeprint", () => {
    $$("details.group:not([open])").slice(0, 8).forEach((group) => { group.open = true; group.dataset.printed = ""; });
    $$("details.group[open] .diff").forEach((box) => drawDiff(box));
  });
  window.addEventListener("afterprint", () => {
    $$("details.group[data-printed]").forEach((group) => { group.open = false; delete group.dataset.printed; });
  });

  $$("details.group").forEach((group) => {
    group.addEventListener("toggle", () => {
      const box = $(".diff", group);
      if (group.open) drawDiff(box);
    });
  });

  // filters

  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

  const filterable = (form, rows, matches, noun) => {
    if (!form) return () => {};
    form.hidden = false;
    const texts = new Map();
    const textOf = (row) => { if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase()); return texts.get(row); };
    const apply = () => {
      const wanted = words(form.elements.text.value);
      let count = 0;
      for (const row of rows) {
        const shown = matches(row, form.elements) && wanted.every((word) => textOf(row).includes(word));
        if (row.hidden === shown) row.hidden = !shown;
        count += shown ? 1 : 0;
      }
      $("output", form).textContent = `${count} of ${rows.length} ${noun}`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("reset", () => setTimeout(apply));
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
    return apply;
  };

  const caseForm = $("#case-filters");
  const groupForm = $("#group-filters");
  const caseRows = $$("#case-table tbody tr");
  const groups = $$("details.group");
  const is = (wanted, value) => !wanted || wanted === value;
  const isShown = (target, verdicts, fields) =>
    is(fields.target.value, target) && (!fields.verdict.value || verdicts.split(" ").includes(fields.verdict.value));

  // cases of a large run: rows are [id, verdict, sides, origin, stages, moved, entry, style], and few are in the page

  const MOST_ROWS = 500;
  const STATUS = { "≠": "changed", "=": "equivalent", "·": "identical" };
  const sorters = new Map();

  const drawCase = ([id, verdict, unstable, origin, stages, moved, entry, style]) => {
    const cell = (...children) => make("td", {}, ...children);
    const badges = [make("span", { className: `badge v-${verdict}` }, verdict)];
    if (unstable) badges.push(" ", make("span", { className: "badge" }, unstable));
    const signs = stages.split(" ").filter(Boolean).flatMap((stage) => {
      const sign = stage.slice(-1);
      const span = make("span", { title: `${stage.slice(0, -1)} ${STATUS[sign]}` }, stage);
      if (sign === "≠") span.className = "ne";
      return [span, " "];
    });
    const link = entry ? [make("a", { href: `#group-${entry}` }, String(entry))] : [];
    return make("tr", {}, cell(make("code", {}, ...id.split(/(?<=[/:])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part])))), cell(...badges),
      origin ? cell(make("i", { className: `swatch ${style}` }), origin) : cell(),
      make("td", { className: "signs" }, ...signs), cell(moved), make("td", { className: "n" }, ...link));
  };

  const longTable = (table, form, cases) => {
    const body = $("tbody", table);
    const texts = new Map();
    const textOf = (row) => {
      if (!texts.has(row)) texts.set(row, row.slice(0, 7).join(" ").toLowerCase());
      return texts.get(row);
    };
    const apply = () => {
      const wanted = words(form.elements.text.value);
      const found = cases.filter((row) =>
        isShown(row[0].slice(row[0].lastIndexOf("@") + 1), row[2] ? `${row[1]} nondeterministic` : row[1], form.elements) &&
        wanted.every((word) => textOf(row).includes(word)));
      body.replaceChildren(...found.slice(0, MOST_ROWS).map(drawCase));
      const first = found.length > MOST_ROWS ? `, the first ${MOST_ROWS} shown` : "";
      $("output", form).textContent = `${found.length} of ${cases.length} cases${first}`;
    };
    sorters.set(table, (column, compare) => {
      const key = (row) => [row[0], row[1], row[3], "", row[5], row[6] || Infinity][column];
      cases = cases.map((row) => [key(row), row]).sort(compare).map((pair) => pair[1]);
      apply();
    });
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("reset", () => setTimeout(apply));
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
    setTimeout(() => cases.forEach(textOf));
    return apply;
  };

  const allCases = $("#all-cases");
  const applyCases = allCases
    ? longTable($("#case-table"), caseForm, JSON.parse(allCases.textContent))
    : filterable(caseForm, caseRows, (row, fields) => isShown(row.dataset.t, row.dataset.v, fields), "cases");
  filterable(groupForm, groups, (group, fields) =>
    is(fields.risk ? fields.risk.value : "", group.dataset.risk) &&
    (!fields.target.value || group.dataset.targets.split(/[ ,]+/).includes(fields.target.value)), groups.length && groupForm ? "shown" : "");

  $$("a[data-verdict], a[data-workload]").forEach((link) => {
    link.addEventListener("click", () => {
      caseForm.elements.verdict.value = link.dataset.verdict || "";
      caseForm.elements.target.value = link.dataset.target || "";
      caseForm.elements.text.value = link.dataset.workload || "";
      applyCases();
    });
  });

  // what lies behind one more click is opened with what is in it
  const reveal = (group) => { const more = group.closest("#more-groups"); if (more) more.open = true; };
  if (groupForm) groupForm.addEventListener("input", () => groups.filter((group) => !group.hidden).forEach(reveal));

  const openTarget = () => {
    const group = location.hash.startsWith("#group-") && document.getElementById(location.hash.slice(1));
    if (group) { reveal(group); group.hidden = false; group.open = true; group.scrollIntoView(); $("summary", group).focus({ preventScroll: true }); }
  };
  // a row of a table shows its own diff in its group, not that of the group's example
  $$("a[data-diffs]").forEach((link) => {
    link.addEventListener("click", () => {
      const group = document.getElementById(link.hash.slice(1));
      const box = group && $(".diff", group);
      if (!box) return;
      box.dataset.diffs = link.dataset.diffs;
      box.data = null;
      if (group.open) drawDiff(box);
      setTimeout(openTarget);
    });
  });
  window.addEventListener("hashchange", openTarget);
  openTarget();

  // sorting

  $$("table.sortable").forEach((table) => {
    const body = $("tbody", table);
    $$("th[data-sort]", table).forEach((th) => {
      const column = [...th.parentNode.children].indexOf(th);
      const numeric = th.dataset.sort === "number";
      const button = make("button", { type: "button", className: "sort" }, th.textContent);
      th.replaceChildren(button);
      const key = (row) => {
        const cell = row.children[column];
        const text = cell.dataset.value || cell.textContent;
        return numeric ? (text === "" ? Infinity : Number(text)) : text;
      };
      button.addEventListener("click", () => {
        const down = th.getAttribute("aria-sort") === "ascending";
        $$("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const upwards = numeric ? (a, b) => a[0] - b[0] || 0 : (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);
        const compare = (a, b) => (down ? -upwards(a, b) : upwards(a, b));
        if (sorters.has(table)) { sorters.get(table)(column, compare); return; }
        const keyed = [...body.rows].map((row) => [key(row), row]).sort(compare);
        body.append(...keyed.map((pair) => pair[1]));
      });
    });
  });

  // keys

  const step = (by) => {
    const shown = groups.filter((group) => !group.hidden);
    const at = shown.findIndex((group) => group.contains(document.activeElement));
    const next = shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(shown.length - 1, Math.max(0, at + by))];
    if (next) { reveal(next); $("summary", next).focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const actions = {
      j: () => step(1),
      k: () => step(-1),
      r: () => toggle("raw"),
      s: () => toggle("side"),
      "/": () => { const form = groupForm || caseForm; form.elements.text.focus(); },
    };
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  });
  document.documentElement.dataset.ready = "yes";
})();
