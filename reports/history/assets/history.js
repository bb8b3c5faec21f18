"use strict";
/* The pages of the site, by what stands behind `#`: every state of a page is in its address. */
(() => {
  const main = document.getElementById("main");
  const MOST_LINES = 40;
  const waiting = new Map();
  let charts = [];
  let overview = null;

  // data

  window.irdiffData = (name, packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const told = waiting.get(name);
    new Response(stream).json().then(told.resolve, told.reject);
  };
  function load(name) {
    if (!waiting.has(name)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => { entry.resolve = resolve; entry.reject = reject; });
      waiting.set(name, entry);
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.onerror = () => { waiting.delete(name); entry.reject(new Error(`data/${name}.js cannot be loaded: is the whole folder here?`)); };
      document.head.append(script);
    }
    return waiting.get(name).promise;
  }

  // elements

  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "class") made.className = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return made;
  }
  const number = (value) => value === null || value === undefined ? "–"
    : Number.isInteger(value) ? value.toLocaleString("en") : Math.abs(value) >= 100 ? value.toFixed(1) : value.toPrecision(4);
  const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(part && part < whole / 100 ? 1 : 0)} %` : "–";
  const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
  const moment = (text) => `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
  /* Titles have `code` in them. */
  const rich = (text) => text.split("`").map((part, place) => place % 2 ? el("code", {}, part) : part);
  const section = (title, ...children) => el("section", {}, title ? el("h2", {}, title) : null, ...children);
  const link = (path, query, ...text) => el("a", { href: address(path, query) }, ...text);
  function address(path, query) {
    const text = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
    return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
  }
  function stay(path, query) { history.replaceState(null, "", address(path, query)); }
  function select(label, options, chosen, change) {
    const box = el("select", { onchange: (event) => change(event.target.value) },
      options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
    return el("label", {}, label, box);
  }

  // what several pages show

  const KINDS = ["broken", "changed", "ir-only", "unchanged", "fixed"];
  function bar(counts) {
    const sums = {};
    for (const [, verdict, count] of counts) sums[KINDS.includes(verdict) ? verdict : "other"] = (sums[KINDS.includes(verdict) ? verdict : "other"] ?? 0) + count;
    const whole = Object.values(sums).reduce((a, b) => a + b, 0) || 1;
    const told = [...KINDS, "other"].filter((kind) => sums[kind]);
    return el("span", { class: "bar", role: "img", "aria-label": told.map((kind) => `${sums[kind]} ${kind}`).join(", "), title: told.map((kind) => `${sums[kind]} ${kind}`).join(", ") },
      told.map((kind) => { const part = el("i", { class: kind }); part.style.width = `${100 * sums[kind] / whole}%`; return part; }));
  }
  const key = () => el("p", {}, [...KINDS, "other"].map((kind) => el("span", { class: "key" }, el("i", { class: kind }), kind)));
  const count = (pair, verdict, target) => pair.counts.reduce((sum, [where, kind, many]) => sum + (kind === verdict && (!target || where === target) ? many : 0), 0);

  function stepList(place, steps, most = 200) {
    const series = overview.series[place];
    const shown = steps.slice(0, most);
    return el("div", {},
      el("ol", { class: "steps" }, shown.map((step) => el("li", {},
        link(["step", step.id], { s: place }, rich(step.title)), " ",
        step.severity ? el("span", { class: "tag" }, step.severity) : null, " ",
        step.undone !== null ? el("span", { class: "tag good" }, `undone in ${series.versions[step.undone]}`) : null,
        el("div", { class: "dim" }, `${series.versions[step.base]} → ${series.versions[step.head]} · ${plural(step.cases, "case")} of ${plural(step.workloads.length, "workload")}`,
          step.pass ? ` · ${step.pass}` : "", step.slower ? ` · ${step.slower} slower` : "", step.faster ? ` · ${step.faster} faster` : "",
          step.facts.length ? ` · ${step.facts.join(", ")}` : "")))),
      steps.length > most ? el("p", { class: "dim" }, `and ${number(steps.length - most)} more: search narrows them`) : null);
  }

  function chart(box, given) { charts.push(irdiffChart(box, { hidden: new Set(), onRange: () => {}, onHide: () => {}, from: 0, to: given.labels.length - 1, format: number, ...given })); }

  function seriesControl(path, query, place) {
    if (overview.series.length < 2) return null;
    return select("Series", overview.series.map((row, index) => [index, row.name]), place, (value) => { location.hash = address(path, { ...query, s: value }); });
  }

  // pages

  function showOverview(query) {
    const place = Number(query.s ?? 0), series = overview.series[place], target = query.t ?? "";
    title("Every kernel over every version", `${plural(series.versions.length, "version")}, ${plural(overview.kernels.length, "workload")}, ${plural(overview.kernels.reduce((sum, row) => sum + row.cases, 0), "case")} · written ${moment(overview.created)}`);
    main.append(el("div", { class: "controls" }, seriesControl([], query, place),
      select("Target", [["", "all"], ...series.targets.map((name) => [name, name])], target, (value) => { location.hash = address([], { ...query, t: value }); })));
    const rows = [...series.pairs].reverse().map((pair) => {
      const counts = pair.counts.filter(([where]) => !target || where === target);
      const compared = counts.reduce((sum, [, verdict, many]) => sum + (["changed", "ir-only", "unchanged"].includes(verdict) ? many : 0), 0);
      const broken = count(pair, "broken", target), changed = count(pair, "changed", target);
      return el("tr", {},
        el("td", {}, link(["pair", String(place), String(pair.base), String(pair.head)], {}, `${series.versions[pair.base]} → ${series.versions[pair.head]}`)),
        el("td", {}, bar(counts)),
        el("td", { class: "number" }, `${number(changed)} of ${number(compared)}`), el("td", { class: "number" }, percent(changed, compared)),
        el("td", { class: `number ${broken ? "bad" : ""}` }, number(broken)), el("td", { class: "number" }, number(count(pair, "fixed", target))),
        el("td", { class: `number ${pair.slower ? "warn" : ""}` }, number(pair.slower)), el("td", { class: `number ${pair.faster ? "good" : ""}` }, number(pair.faster)),
        el("td", { class: "number wide" }, number(pair.groups)));
    });
    main.append(section("What each version changed", key(), el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Versions", "Verdicts"].map((name) => el("th", {}, name)), ["Changed", "Share", "Broken", "Fixed", "Slower", "Faster"].map((name) => el("th", { class: "number" }, name)), el("th", { class: "number wide" }, "Groups"))),
      el("tbody", {}, rows)))));
    const costs = Object.entries(series.cost_s).filter(([name]) => !target || name === target);
    if (costs.length) {
      const box = el("div");
      main.append(section("Processor seconds to compile the same cases", box, el("p", { class: "dim" }, costs.map(([name]) => `${name}: ${plural(series.cost_cases[name], "case")}`).join(" · "))));
      chart(box, { title: "Processor seconds to compile, by target", labels: series.versions, lines: costs.map(([name, values]) => ({ name, values })), format: (value) => `${number(value)} s` });
    }
    const steps = series.steps.filter((step) => !target || step.targets.includes(target));
    main.append(section(`Change points (${number(steps.length)})`, stepList(place, steps, 25), el("p", {}, link(["steps"], { s: place }, "all change points"))));
  }

  function showKernels(query) {
    title("Kernels", "");
    const words = (query.q ?? "").toLowerCase();
    const rows = overview.kernels.filter((row) => `${row.workload} ${row.kernels.join(" ")}`.toLowerCase().includes(words));
    const counts = new Map();
    overview.series.forEach((series) => series.steps.forEach((step) => step.workloads.forEach((name) => counts.set(name, (counts.get(name) ?? 0) + 1))));
    main.append(section(null, el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["Workload", "Kernels"].map((name) => el("th", {}, name)), ["Cases", "Change points"].map((name) => el("th", { class: "number" }, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, el("td", {}, link(["kernel", row.workload], {}, row.workload)), el("td", { class: "dim" }, row.kernels.filter(Boolean).join(", ")), el("td", { class: "number" }, number(row.cases)), el("td", { class: "number" }, number(counts.get(row.workload) ?? 0))))))),
      rows.length ? null : el("p", {}, "No workload or kernel has such a name.")));
  }

  function showSteps(query) {
    const place = Number(query.s ?? 0), series = overview.series[place];
    title("Change points", "What moved between two versions for one reason.");
    const severities = [...new Set(series.steps.map((step) => step.severity).filter(Boolean))].sort();
    const change = (name) => (value) => { location.hash = address(["steps"], { ...query, [name]: value }); };
    main.append(el("div", { class: "controls" }, seriesControl(["steps"], query, place),
      select("Version", [["", "all"], ...series.versions.map((name, index) => [index, name])], query.v ?? "", change("v")),
      select("Severity", [["", "all"], ...severities.map((name) => [name, name])], query.g ?? "", change("g")),
      select("Moved", [["", "anything"], ["time", "time"], ["registers", "registers"], ["vgprs", "vgprs"], ["spill_store_bytes", "spills"], ["shared_bytes", "shared memory"], ["warps_per_multiprocessor", "occupancy"], ["waves_per_simd", "occupancy (AMD)"]], query.f ?? "", change("f"))));
    const steps = series.steps.filter((step) => (!query.v || step.head === Number(query.v)) && (!query.g || step.severity === query.g) && (!query.f || step.facts.includes(query.f)));
    main.append(section(plural(steps.length, "change point"), stepList(place, steps)));
  }

  function showSearch(query) {
    const words = (query.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    title(`What moved “${query.q ?? ""}”`, "");
    const has = (text) => words.every((word) => text.toLowerCase().includes(word));
    const kernels = overview.kernels.filter((row) => has(`${row.workload} ${row.kernels.join(" ")}`));
    main.append(section(`Kernels (${number(kernels.length)})`, kernels.length ? el("ul", {}, kernels.slice(0, 50).map((row) => el("li", {}, link(["kernel", row.workload], {}, row.workload), el("span", { class: "dim" }, ` ${row.kernels.filter(Boolean).join(", ")}`)))) : el("p", { class: "dim" }, "None has such a name.")));
    const names = new Set(kernels.map((row) => row.workload));
    overview.series.forEach((series, place) => {
      const steps = series.steps.filter((step) => has(`${step.title} ${step.pass ?? ""} ${step.severity} ${step.facts.join(" ")} ${series.versions[step.head]}`) || step.workloads.some((name) => names.has(name)));
      main.append(section(`Change points in ${series.name} (${number(steps.length)})`, stepList(place, steps)));
    });
  }

  const NICE = ["time", "registers", "vgprs", "spill_store_bytes", "shared_bytes", "warps_per_multiprocessor", "waves_per_simd", "code_bytes", "ptx.total", "amdgcn.total"];
  async function showKernel(workload, query) {
    let place = Number(query.s ?? overview.series.findIndex((row) => row.workloads.includes(workload)));
    const series = overview.series[place];
    if (!series || !series.workloads.includes(workload)) throw new Error(`there is no workload ${workload} in this history`);
    const found = await load(`kernel-${place}-${series.workloads.indexOf(workload)}`);
    title(workload, `${plural(found.cases.length, "case")} · kernels: ${[...new Set(found.cases.map((row) => row[1]))].filter(Boolean).join(", ")}`);
    const targets = [...new Set(found.cases.map((row) => row[2]))].sort();
    const target = targets.includes(query.t) ? query.t : targets[0];
    const here = found.cases.filter((row) => row[2] === target).map((row) => row[0]);
    const timed = here.some((id) => found.timings[id]);
    const facts = [...(timed ? ["time"] : []), "compile_cpu_s", ...Object.keys(found.facts).filter((name) => here.some((id) => found.facts[name][id]))];
    const fact = facts.includes(query.f) ? query.f : NICE.find((name) => name === "time" ? timed : bends(found, here, name)) ?? NICE.find((name) => facts.includes(name)) ?? facts[0];
    const path = ["kernel", workload];
    const state = { ...query, s: place, t: target, f: fact };
    const change = (name) => (value) => { location.hash = address(path, { ...state, [name]: value }); };
    const last = series.versions.length - 1;
    const range = (name, chosen) => select(name === "a" ? "From" : "To", series.versions.map((label, index) => [index, label]), chosen, change(name));
    const from = Math.min(Number(query.a ?? 0), last), to = Math.max(from, Math.min(Number(query.b ?? last), last));
    const order = (name) => { const at = NICE.indexOf(name); return at < 0 ? NICE.length : at; };
    facts.sort((one, other) => order(one) - order(other) || (one < other ? -1 : 1));
    main.append(el("div", { class: "controls" }, seriesControl(path, state, place),
      select("Target", targets.map((name) => [name, name]), target, change("t")), select("Fact", facts.map((name) => [name, name]), fact, change("f")), range("a", from), range("b", to),
      el("label", {}, "Cases", el("input", { type: "search", value: query.c ?? "", placeholder: "fp16", onchange: (event) => change("c")(event.target.value) }))));
    const wanted = here.filter((id) => id.includes(query.c ?? ""));
    const all = wanted.map((id) => line(found, id, fact, series)).filter(Boolean);
    const lines = all.slice(0, MOST_LINES);
    const box = el("div");
    main.append(section(`${fact} on ${target}`, lines.length ? box : el("p", { class: "dim" }, "Nothing is known of this fact here."),
      all.length > MOST_LINES ? el("p", { class: "dim" }, `${all.length - MOST_LINES} more lines: narrow the cases`) : null,
      fact === "time" ? el("p", { class: "dim" }, `Microseconds of a launch on ${found.timings[wanted.find((id) => found.timings[id])]?.[0].gpu ?? "?"}; the strokes are 95 % intervals against one reference of the same session.`) : null));
    const hidden = new Set((query.off ?? "").split(",").filter(Boolean));
    let live = { ...state };
    if (lines.length) chart(box, { title: `${fact} of ${workload} on ${target}`, labels: series.versions, lines, hidden, from, to,
      onRange: (a, b) => { live = { ...live, a: a > 0 ? a : "", b: b < last ? b : "" }; stay(path, live); },
      onHide: (off) => { live = { ...live, off: [...off].join(",") }; stay(path, live); } });
    const pairs = series.pairs.map((pair, index) => [pair, index]).filter(([pair]) => pair.head >= from && pair.head <= to);
    main.append(section("Verdicts", key(), el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "Case"), pairs.map(([pair]) => el("th", {}, link(["pair", String(place), String(pair.base), String(pair.head)], {}, series.versions[pair.head]))))),
      el("tbody", {}, wanted.slice(0, 200).map((id) => el("tr", {}, el("td", {}, el("code", {}, id.slice(id.indexOf(":") + 1, id.lastIndexOf("@")))), pairs.map(([, index]) => { const told = found.verdicts[id][index]; return el("td", {}, told ? el("span", { class: "key" }, el("i", { class: KINDS.includes(told) ? told : "other" }), told) : "–"); }))))))));
    const steps = series.steps.filter((step) => step.workloads.includes(workload) && step.targets.includes(target));
    main.append(section(`What moved it on ${target} (${number(steps.length)})`, stepList(place, steps)));
  }
  const bends = (found, ids, fact) => ids.some((id) => (found.facts[fact]?.[id]?.length ?? 0) > 1);
  function line(found, id, fact, series) {
    const name = id.slice(id.indexOf(":") + 1, id.lastIndexOf("@"));
    const whole = (values) => values.length === 1 ? series.versions.map(() => values[0]) : values;
    if (fact === "compile_cpu_s") return found.cost_s[id] ? { name, values: found.cost_s[id] } : null;
    if (fact !== "time") return found.facts[fact]?.[id] ? { name, values: whole(found.facts[fact][id]) } : null;
    const timing = found.timings[id]?.[0];
    if (!timing) return null;
    const scale = timing.us.map((us, at) => us === null ? null : us / timing.ratio[at]);
    return { name, values: timing.us, low: timing.low.map((low, at) => low === null ? null : low * scale[at]), high: timing.high.map((high, at) => high === null ? null : high * scale[at]) };
  }

  async function showPair(place, base, head) {
    const series = overview.series[place], pair = series?.pairs.find((row) => row.base === base && row.head === head);
    if (!pair) throw new Error("these two versions were not compared");
    title(`${series.versions[base]} → ${series.versions[head]}`, `${number(pair.changed)} of ${number(pair.compared)} compared cases changed, in ${plural(pair.groups, "group")} · compared ${moment(pair.created)} in ${number(Math.round(pair.duration_s))} s`);
    if (pair.report) main.append(el("p", {}, el("a", { href: pair.report }, "The whole report of this comparison"), ": every group with its edit, and every case."));
    main.append(section("By target", key(), el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, series.targets.map((name) => el("tr", {}, el("td", {}, name), el("td", {}, bar(pair.counts.filter(([where]) => where === name))), el("td", { class: "number" }, `${count(pair, "changed", name)} changed`), el("td", { class: "number" }, `${count(pair, "broken", name)} broken`))))))));
    main.append(section("What moved", stepList(place, series.steps.filter((step) => step.base === base && step.head === head))));
    const found = await load(`pair-${place}-${base}-${head}`);
    if (found.uncompared.length) main.append(section("Not compared in code", el("ul", {}, found.uncompared.slice(0, 300).map(([id, verdict]) => el("li", {}, el("code", {}, id), ` ${verdict}`)))));
  }

  async function showStep(id, query) {
    const place = overview.series.findIndex((row) => row.steps.some((step) => step.id === id));
    if (place < 0) throw new Error("there is no such change point in this history");
    const series = overview.series[place], known = series.steps.find((step) => step.id === id);
    const found = await load(`pair-${place}-${known.base}-${known.head}`);
    const step = found.steps.find((row) => row.id === id);
    title(step.title, "");
    const rows = [
      ["Versions", link(["pair", String(place), String(step.base), String(step.head)], {}, `${step.spec[0]} → ${step.spec[1]}`)],
      ["Severity", step.severity], ["First stage and pass", [step.group?.origin_stage, step.pass].filter(Boolean).join(", ")], ["Charged to", step.group?.charged],
      ["Cases", `${step.cases}, of ${step.workloads.join(", ")}`], ["Later undone", step.undone === null ? "no" : `in ${series.versions[step.undone]}`],
      ["Change group", step.group ? el("code", {}, step.group.id) : ""], ["Smallest example", step.group ? el("code", {}, step.group.representative) : ""],
    ];
    main.append(section(null, el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, rows.filter(([, value]) => value).map(([name, value]) => el("tr", {}, el("th", {}, name), el("td", {}, value)))))),
      step.bisect ? el("div", {}, el("p", { class: "dim" }, "To find the commit, in a checkout:"), el("pre", {}, step.bisect)) : null));
    const facts = [...new Set([...step.facts, ...Object.keys(step.moves)])].filter((name) => step.moves[name]);
    const chosen = facts.includes(query.f) ? query.f : facts.find((name) => name !== "code_bytes") ?? facts[0];
    if (chosen) {
      const moves = step.moves[chosen];
      main.append(section("What moved", el("div", { class: "controls" }, select("Fact", facts.map((name) => [name, `${name} (${step.moves[name].length})`]), chosen, (value) => { location.hash = address(["step", id], { ...query, f: value }); })),
        el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Case"), ["Before", "After", "Change"].map((name) => el("th", { class: "number" }, name)))),
          el("tbody", {}, moves.slice(0, 300).map(([at, before, after]) => { const name = step.cases_listed[at]; return el("tr", {},
            el("td", {}, link(["kernel", name.slice(0, name.indexOf(":"))], { s: place, t: name.slice(name.lastIndexOf("@") + 1), f: chosen }, name)),
            el("td", { class: "number" }, number(before)), el("td", { class: "number" }, number(after)), el("td", { class: "number" }, before ? `${(100 * (after / before - 1)).toFixed(1)} %` : "new")); })))),
        step.moves_left_out ? el("p", { class: "dim" }, `${number(step.moves_left_out)} further moves are not listed`) : null));
    }
    main.append(section("All its cases", el("ul", {}, step.cases_listed.slice(0, 500).map((name) => el("li", {}, el("code", {}, name))))));
  }

  // the address

  function title(text, note) {
    document.title = `${text.replaceAll("`", "")} · irdiff history`;
    main.append(el("h1", {}, rich(text)), note ? el("p", { class: "dim" }, note) : "");
  }
  async function show() {
    const [path, text] = location.hash.replace(/^#\/?/, "").split("?");
    const query = Object.fromEntries(new URLSearchParams(text ?? ""));
    charts.forEach((drawn) => drawn.destroy());
    charts = [];
    try {
      const parts = path.split("/").map(decodeURIComponent);
      overview ??= await load("overview");
      main.replaceChildren();
      const box = document.querySelector("#search input");
      if (parts[0] === "search") box.value = query.q ?? "";
      if (Number(query.s ?? 0) >= overview.series.length) throw new Error("there is no such series in this history");
      switch (parts[0]) {
        case "": showOverview(query); break;
        case "kernels": showKernels(query); break;
        case "steps": showSteps(query); break;
        case "search": showSearch(query); break;
        case "kernel": await showKernel(parts[1] ?? "", query); break;
        case "pair": await showPair(Number(parts[1]), Number(parts[2]), Number(parts[3])); break;
        case "step": await showStep(parts[1], query); break;
        default: throw new Error(`there is no page ${parts[0]}`);
      }
    } catch (error) {
      main.replaceChildren(el("section", { class: "error", role: "alert" }, el("h1", {}, "This page cannot be shown"), el("p", {}, error.message), el("p", {}, el("a", { href: "#/" }, "To the overview"))));
    }
    document.documentElement.dataset.ready = location.hash || "#/";
  }
  addEventListener("hashchange", () => { document.documentElement.dataset.ready = ""; show().then(() => { main.focus({ preventScroll: true }); scrollTo(0, 0); }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  document.getElementById("search").addEventListener("submit", (event) => { event.preventDefault(); location.hash = address(["search"], { q: event.target.q.value.trim() }); });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); document.querySelector("#search input").focus(); }
  });
  show();
})();
