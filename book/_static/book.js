// One sound at a time; tables wider than the page scroll in a frame of their own.
document.addEventListener("play", event => {
  for (const sound of document.querySelectorAll("audio")) if (sound !== event.target) sound.pause();
}, true);
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table")) {
    const frame = document.createElement("div");
    frame.className = "scroll";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
});

// The filters of the page of claims.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("claim-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("#claims tbody tr")];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const show = () => {
    const words = form.elements.text.value.toLowerCase().split(" ").filter(Boolean);
    const wanted = ["paper", "verdict", "chapter"].map(name => [name, form.elements[name].value]);
    let count = 0;
    rows.forEach((row, k) => {
      const fits = wanted.every(([name, value]) => !value || row.dataset[name] === value)
        && words.every(word => texts[k].includes(word));
      row.hidden = !fits;
      count += fits;
    });
    form.querySelector("output").textContent = count + " of " + rows.length + " claims";
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  show();
});
