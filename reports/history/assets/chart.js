"use strict";
/* One chart of lines over versions: hover and arrow keys read values, dragging or + - 0 zoom, buttons hide lines. */

const irdiffColors = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const style = getComputedStyle(document.documentElement);
  return {
    ink: style.getPropertyValue("--dim").trim(), grid: style.getPropertyValue("--line").trim(),
    line: (number) => `hsl(${(211 + number * 137.508) % 360} ${dark ? 70 : 65}% ${dark ? 66 : 40}%)`,
  };
};

function irdiffChart(box, given) {
  /* given: labels, lines [{name, values, low, high}], title, format, from, to, hidden (Set), onRange, onHide */
  const colors = irdiffColors();
  const last = given.labels.length - 1;
  const holder = document.createElement("div");
  const readout = document.createElement("p");
  const legend = document.createElement("div");
  holder.className = "chart";
  holder.tabIndex = 0;
  holder.setAttribute("role", "group");
  holder.setAttribute("aria-label", `${given.title}. Arrow keys read the values of each version; + and - zoom, 0 shows all.`);
  readout.className = "readout";
  readout.setAttribute("aria-live", "polite");
  legend.className = "legend";
  box.append(holder, readout, legend);

  const read = (place) => {
    readout.replaceChildren();
    if (place === null || place === undefined) {
      readout.textContent = "Point at the chart, or focus it and use the arrow keys.";
      return;
    }
    const head = document.createElement("b");
    head.textContent = `${given.labels[place]}  `;
    readout.append(head);
    given.lines.forEach((line, number) => {
      const value = line.values[place];
      if (value === null || value === undefined || given.hidden.has(line.name)) return;
      const part = document.createElement("span");
      const dot = document.createElement("span");
      dot.className = "dot";
      dot.style.background = colors.line(number);
      const range = line.low && line.low[place] !== null ? ` (${given.format(line.low[place])} to ${given.format(line.high[place])})` : "";
      part.append(dot, `${line.name}: ${given.format(value)}${range}  `);
      readout.append(part);
    });
  };

  const whiskers = (plot) => {
    const context = plot.ctx;
    context.save();
    given.lines.forEach((line, number) => {
      if (!line.low || given.hidden.has(line.name)) return;
      context.strokeStyle = colors.line(number);
      context.lineWidth = devicePixelRatio;
      line.low.forEach((low, place) => {
        if (low === null || place < plot.scales.x.min || place > plot.scales.x.max) return;
        const x = plot.valToPos(place, "x", true);
        context.beginPath();
        context.moveTo(x, plot.valToPos(low, "y", true));
        context.lineTo(x, plot.valToPos(line.high[place], "y", true));
        context.stroke();
      });
    });
    context.restore();
  };

  let shown = [given.from, given.to];
  const tellRange = (u) => {
    const range = [Math.max(0, Math.round(u.scales.x.min)), Math.min(last, Math.round(u.scales.x.max))];
    if (range[0] === shown[0] && range[1] === shown[1]) return;
    shown = range;
    given.onRange(...range);
  };
  const plot = new uPlot({
    width: Math.max(280, box.clientWidth), height: 320,
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, focus: { prox: 24 }, points: { size: 7 } },
    scales: { x: { time: false, min: given.from, max: given.to, range: (_u, low, high) => [Math.max(-0.2, low), Math.min(last + 0.2, Math.max(high, low + 0.5))] } },
    axes: [
      { stroke: colors.ink, grid: { stroke: colors.grid, width: 1 }, ticks: { stroke: colors.grid }, space: 64,
        splits: (u) => {
          const low = Math.ceil(u.scales.x.min), high = Math.floor(u.scales.x.max);
          const every = Math.max(1, Math.ceil((high - low + 1) / Math.max(2, Math.floor(u.width / 76))));
          return Array.from({ length: Math.floor((high - low) / every) + 1 }, (_, index) => low + index * every);
        },
        values: (_u, splits) => splits.map((place) => given.labels[place] ?? "") },
      { stroke: colors.ink, grid: { stroke: colors.grid, width: 1 }, ticks: { stroke: colors.grid }, size: 64,
        values: (_u, splits) => splits.map((value) => given.format(value)) },
    ],
    series: [{}, ...given.lines.map((line, number) => ({
      label: line.name, stroke: colors.line(number), width: 1.8, spanGaps: false,
      points: { show: true, size: 5 }, show: !given.hidden.has(line.name),
    }))],
    hooks: {
      setCursor: [(u) => read(u.cursor.idx)],
      draw: [whiskers],
      setScale: [(u, key) => { if (key === "x" && u.scales.x.min !== null) tellRange(u); }],
    },
  }, [given.labels.map((_, place) => place), ...given.lines.map((line) => line.values)], holder);

  const zoom = (from, to) => plot.setScale("x", { min: from, max: to });
  if (given.from > 0 || given.to < last) zoom(given.from, given.to);
  read(null);

  let at = null;
  holder.addEventListener("keydown", (event) => {
    const low = Math.max(0, Math.ceil(plot.scales.x.min)), high = Math.min(last, Math.floor(plot.scales.x.max));
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move) {
      at = at === null ? (move > 0 ? low : high) : Math.min(high, Math.max(low, at + move));
      plot.setCursor({ left: plot.valToPos(at, "x"), top: 20 });
      read(at);
    } else if (event.key === "Home" || event.key === "End") {
      at = event.key === "Home" ? low : high;
      plot.setCursor({ left: plot.valToPos(at, "x"), top: 20 });
      read(at);
    } else if (event.key === "+" || event.key === "=") {
      const middle = at ?? Math.round((low + high) / 2), half = Math.max(1, Math.floor((high - low) / 4));
      zoom(Math.max(0, middle - half), Math.min(last, middle + half));
    } else if (event.key === "-") {
      const grow = Math.max(1, Math.floor((high - low) / 2));
      zoom(Math.max(0, low - grow), Math.min(last, high + grow));
    } else if (event.key === "0") {
      zoom(0, last);
    } else {
      return;
    }
    event.preventDefault();
  });

  given.lines.forEach((line, number) => {
    const button = document.createElement("button");
    const dot = document.createElement("span");
    dot.className = "dot";
    dot.style.background = colors.line(number);
    button.type = "button";
    button.append(dot, line.name);
    button.setAttribute("aria-pressed", String(!given.hidden.has(line.name)));
    button.addEventListener("click", () => {
      const hide = !given.hidden.has(line.name);
      if (hide) given.hidden.add(line.name); else given.hidden.delete(line.name);
      button.setAttribute("aria-pressed", String(!hide));
      plot.setSeries(number + 1, { show: !hide });
      given.onHide(given.hidden);
    });
    legend.append(button);
  });

  const observer = new ResizeObserver(() => {
    const width = Math.max(280, box.clientWidth);
    if (Math.abs(width - plot.width) > 2) plot.setSize({ width, height: 320 });
  });
  observer.observe(box);
  return { plot, destroy: () => { observer.disconnect(); plot.destroy(); } };
}
