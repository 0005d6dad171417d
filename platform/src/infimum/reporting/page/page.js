(() => {
  "use strict";
  const root = document.documentElement;
  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  // Tables: sort by a column, show all rows.
  for (const button of document.querySelectorAll("th .sort")) {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const body = head.closest("table").tBodies[0];
      const column = [...head.parentElement.children].indexOf(head);
      const numeric = head.classList.contains("number");
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const text = row.cells[column].dataset.sort;
        return numeric ? (text === "" ? NaN : Number(text.replace("inf", "Infinity"))) : text;
      };
      const rows = [...body.rows].map((row) => [key(row), row]);
      const sign = down ? -1 : 1;
      rows.sort(([a], [b]) => {
        if (!numeric) return sign * a.localeCompare(b, undefined, { numeric: true });
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return sign * (a === b ? 0 : a < b ? -1 : 1);
      });
      body.append(...rows.map(([, row]) => row));
    });
  }
  for (const button of document.querySelectorAll(".more")) {
    const closed = button.textContent;
    button.addEventListener("click", () => {
      const short = button.previousElementSibling.classList.toggle("short");
      button.setAttribute("aria-expanded", String(!short));
      button.textContent = short ? closed : "Show fewer rows";
    });
  }

  // Colors of the page.
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  const dark = () => !printing && (root.dataset.theme ? root.dataset.theme === "dark" : darkness.matches);
  for (const input of document.querySelectorAll("input[name=theme]")) {
    input.addEventListener("change", () => {
      if (input.value === "auto") delete root.dataset.theme;
      else root.dataset.theme = input.value;
      drawAll();
    });
  }

  const holder = document.getElementById("report-data");
  const data = holder ? JSON.parse(holder.textContent) : { figures: [], arrays: [] };
  const arrays = data.arrays;

  // Eight colors that differ in lightness too, a dash pattern and a marker each.
  const COLORS = {
    light: ["#0a66b5", "#d1520b", "#00866a", "#a3327f", "#a67c00", "#4b3fa8", "#6a737d", "#8c1c3a"],
    dark: ["#62b4ff", "#ff9655", "#35d0a5", "#f08fcb", "#f2cb57", "#b1a5ff", "#b4bcc5", "#ff8c9c"],
  };
  const DASHES = ["solid", "10px,4px", "2.5px,3px", "9px,3px,2px,3px", "16px,5px", "14px,3px,2px,3px,2px,3px"];
  const MARKERS = ["circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "hexagon"];
  const SHAPES = {
    circle: "M-3.4,0a3.4,3.4 0 1 0 6.8,0a3.4,3.4 0 1 0 -6.8,0z", square: "M-3,-3h6v6h-6z", diamond: "M0,-4.2L4.2,0L0,4.2L-4.2,0z",
    "triangle-up": "M0,-4L3.9,3h-7.8z", "triangle-down": "M0,4L3.9,-3h-7.8z",
    x: "M-3.5,-2L-2,-3.5L0,-1.5L2,-3.5L3.5,-2L1.5,0L3.5,2L2,3.5L0,1.5L-2,3.5L-3.5,2L-1.5,0z",
    star: "M0,-4.4L1.2,-1.5L4.3,-1.4L1.9,0.6L2.7,3.6L0,1.9L-2.7,3.6L-1.9,0.6L-4.3,-1.4L-1.2,-1.5z",
    hexagon: "M-2.1,-3.6h4.2L4.2,0L2.1,3.6h-4.2L-4.2,0z",
  };
  // Many runs: one ramp of even steps in lightness, cut so that both ends stand out from the paper.
  const RAMP = {
    light: ["#35176b", "#45398f", "#3d5f9b", "#2c7f9a", "#1f9a86", "#4aac5b", "#8fae2c", "#b9a20f"],
    dark: ["#8f7de0", "#7b95ea", "#5caae0", "#45bccb", "#4ccba6", "#86d67f", "#c2dd5f", "#f3e04f"],
  };

  const mixed = (ramp, t) => {
    const at = t * (ramp.length - 1);
    const k = Math.min(Math.floor(at), ramp.length - 2);
    const part = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
    const [a, b] = [part(ramp[k]), part(ramp[k + 1])];
    return "#" + a.map((v, i) => Math.round(v + (at - k) * (b[i] - v)).toString(16).padStart(2, "0")).join("");
  };
  const look = (figure, index) => {
    const mode = dark() ? "dark" : "light";
    if (figure.ramp) {
      return { color: mixed(RAMP[mode], figure.ramp < 2 ? 0 : index / (figure.ramp - 1)), dash: "solid", marker: "circle" };
    }
    const turn = Math.floor(index / COLORS.light.length);
    return { color: COLORS[mode][index % COLORS.light.length], dash: DASHES[(index + turn) % DASHES.length], marker: MARKERS[(index + turn) % MARKERS.length] };
  };
  const faded = (color, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)).join(",")},${alpha})`;
  // The style sheet's colors for paper do not count yet when the page is told that it will be printed.
  const PAPER = { "--ink": "#000000", "--muted": "#444c55", "--line": "#9aa3ad", "--grid": "#e3e6e9", "--raised": "#ffffff" };
  const token = (name) => (printing ? PAPER[name] : getComputedStyle(root).getPropertyValue(name).trim());

  const plots = [...document.querySelectorAll(".plot")].map((node) => {
    const figure = data.figures[Number(node.dataset.figure)];
    return { node, figure, canvas: node.querySelector(".canvas"), view: 0, hidden: new Set(), x: figure.x_scale, y: figure.y_scale, drawn: false };
  });

  const usable = (plot, curve, axis) => {
    if (axis === "x" && typeof arrays[curve.x][0] === "string") return false;
    return arrays[curve[axis]].some((v) => v > 0);
  };
  const scales = (plot) => {
    const curves = plot.figure.views[plot.view].curves;
    const log = (axis) => plot[axis] === "log" && curves.some((curve) => usable(plot, curve, axis));
    return { x: log("x") ? "log" : "linear", y: log("y") ? "log" : "linear" };
  };

  // What lies between the gaps, as [from, to).
  const stretches = (known) => {
    const out = [];
    known.forEach((there, k) => {
      if (there && known[k - 1]) out[out.length - 1][1] = k + 1;
      else if (there) out.push([k, k + 1]);
    });
    return out;
  };

  const traces = (plot, scale) => {
    const { figure } = plot;
    const out = [];
    const view = figure.views[plot.view];
    for (const curve of view.curves) {
      if (plot.hidden.has(curve.label)) continue;
      const { color, dash, marker } = look(figure, curve.color);
      const label = figure.labels[curve.label];
      const x = arrays[curve.x];
      let y = arrays[curve.y];
      if (scale.y === "log") y = y.map((v) => (v > 0 ? v : null));
      const hover = `${label ? "<b>" + escaped(label) + "</b><br>" : ""}%{y:.6~g} at %{x:.6~g}<extra></extra>`;
      if (curve.low !== undefined) {
        const floor = Math.min(...y.filter((v) => v > 0));
        const edge = (values) => (scale.y === "log" ? values.map((v) => Math.max(v, floor * 1e-2)) : values);
        const common = { type: "scatter", mode: "lines", line: { width: 0, shape: "linear" }, hoverinfo: "skip" };
        const [low, high] = [arrays[curve.low], arrays[curve.high]];
        for (const part of stretches(x.map((v, k) => v !== null && low[k] !== null && high[k] !== null))) {
          out.push({ ...common, x: x.slice(...part), y: edge(low.slice(...part)) });
          out.push({ ...common, x: x.slice(...part), y: edge(high.slice(...part)), fill: "tonexty", fillcolor: faded(color, dark() ? 0.24 : 0.17) });
        }
      }
      if (curve.style === "bars") {
        out.push({ x, y, type: "bar", marker: { color }, hovertemplate: hover });
        continue;
      }
      const points = curve.style === "points";
      const few = x.length <= 40;
      const thick = figure.ramp ? 1.25 : 2;
      const bare = figure.ramp && x.length > 1;
      out.push({
        x, y, type: "scatter", mode: points ? "markers" : bare ? "lines" : "lines+markers", cliponaxis: points ? false : true,
        line: { color, width: thick, dash, shape: curve.style === "steps" ? "hv" : "linear" },
        marker: { color, symbol: marker, size: points ? 8 : few ? 6 : 7, maxdisplayed: points || few ? 0 : 9 },
        hovertemplate: hover,
      });
      if (points || (few && !bare)) continue;
      // No line shows a point between two gaps, and only some points of a long curve have markers.
      const lone = stretches(x.map((v, k) => v !== null && y[k] !== null)).filter(([from, to]) => to - from === 1);
      if (!lone.length) continue;
      const at = (values) => lone.map(([k]) => values[k]);
      out.push({ x: at(x), y: at(y), type: "scatter", mode: "markers", marker: { color, symbol: marker, size: 4 }, hovertemplate: hover });
    }
    return out;
  };
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const layout = (plot, scale) => {
    const narrow = !printing && plot.canvas.clientWidth < 420;
    const axis = (type) => ({
      type, gridcolor: token("--grid"), linecolor: token("--line"), tickcolor: token("--line"), ticks: "outside", ticklen: 4,
      zeroline: false, showline: true, automargin: true, exponentformat: "power", showexponent: "all", nticks: narrow ? 5 : 8,
      minexponent: 4, tickfont: { size: type === "log" ? 10.5 : narrow ? 11.5 : 12.5 },
    });
    const view = plot.figure.views[plot.view];
    // Whole decades only, where there are some: digits between them crowd an axis.
    const decades = (name) => {
      if (scale[name] === "linear") return {};
      let [least, most] = [Infinity, 0];
      for (const curve of view.curves) {
        for (const v of arrays[curve[name]]) if (v > 0) [least, most] = [Math.min(least, v), Math.max(most, v)];
      }
      const span = Math.log10(most / least);
      return span > 1.5 ? { tickmode: "linear", tick0: 0, dtick: Math.max(1, Math.ceil(span / (narrow ? 5 : 7))) } : {};
    };
    const words = view.curves.some((curve) => typeof arrays[curve.x][0] === "string");
    const out = {
      autosize: true, height: printing ? 290 : narrow ? 290 : 350, margin: { l: 44, r: 12, t: 10, b: 40, pad: 0 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 12 : 13, color: token("--ink") },
      hoverlabel: { bgcolor: token("--raised"), bordercolor: token("--line"), font: { color: token("--ink"), size: 13 }, namelength: -1 },
      xaxis: { ...axis(words ? "category" : scale.x), ...decades("x"), title: { text: escaped(view.name), standoff: 10, font: { size: 13, color: token("--muted") } }, showgrid: !words },
      yaxis: { ...axis(scale.y), ...decades("y"), rangemode: "normal" },
      bargap: 0.35,
    };
    if (printing) Object.assign(out, { autosize: false, width: 660 });
    return out;
  };

  const draw = (plot) => {
    const scale = scales(plot);
    plot.drawn = true;
    const done = Plotly.react(plot.canvas, traces(plot, scale), layout(plot, scale), { displayModeBar: false, responsive: true, doubleClick: "reset" });
    if (!plot.listening) {
      plot.listening = true;
      plot.canvas.on("plotly_relayout", (change) => {
        if ("xaxis.range[0]" in change || "yaxis.range[0]" in change) plot.reset.hidden = false;
        if ("xaxis.autorange" in change) plot.reset.hidden = true;
      });
    }
    legend(plot);
    for (const [name, button] of Object.entries(plot.buttons)) button.setAttribute("aria-pressed", String(scale[name] === "log"));
    return done;
  };
  const drawAll = () => plots.forEach((plot) => plot.drawn && draw(plot));

  const swatch = (plot, index, style) => {
    const { color, dash, marker } = look(plot.figure, index);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of Object.entries({ width: 34, height: 12, viewBox: "-17 -6 34 12", "aria-hidden": "true" })) svg.setAttribute(name, value);
    const add = (tag, attributes) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      svg.append(node);
    };
    if (style === "bars") add("rect", { x: -6, y: -5, width: 12, height: 10, fill: color });
    else {
      if (style !== "points") add("line", { x1: -17, x2: 17, y1: 0, y2: 0, stroke: color, "stroke-width": 2, "stroke-dasharray": dash === "solid" ? "none" : dash.replaceAll("px", "") });
      if (!plot.figure.ramp) add("path", { d: SHAPES[marker], fill: color });
    }
    return svg;
  };
  const legend = (plot) => {
    const { figure, node } = plot;
    const place = node.querySelector(".legend");
    if (figure.labels.length < 2) return;
    const shown = new Map();
    for (const curve of figure.views[plot.view].curves) if (!shown.has(curve.label)) shown.set(curve.label, curve);
    const key = [...shown.keys()].join() + figure.labels.length + dark();
    if (plot.key !== key) {
      plot.key = key;
      const open = place.querySelector("details")?.open;
      const buttons = [...shown].map(([label, curve]) => {
        const button = make("button", { type: "button", "data-label": label }, swatch(plot, curve.color, curve.style), figure.labels[label]);
        button.addEventListener("click", () => {
          if (!plot.hidden.delete(label)) plot.hidden.add(label);
          draw(plot);
        });
        return button;
      });
      if (!figure.ramp) place.replaceChildren(...buttons);
      else {
        const ramp = make("i");
        const colors = [0, 0.25, 0.5, 0.75, 1].map((t) => mixed(RAMP[dark() ? "dark" : "light"], t));
        ramp.style.background = `linear-gradient(90deg, ${colors.join(",")})`;
        const named = [...shown.keys()].map((label) => figure.labels[label]);
        const ends = [named[0], named[named.length - 1]];
        const all = (text, hide) => {
          const button = make("button", { type: "button" }, text);
          button.addEventListener("click", () => {
            plot.hidden = new Set(hide ? shown.keys() : []);
            draw(plot);
          });
          return button;
        };
        const details = make("details", {}, make("summary", {}, `Choose among ${shown.size} curves`), make("div", { class: "list" }, all("All", false), all("None", true), ...buttons));
        details.open = Boolean(open);
        place.replaceChildren(make("div", { class: "ramp" }, make("span", {}, ends[0]), ramp, make("span", {}, ends[1])), details);
      }
    }
    for (const button of place.querySelectorAll("[data-label]")) button.setAttribute("aria-pressed", String(!plot.hidden.has(Number(button.dataset.label))));
  };

  for (const plot of plots) {
    const controls = plot.node.querySelector(".controls");
    if (plot.figure.y) controls.append(make("span", { class: "y-title" }, plot.figure.y));
    else controls.append(make("span", { class: "y-title" }));
    plot.buttons = {};
    const words = plot.figure.views.some((view) => view.curves.some((curve) => typeof arrays[curve.x][0] === "string"));
    for (const name of words ? ["y"] : ["x", "y"]) {
      const button = make("button", { type: "button", "aria-pressed": "false", "aria-label": `Logarithmic ${name} axis of ${plot.figure.title}` }, `log ${name}`);
      button.addEventListener("click", () => {
        plot[name] = scales(plot)[name] === "log" ? "linear" : "log";
        draw(plot);
      });
      plot.buttons[name] = button;
      controls.append(button);
    }
    plot.reset = make("button", { type: "button" }, "whole range");
    plot.reset.hidden = true;
    plot.reset.addEventListener("click", () => Plotly.relayout(plot.canvas, { "xaxis.autorange": true, "yaxis.autorange": true }));
    controls.append(plot.reset);
  }

  // One switch of the horizontal axis for all figures of a group.
  for (const group of document.querySelectorAll(".figures")) {
    const own = plots.filter((plot) => group.contains(plot.node));
    const names = [...new Set(own.flatMap((plot) => plot.figure.views.map((view) => view.name)))];
    if (!own.some((plot) => plot.figure.views.length > 1)) continue;
    const choices = make("div", { class: "choices" });
    names.forEach((name, k) => {
      const input = make("input", { type: "radio", name: `axis-${group.dataset.group}`, value: name });
      input.checked = k === 0;
      input.addEventListener("change", () => {
        for (const plot of own) {
          const view = plot.figure.views.findIndex((one) => one.name === name);
          if (view >= 0) {
            plot.view = view;
            plot.reset.hidden = true;
            if (plot.drawn) draw(plot);
          }
        }
      });
      choices.append(make("label", {}, input, make("span", {}, name)));
    });
    const legendText = make("legend", { class: "hidden" }, "Horizontal axis");
    group.querySelector(".axis-switch").append(make("fieldset", { class: "switch" }, legendText, make("span", { class: "what", "aria-hidden": "true" }, "Against"), choices));
  }

  // Figures are drawn when they come near the window, and all of them for a printer.
  if (plots.length && window.Plotly) {
    const near = new IntersectionObserver((found) => {
      for (const one of found) {
        if (!one.isIntersecting) continue;
        near.unobserve(one.target);
        const plot = plots.find((other) => other.node === one.target);
        if (!plot.drawn) draw(plot);
      }
    }, { rootMargin: "800px 0px" });
    plots.forEach((plot) => near.observe(plot.node));
    darkness.addEventListener("change", drawAll);
    let narrow = innerWidth < 600;
    addEventListener("resize", () => {
      if (narrow !== innerWidth < 600) {
        narrow = !narrow;
        drawAll();
      }
    });
    const print = (on) => () => {
      printing = on;
      plots.forEach(draw);
    };
    addEventListener("beforeprint", print(true));
    addEventListener("afterprint", print(false));
  }
})();
