"use strict";
(() => {
  const { names, frames, colors, words } = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("time");
  const scatter = document.getElementById("scatter");
  const play = document.getElementById("play");
  const element = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // One scale for all steps, so that points move and axes do not.
  const most = (key) => Math.max(0.1, ...frames.map((frame) => frame[key].reduce((a, b) => Math.max(a, b), 0))) * 1.05;
  const plots = [
    { left: 56, name: "use", x: "cpu", y: "memory" },
    { left: 506, name: "pressure", x: "cpuPressure", y: "memoryPressure" },
  ].map((plot) => ({ ...plot, wide: most(plot.x), high: most(plot.y) }));
  const shapes = [
    (x, y) => `M${x - 5} ${y - 4}h10l-5 9z`,
    (x, y) => `M${x - 4} ${y - 4}h8v8h-8z`,
    (x, y) => `M${x - 5} ${y + 5}h10l-5 -9z`,
  ];
  const clock = (seconds) => {
    const days = Math.floor(seconds / 86400);
    const pad = (value) => String(Math.floor(value)).padStart(2, "0");
    return (days ? `${days}d ` : "") + `${pad((seconds / 3600) % 24)}:${pad((seconds / 60) % 60)}:${pad(seconds % 60)}`;
  };
  const draw = () => {
    const frame = frames[Number(slider.value)];
    scatter.replaceChildren();
    for (const plot of plots) {
      const px = (value) => plot.left + (value / plot.wide) * 370;
      const py = (value) => 370 - (value / plot.high) * 330;
      for (let tick = 0; tick <= 4; tick++) {
        const [x, y] = [(plot.wide * tick) / 4, (plot.high * tick) / 4];
        scatter.append(
          element("path", { d: `M${px(x)} 40V370M${plot.left} ${py(y)}h370`, stroke: "#ddd", fill: "none" }),
          element("text", { x: px(x), y: 386, "text-anchor": "middle", "font-size": 12 }, x.toFixed(2)),
          element("text", { x: plot.left - 6, y: py(y) + 4, "text-anchor": "end", "font-size": 12 }, y.toFixed(2)),
        );
      }
      scatter.append(
        element("text", { x: plot.left + 185, y: 408, "text-anchor": "middle", "font-size": 13 }, `CPU ${plot.name}`),
        element("text", { x: plot.left, y: 28, "font-size": 13 }, `memory ${plot.name}`),
      );
      frame.nodes.forEach((node, at) => {
        const bucket = frame.bucket[at];
        const point = element("path", {
          d: shapes[bucket](px(frame[plot.x][at]), py(frame[plot.y][at])), fill: colors[bucket], "fill-opacity": 0.75,
        });
        point.append(element("title", {}, `${names[node]}: ${words[bucket]}, score ${frame.score[at].toFixed(3)}`));
        scatter.append(point);
      });
    }
    document.getElementById("now").value = `${frame.step} (${clock(frame.seconds)})`;
    const counts = words.map((word, bucket) => `${word}: ${frame.bucket.filter((known) => known === bucket).length}`);
    document.getElementById("counts").textContent =
      `${counts.join(" · ")} · average score ${frame.average.toFixed(3)}, bounds ${frame.lower.toFixed(3)} and ${frame.upper.toFixed(3)}`;
    table(frame);
  };
  const table = (frame) => {
    const holder = document.getElementById("nodes");
    if (!holder.parentElement.open) return;
    const made = document.createElement("table");
    made.className = "nodes";
    const row = (cells, tag) => {
      const line = made.insertRow();
      for (const cell of cells) line.appendChild(document.createElement(tag)).textContent = cell;
    };
    row(["node", "bucket", "score", "CPU", "CPU pressure", "memory", "memory pressure", "VMs"], "th");
    const order = frame.nodes.map((_, at) => at).sort((a, b) => frame.score[b] - frame.score[a]);
    for (const at of order.slice(0, 500)) {
      const numbers = ["score", "cpu", "cpuPressure", "memory", "memoryPressure"].map((key) => frame[key][at].toFixed(3));
      row([names[frame.nodes[at]], words[frame.bucket[at]], ...numbers, frame.vms[at]], "td");
    }
    holder.replaceChildren(made);
  };
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (slider.value === slider.max) slider.value = 0;
    play.textContent = "Stop";
    timer = setInterval(() => {
      if (Number(slider.value) >= Number(slider.max)) return stop();
      slider.value = Number(slider.value) + 1;
      draw();
    }, 150);
  });
  slider.addEventListener("input", draw);
  document.querySelector("details").addEventListener("toggle", draw);
  draw();
})();
