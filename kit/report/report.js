"use strict";
// Adds to what stands on the page: values under the pointer, policies to show, a budget to choose. Without it nothing
// is missing: the figures are images with their numbers beside them. It asks for nothing and evaluates nothing.
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  const make = (tag, properties, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  // The drawing of an image (the wide or the narrow one, as the screen chose) as a part of the page. It is one picture
  // with the image's own text; what its marks say is kept for the pointer.
  const drawing = (image, name) => {
    const bytes = Uint8Array.from(atob(image.currentSrc.split(",")[1]), (sign) => sign.charCodeAt(0));
    const read = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml");
    const svg = document.importNode(read.documentElement, true);
    for (const node of svg.querySelectorAll("[aria-label]")) node.dataset.says = node.getAttribute("aria-label");
    for (const node of svg.querySelectorAll("*"))
      for (const name of ["role", "aria-label", "aria-roledescription"]) node.removeAttribute(name);
    for (const node of svg.querySelectorAll("[id]")) node.id = `${name}-${node.id}`;
    for (const node of svg.querySelectorAll("[clip-path]"))
      node.setAttribute("clip-path", node.getAttribute("clip-path").replace("#", `#${name}-`));
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", image.alt);
    svg.classList.add("drawing");
    return svg;
  };

  const values = (svg, reading) => {
    svg.addEventListener("pointerover", (event) => {
      if (event.target.dataset.says) reading.textContent = event.target.dataset.says;
    });
  };

  // The curve of budgets: which policies are shown, and what each finds at the budget of the slider or the pointer.
  const explorer = (figure, data) => {
    const hidden = new Set();
    const span = Math.log(data.high / data.low);
    const places = data.steps.map((step) => Math.log(step.tokens / data.low) / span);
    const slider = make("input", { type: "range", min: 0, max: data.steps.length - 1, step: 1, id: "budget" });
    const output = make("output", { htmlFor: "budget" });
    const marks = make("datalist", { id: "replayed" });
    for (const [place, step] of data.steps.entries())
      if (step.replayed) marks.append(make("option", { value: place, label: step.words }));
    slider.setAttribute("list", marks.id);
    slider.value = data.start;
    const boxes = data.policies.map((title) => {
      const box = make("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(title);
        else hidden.add(title);
        show();
      });
      return make("label", {}, box, ` ${title}`);
    });
    const chosen = make("fieldset", {}, make("legend", { textContent: "Lines shown" }), ...boxes);
    const budget = make("label", { className: "budget" }, "Budget ", slider, marks);
    const controls = make("div", { className: "controls" }, budget, output, chosen);
    let svg = null;
    let cursor = null;
    let label = null;

    const show = () => {
      const step = data.steps[slider.value];
      const seen = step.found.filter(([title]) => !hidden.has(title)).map(([title, words]) => `${title} ${words}`);
      output.textContent = `${step.words}: ${[...seen, ...(step.note ? [step.note] : [])].join(" · ")}`;
      slider.setAttribute("aria-valuetext", step.words);
      if (!svg) return;
      for (const node of svg.querySelectorAll("[data-says]")) {
        const says = node.dataset.says;
        node.classList.toggle("off", hidden.has(says.slice(0, says.lastIndexOf(": "))));
      }
      const across = places[slider.value];
      const x = across * svg.querySelector(".background").getBBox().width;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      label.textContent = step.words;
      label.setAttribute("x", x + (across < 0.5 ? 5 : -5));
      label.setAttribute("text-anchor", across < 0.5 ? "start" : "end");
    };
    slider.addEventListener("input", show);

    const draw = (made) => {
      svg = made;
      const plot = svg.querySelector(".background");
      cursor = document.createElementNS(SVG, "line");
      cursor.setAttribute("class", "cursor");
      cursor.setAttribute("y2", plot.getBBox().height);
      label = document.createElementNS(SVG, "text");
      label.setAttribute("class", "chosen");
      label.setAttribute("y", plot.getBBox().height - 6);
      plot.parentNode.append(cursor, label);
      svg.addEventListener("pointermove", (event) => {
        const box = plot.getBoundingClientRect();
        const at = (event.clientX - box.left) / box.width;
        if (at < 0 || at > 1) return;
        const far = (place) => Math.abs(places[place] - at);
        slider.value = places.reduce((best, _, place) => (far(place) < far(best) ? place : best), 0);
        show();
      });
      show();
    };
    return { controls, draw };
  };

  for (const figure of document.querySelectorAll("figure")) {
    const image = figure.querySelector("img");
    const frame = make("div", { className: "frame" });
    const explored = figure.dataset.budgets ? explorer(figure, JSON.parse(figure.dataset.budgets)) : null;
    const reading = make("p", { className: "note reading", textContent: "Point at a mark to read its value." });
    const draw = () => {
      const svg = drawing(image, figure.id);
      frame.replaceChildren(svg);
      figure.classList.add("live");
      if (explored) explored.draw(svg);
      else values(svg, reading);
    };
    figure.querySelector("picture").after(frame, explored ? explored.controls : reading);
    image.addEventListener("load", draw);
    if (image.complete && image.currentSrc) draw();
  }
})();
